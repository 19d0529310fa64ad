# SPDX-License-Identifier: Apache-2.0
"""``outage``: stop memcached during a load, and start it again."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.stage import Stage
from shardmw.bench.ratelimit import limits
from shardmw.bench.ratelimit.limits import SHARDMW, Parameters
from shardmw.bench.results.figures import count_between, per_second
from shardmw.bench.results.summary import errors, errors_text, summarize
from shardmw.bench.scenarios import Figures, Keep
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, figure, number, plain, ratio
from shardmw.saio.logs import read_from, size
from shardmw.saio.topology import MEMCACHED

PHASES = ('before', 'during', 'after')

_REFUSED = ' 498 '


class LogLines(NamedTuple):
    """The number of lines of the proxies' logs.

    :param memcached: Swift's lines about memcached
    :param shardmw: shardmw's lines, except refusals
    :param refusals: shardmw's lines on refused writes
    """

    memcached: int
    shardmw: int
    refusals: int


def measure(stage: Stage, keep: Keep) -> Figures:
    """Stop memcached during a load, with a limit and without."""
    parameters = stage.parameters
    figures: dict[str, object] = {'runs': []}
    with limits.limited_site(stage) as site:
        for rate in (None, parameters.middle_rate):
            site.reconfigure(limits.limit_settings(SHARDMW, rate))
            figures['runs'].append(_write(stage, site, rate))
            keep(figures)
    return figures


def _write(stage: Stage, site: Site, rate: float | None) -> dict[str, object]:
    parameters = stage.parameters
    container = site.make(limits.kind_with(parameters.middle_shards))
    logs = [_log_sizes(site)]
    load = limits.write_load(stage, site, container, seconds=None)
    running = stage.clients.begin(load)
    running.sleep_until(parameters.seconds)
    logs.append(_log_sizes(site))
    died = time.monotonic()
    site.cluster.stop(MEMCACHED)
    time.sleep(parameters.seconds)
    site.cluster.start(MEMCACHED)
    back = time.monotonic()
    logs.append(_log_sizes(site))
    time.sleep(parameters.seconds)
    outcome = stage.checked(running.stop())
    logs.append(_log_sizes(site))
    bounds = [outcome.began, died, back, outcome.began + outcome.seconds]
    phases = [
        _phase(outcome, *bounds[i : i + 2], phase)
        | {'log_lines': _log_lines(site, *logs[i : i + 2])._asdict()}
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
    ended = [each for each in outcome.samples if begin <= each.end < end]
    admitted = [each.end for each in ended if each.is_admitted]
    started = (each.start for each in outcome.samples)
    seconds = end - begin
    return {
        'phase': phase,
        'seconds': seconds,
        'offered_rate': count_between(started, begin, end) / seconds,
        'admitted_rate': len(admitted) / seconds,
        'admitted_each_second': per_second(
            admitted, begin, max(1, int(seconds))
        ),
        'errors': errors(ended),
    }


def _log_sizes(site: Site) -> dict[Path, int]:
    proxies = range(1, len(site.urls) + 1)
    paths = (site.cluster.log_path(f'proxy-{i}') for i in proxies)
    return {path: size(path) for path in paths}


def _log_lines(
    site: Site, begins: Mapping[Path, int], ends: Mapping[Path, int]
) -> LogLines:
    written = b''.join(
        read_from(path, begin)[: ends[path] - begin]
        for path, begin in begins.items()
    )
    return count_log_lines(written.decode(errors='replace'))


def count_log_lines(written: str) -> LogLines:
    """Count the lines about memcached and of shardmw. Pure.

    :param written: what was appended to the proxies' logs
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


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return each phase of both runs, and the rate second by second."""
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
            'memcached stops and starts again',
            (
                *('limit', 'memcached', 'seconds', 'offered /s'),
                *('admitted /s', 'of limit × N', 'bound by', 'errors'),
                *('lines of memcached', "shardmw's", 'of refusals'),
            ),
            rows,
            (
                f'{parameters.clients} clients; {parameters.proxies} '
                f'proxies; a container of {parameters.middle_shards} shards. '
                "The *lines* are those of the proxies' logs. *Bound by* is "
                'the machine where limit × N is more than 0.9 of the rate '
                'without a limit in the same phase.',
            ),
            names=2,
        ),
        Table(
            'Admitted writes, second by second',
            ('limit', 'memcached', 'writes in each second'),
            [
                (
                    _limit_text(run['rate']),
                    phase['phase'],
                    ' '.join(map(str, phase['admitted_each_second'])),
                )
                for run in runs
                for phase in run['phases']
            ],
            names=3,
        ),
    ]


def _phase_row(
    rate: float | None, parameters: Parameters, phase: Mapping, free: Mapping
) -> tuple[str, ...]:
    total = None if rate is None else rate * parameters.middle_shards
    bound = 'machine'
    if total and not limits.is_machine_bound(total, free['admitted_rate']):
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
