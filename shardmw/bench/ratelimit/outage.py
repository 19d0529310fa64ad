# SPDX-License-Identifier: Apache-2.0
"""``outage``: memcached dies under load, and comes back."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.samples import Sample
from shardmw.bench.ratelimit.limits import SHARDMW, is_machine_bound
from shardmw.bench.ratelimit.parameters import Parameters
from shardmw.bench.ratelimit.stage import Bed, Stage
from shardmw.bench.results.figures import count_between, per_second
from shardmw.bench.results.summary import errors, errors_text, summarize
from shardmw.bench.tables import Table, figure, number, plain, ratio
from shardmw.saio.logs import read_from, size
from shardmw.saio.topology import MEMCACHED

PHASES = ('before', 'during', 'after')

_REFUSED = ' 498 '


class LogLines(NamedTuple):
    """How many lines of the proxies' logs speak of trouble.

    :param memcached: that name memcached
    :param shardmw: that are shardmw's, refusals aside
    :param refusals: that are shardmw's, one for each write refused
    """

    memcached: int
    shardmw: int
    refusals: int


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Let memcached die, with a limit and without."""
    parameters = stage.parameters
    figures = {'runs': []}
    with stage.bed() as bed:
        for rate in (None, parameters.middle_rate):
            if rate is not None:
                bed.limit(SHARDMW, rate)
            figures['runs'].append(_write(stage, bed, rate))
            keep(figures)
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Each phase of both runs, and the admitted rate second by second."""
    unlimited, *_ = figures['runs']
    runs = figures['runs'][::-1]
    rows = []
    for run in runs:
        for phase, free in zip(
            run['phases'], unlimited['phases'], strict=True
        ):
            rows.append(_phase_row(run['rate'], parameters, phase, free))
    return [
        Table(
            'memcached dies, and comes back',
            (
                *('limit', 'memcached', 'seconds', 'offered /s'),
                *('admitted /s', 'of limit × N', 'bound by', 'errors'),
                *('lines of memcached', "shardmw's", 'of refusals'),
            ),
            rows,
            (_note(parameters),),
            names=2,
        ),
        Table(
            'Admitted writes, second by second',
            ('limit', 'memcached', 'writes in each second'),
            [
                (_limit_text(run['rate']), phase['phase'], _series(phase))
                for run in runs
                for phase in run['phases']
            ],
            names=3,
        ),
    ]


def count_log_lines(written: str) -> LogLines:
    """Count the lines that matter. Pure.

    :param written: what the proxies' logs got
    """
    own = memcached = refusals = 0
    for line in written.splitlines():
        if 'shardmw: ' in line:
            is_refusal = _REFUSED in line
            refusals += is_refusal
            own += not is_refusal
        # access lines have names of clients, containers and objects
        elif 'memcache' in line.lower() and ' INFO ' not in line:
            memcached += 1
    return LogLines(memcached, own, refusals)


def _write(stage: Stage, bed: Bed, rate: float | None) -> dict[str, object]:
    parameters = stage.parameters
    container = bed.account.create(parameters.middle_shards)
    load = stage.load(bed, container, seconds=None)
    logs = [_log_sizes(bed)]
    running = stage.begin(load)
    running.sleep_until(parameters.seconds)
    logs.append(_log_sizes(bed))
    died = time.monotonic()
    bed.cluster.stop(MEMCACHED)
    time.sleep(parameters.seconds)
    bed.cluster.start(MEMCACHED)
    back = time.monotonic()
    logs.append(_log_sizes(bed))
    time.sleep(parameters.seconds)
    outcome = stage.checked(running.stop())
    logs.append(_log_sizes(bed))
    bounds = [outcome.began, died, back, outcome.began + outcome.seconds]
    phases = [
        _phase(outcome, *bounds[i : i + 2], phase)
        | {'log_lines': _log_lines(bed, *logs[i : i + 2])._asdict()}
        for i, phase in enumerate(PHASES)
    ]
    for phase in phases:
        stage.screen.line(
            f'{_limit_text(rate)}, {phase["phase"]}: '
            f'{figure(phase["admitted_rate"])}/s admitted'
        )
    return {
        **summarize(outcome).as_json(),
        'rate': rate,
        'shards': parameters.middle_shards,
        'phases': phases,
    }


def _phase(
    outcome: Outcome, begin: float, end: float, phase: str
) -> dict[str, object]:
    def ended(sample: Sample) -> bool:
        return begin <= sample.end < end

    admitted = [s.end for s in outcome.samples if s.is_admitted]
    started = (s.start for s in outcome.samples)
    seconds = end - begin
    return {
        'phase': phase,
        'seconds': seconds,
        'offered_rate': count_between(started, begin, end) / seconds,
        'admitted_rate': count_between(admitted, begin, end) / seconds,
        'admitted_each_second': per_second(
            admitted, begin, max(1, int(seconds))
        ),
        'errors': errors(filter(ended, outcome.samples)),
    }


def _log_sizes(bed: Bed) -> dict[str, int]:
    names = [f'proxy-{i + 1}' for i in range(len(bed.account.proxy_urls))]
    return {name: size(bed.cluster.log_path(name)) for name in names}


def _log_lines(
    bed: Bed, begins: Mapping[str, int], ends: Mapping[str, int]
) -> LogLines:
    written = b''
    for name, begin in begins.items():
        log = read_from(bed.cluster.log_path(name), begin)
        written += log[: ends[name] - begin]
    return count_log_lines(written.decode(errors='replace'))


def _phase_row(
    rate: float | None, parameters: Parameters, phase: Mapping, free: Mapping
) -> tuple[str, ...]:
    total = None if rate is None else rate * parameters.middle_shards
    bound = 'machine'
    if total and not is_machine_bound(total, free['admitted_rate']):
        bound = 'limit'
    lines = phase['log_lines']
    return (
        _limit_text(rate),
        phase['phase'],
        figure(phase['seconds']),
        figure(phase['offered_rate']),
        figure(phase['admitted_rate']),
        ratio(phase['admitted_rate'], total),
        bound,
        errors_text(phase['errors']),
        number(lines['memcached']),
        number(lines['shardmw']),
        number(lines['refusals']),
    )


def _limit_text(rate: float | None) -> str:
    return 'none' if rate is None else f'{plain(rate)} /s'


def _series(phase: Mapping) -> str:
    return ' '.join(map(str, phase['admitted_each_second']))


def _note(parameters: Parameters) -> str:
    return (
        f'{parameters.clients} clients by way of {parameters.proxies} '
        f'proxies, a container of {parameters.middle_shards} shards; the '
        "*lines* are those of the proxies' logs. *Bound by* says machine "
        'where limit × N is more than 0.9 of what it takes without a limit '
        'in the same phase.'
    )
