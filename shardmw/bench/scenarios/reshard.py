# SPDX-License-Identifier: Apache-2.0
"""``reshard``: changes of a container's layout, idle and with clients."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from shardmw.bench import options as types
from shardmw.bench.changing import Change, change_layout
from shardmw.bench.kinds import PLAIN
from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.sources import Mixed
from shardmw.bench.load.stage import Stage, run_text
from shardmw.bench.names import FlatNames, Names
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import Axis, Band, Plot, Series
from shardmw.bench.results.figures import latency
from shardmw.bench.results.runs import Run
from shardmw.bench.results.summary import Summary, errors_text, summarize
from shardmw.bench.scenarios import Figures, Keep, Scenario
from shardmw.bench.scenarios import parameters as shared
from shardmw.bench.scenarios.grouping import plot_if_any
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, figure, number, plain, ratio
from shardmw.bench.units import parse_choices, parse_mix

NAME = 'reshard'

#: The cases: no clients; clients, and the rows move as fast as they can;
#: clients, and the rows move at a bounded rate.
IDLE, UNBOUNDED, BOUNDED = CASES = ('idle', 'unbounded', 'bounded')

#: The parts of a load that is under way before, during and after a change.
BEFORE, DURING, MOVING, AFTER = 'before', 'during', 'moving', 'after'

#: The container for which the duration of a change is computed.
LARGE_ROWS = 200_000_000

#: The goal of the p99 of a bounded change, divided by the p99 before it.
GOAL_RATIO = 1.5

# Objects that clients read and overwrite.
_OBJECTS = 1000

# Swift's default: a change waits for this time and the conn_timeout before
# rows move. Clusters of the benchmark have more.
_NODE_TIMEOUT = '10'

# About how many rows move in a second without a bound.
_ROWS_RATE = 15_000

_MOST_POINTS = 120
_LEAST_STEP_SECONDS = 2
_READS = ('GET', 'list')
_ALL = 'all'
_HOUR = 3600

_CASES = types.Parsed(
    'cases', lambda text: parse_choices(text, CASES), ','.join
)


@dataclass(frozen=True)
class Parameters(shared.PacedParameters, shared.ClusterParameters):
    """The options of the scenario."""

    rows: int = shared.rows_option(1_000_000)
    shards: tuple[int, ...] = option(
        (4, 32),
        types.COUNTS,
        'Shard counts; 4,32 changes from 0 to 4, 32, 4 and 0 again.',
    )
    cases: tuple[str, ...] = option(
        CASES,
        _CASES,
        'idle: no clients; unbounded: clients, and rows move as fast as '
        'possible; bounded: clients, and rows move at --rows-per-second.',
    )
    rows_per_second: int = option(
        2000, types.POSITIVE, 'How fast rows move in bounded changes.'
    )
    settle_seconds: float = option(
        30.0, types.DURATION, 'How long the old place has to stay empty.'
    )
    info_cache_seconds: int = option(
        5, types.POSITIVE, 'How long proxies cache container info.'
    )
    seconds: float = option(
        30.0,
        types.DURATION,
        'How long the clients work before and after each change.',
    )
    mix: str = option(
        'write=40,overwrite=20,delete=5,read=25,list=10',
        types.MIX,
        'Requests of the clients, in percent.',
    )
    page: int = option(
        100, types.POSITIVE, 'Page size: the limit of the listings.'
    )
    size: int = shared.size_option(1)
    processes: int = shared.processes_option()

    @property
    def changes(self) -> list[tuple[int, int]]:
        """Return the shard counts before and after each change."""
        back = reversed(self.shards[:-1])
        return list(pairwise((0, *self.shards, *back, 0)))


class _Step(NamedTuple):
    """A change in one of the cases."""

    case: str
    former: int
    shards: int

    @property
    def change(self) -> str:
        return f'{_count(self.former)} to {_count(self.shards)}'

    @property
    def word(self) -> str:
        """Return what tells the objects and plots of changes apart."""
        return f'{self.case}-{self.former}-{self.shards}'

    def case_text(self, parameters: Parameters) -> str:
        """Return the case for people."""
        if self.case == BOUNDED:
            return f'clients, {number(parameters.rows_per_second)} rows/s'
        return 'clients, no bound' if self.case == UNBOUNDED else 'no clients'


def measure(stage: Stage, keep: Keep) -> Figures:
    """Make all changes of a container in each case, one after the other."""
    parameters = stage.parameters
    figures: dict[str, object] = {'rows': []}
    cached = str(parameters.info_cache_seconds)
    settings = {
        'proxy-server.recheck_container_existence': cached,
        'proxy-server.recheck_account_existence': cached,
        'internal-client.node_timeout': _NODE_TIMEOUT,
    }
    with stage.site(parameters.cluster(settings)) as site:
        for case in parameters.cases:
            container, objects = _filled(stage, site)
            for former, shards in parameters.changes:
                step = _Step(case, former, shards)
                row = _measured(stage, site, container, objects, step)
                figures['rows'].append(row)
                keep(figures)
    return figures


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return rates and latencies, by phase and by kind of request."""
    rows = figures['rows']
    if not rows:
        return []
    found = [
        _summary_table(parameters, rows),
        _phases_table(parameters, rows),
    ]
    if any(BEFORE in row for row in rows):
        found.append(_kinds_table(parameters, rows))
    return found


def plots(parameters: Parameters, figures: Figures) -> list[Plot]:
    """Return rates and latencies over time of each change with clients."""
    return [
        plot
        for row in figures['rows']
        if BEFORE in row
        for plot in _over_time(parameters, row)
    ]


def runs_of_parts(outcome: Outcome, change: Change) -> dict[str, Run]:
    """Return a run for each part of a load in which a change was made. Pure.

    The part *moving* is a part of *during*, if rows moved.
    """
    begin = outcome.began + change.began_at - outcome.began_at
    end = begin + change.seconds
    first = min(outcome.steady_from, (outcome.began + begin) / 2)
    spans = {
        BEFORE: (first, begin),
        DURING: (begin, end),
        AFTER: (end, outcome.began + outcome.seconds),
    }
    if moving := change.moving:
        spans[MOVING] = (begin + moving.begin, begin + moving.end)
    return {
        part: Run(
            'mixed', PLAIN, 0, {'part': part}, summarize(outcome.part(*span))
        )
        for part, span in spans.items()
    }


def points_of(outcome: Outcome, step: int) -> list[dict[str, object]]:
    """Return rates and latencies of each so many seconds of a load. Pure.

    :returns: ``seconds`` is the middle of each; ``writes`` and ``reads`` are
              their latencies in milliseconds, None of no requests
    """
    bins = [([], []) for _ in range(int(outcome.seconds // step))]
    for each in outcome.samples:
        place = int((each.end - outcome.began) // step)
        if each.is_admitted and 0 <= place < len(bins):
            is_read = outcome.kinds[each.kind] in _READS
            bins[place][is_read].append(each.end - each.start)
    return [
        {
            'seconds': (place + 0.5) * step,
            'rate': (len(writes) + len(reads)) / step,
            'writes': latency(writes)._asdict(),
            'reads': latency(reads)._asdict(),
        }
        for place, (writes, reads) in enumerate(bins)
    ]


def _filled(stage: Stage, site: Site) -> tuple[str, Names]:
    """Make a plain container with rows; return the names of its objects."""
    parameters = stage.parameters
    names = FlatNames(parameters.rows)
    count = min(_OBJECTS, len(names))
    objects = tuple(names[i * len(names) // count] for i in range(count))
    with stage.screen.status(f'putting {number(len(names))} rows there'):
        container = site.make(PLAIN, names)
        site.fill(container, PLAIN, names)
    site.populate(container, objects, parameters.size)
    return container, objects


def _measured(
    stage: Stage, site: Site, container: str, objects: Names, step: _Step
) -> dict[str, object]:
    """Make a change, with clients if the case has any."""
    if step.case == IDLE:
        change, of_clients = _changed(stage, site, container, step), {}
    else:
        change, of_clients = _with_clients(
            stage, site, container, objects, step
        )
    return {
        **step._asdict(),
        'rows_moved': change.rows_moved,
        'rows_per_second': change.rows_per_second,
        'phases': {each.name: each.seconds for each in change.phases},
        **of_clients,
        'change': change.as_json(),
    }


def _with_clients(
    stage: Stage, site: Site, container: str, objects: Names, step: _Step
) -> tuple[Change, dict[str, object]]:
    """Make a change during a load; return it and what came of the load."""
    parameters = stage.parameters
    source = Mixed(
        site.container_path(container),
        parse_mix(parameters.mix),
        objects,
        parameters.size,
        step.word,
        parameters.page,
    )
    load = site.load(
        source, parameters.clients, pace_seconds=parameters.pace_seconds
    )
    running = stage.clients.begin(load)
    running.sleep_until(parameters.seconds)
    change = _changed(stage, site, container, step)
    time.sleep(parameters.seconds)
    outcome = stage.checked(running.stop())
    runs = runs_of_parts(outcome, change)
    for part, run in runs.items():
        stage.screen.line(f'{part}: {run_text(run)}')
    step_seconds = max(
        _LEAST_STEP_SECONDS, math.ceil(outcome.seconds / _MOST_POINTS)
    )
    return change, {
        'seconds_before': change.began_at - outcome.began_at,
        **{part: run.as_json() for part, run in runs.items()},
        'point_seconds': step_seconds,
        'points': points_of(outcome, step_seconds),
    }


def _changed(stage: Stage, site: Site, container: str, step: _Step) -> Change:
    parameters = stage.parameters
    label = f'{step.case_text(parameters)}, {step.change}'
    bound = parameters.rows_per_second if step.case == BOUNDED else 0
    options = {
        '--settle-seconds': plain(parameters.settle_seconds),
        '--info-cache-seconds': plain(parameters.info_cache_seconds),
        '--rows-per-second': str(bound),
    }
    with stage.screen.status(label):
        change = change_layout(
            site.cluster,
            f'{site.account.name}/{container}',
            step.shards,
            [word for pair in options.items() for word in pair],
        )
    stage.screen.line(
        f'{label}: {number(change.rows_moved)} rows, '
        f'{figure(change.rows_per_second)} rows/s, '
        f'{figure(change.seconds)} s in all'
    )
    for problem in dict.fromkeys(each.problem for each in change.moments):
        if problem:
            stage.screen.warning(f'the change waited: {problem}')
    return change


_PARTS = (BEFORE, DURING, MOVING, AFTER)


def _summary_table(parameters: Parameters, rows: Sequence[Mapping]) -> Table:
    manner = (
        f'together send {number(parameters.rate)} requests/s, evenly'
        if parameters.rate
        else 'each send the next request when the last one is answered, so '
        'their rate falls when the machine has other work'
    )
    return Table(
        f'Changes of layout: {number(parameters.rows)} rows',
        (
            *('case', 'change', 'rows moved', 'rows/s', '200M rows h'),
            *('requests/s before', 'during', 'after', 'p99 before ms'),
            *('p99 during to before', 'p99 moving to before'),
            *('refused', 'errors'),
        ),
        [_summary_row(parameters, row) for row in rows],
        (
            '*Rows/s*: while rows move. *200M rows h*: the hours in which '
            f'{number(LARGE_ROWS)} rows move at that rate, computed. '
            '*Refused* and *errors*: requests of clients from the start of '
            f'the load to its end, {plain(parameters.seconds)} s after the '
            'change; the goal is 0.',
            '*p99 during to before*: the p99 of all requests from the start '
            'of the command to its end, divided by that before; *p99 moving '
            'to before*: while rows move. The goal at '
            f'{number(parameters.rows_per_second)} rows/s is '
            f'{plain(GOAL_RATIO)}.',
            f'{number(parameters.clients)} clients {manner}. The mix in '
            f'percent: {parameters.mix}; a page has '
            f'{number(parameters.page)} rows.',
            'All servers, the clients and the command share one machine. '
            'The rows were written into the database of the container; '
            f'{min(_OBJECTS, parameters.rows):,} of them have objects.',
        ),
        names=2,
    )


def _summary_row(parameters: Parameters, row: Mapping) -> tuple[str, ...]:
    rate = row['rows_per_second']
    parts = {part: _summary(row, part) for part in _PARTS}
    whole = [parts[part] for part in (BEFORE, DURING, AFTER)]
    p99 = {part: _p99(each) for part, each in parts.items()}
    known = [each for each in whole if each]
    errors = sum((Counter(each.errors) for each in known), Counter())
    return (
        *_labels(parameters, row),
        number(row['rows_moved']),
        figure(rate),
        figure(LARGE_ROWS / rate / _HOUR if rate else None),
        *(figure(each.done_rate if each else None) for each in whole),
        figure(p99[BEFORE]),
        ratio(p99[DURING], p99[BEFORE]),
        ratio(p99[MOVING], p99[BEFORE]),
        number(sum(each.refused for each in known) if known else None),
        errors_text(errors) if known else '—',
    )


def _phases_table(parameters: Parameters, rows: Sequence[Mapping]) -> Table:
    names = list(dict.fromkeys(name for row in rows for name in row['phases']))
    return Table(
        'Seconds of each phase',
        ('case', 'change', 'all', *names),
        [
            (
                *_labels(parameters, row),
                figure(row['change']['seconds']),
                *(number(row['phases'].get(name), 1) for name in names),
            )
            for row in rows
        ],
        (
            'The waits are short here: proxies cache container info for '
            f'{number(parameters.info_cache_seconds)} s (60 by default), and '
            'the old place has to stay empty for '
            f'{plain(parameters.settle_seconds)} s (86,400 by default).',
        ),
        names=2,
    )


def _kinds_table(parameters: Parameters, rows: Sequence[Mapping]) -> Table:
    cells = []
    for row in rows:
        if BEFORE not in row:
            continue
        for kind in (_ALL, *row[BEFORE]['summary']['by_operation']):
            parts = [_summary(row, part, kind) for part in _PARTS]
            p99 = [_p99(each) for each in parts]
            cells.append(
                (
                    *(*_labels(parameters, row), kind),
                    *(
                        figure(each.latency.p50_ms if each else None)
                        for each in parts
                    ),
                    *map(figure, p99),
                    ratio(p99[_PARTS.index(MOVING)], p99[0]),
                )
            )
    return Table(
        'Latency by kind of request',
        (
            *('case', 'change', 'request', 'p50 before ms', 'during'),
            *('moving', 'after', 'p99 before ms', 'during', 'moving'),
            *('after', 'p99 moving to before'),
        ),
        cells,
        (
            '*Overwrite*: PUT of a name that exists. The parts of the load '
            'are those of the first table.',
        ),
        names=3,
    )


def _over_time(parameters: Parameters, row: Mapping) -> Iterator[Plot]:
    """Yield the plots of a change with clients: rates and latencies."""
    points = row['points']
    if not points:
        return
    case, words = _labels(parameters, row)
    change = Change.from_json(row['change'])
    began, step = row['seconds_before'], row['point_seconds']
    rates = change.rates(step)
    end = points[-1]['seconds'] - began
    # The time after the command belongs to its last phase.
    last = change.phases[-1]
    last = last._replace(end=max(end, last.end))
    shown = {
        'x': Axis('time since the clients began (s)'),
        'note': f'Each point is of {step} s. Writes: PUT and DELETE of '
        'objects; reads: GET of objects and of pages of the listing.',
        'bands': [
            Band(each.name, began + each.begin, began + each.end)
            for each in (*change.phases[:-1], last)
        ],
    }
    word = _step(row).word
    yield from plot_if_any(
        f'{NAME}-rates-{word}',
        f'Rates over time: {words} ({case})',
        [
            _line('requests of clients', points, lambda each: each['rate']),
            Series(
                'rows moved',
                [began + seconds for seconds, _ in rates],
                [rate for _, rate in rates],
            ),
        ],
        y=Axis('rate (/s)', log=True),
        **shown,
    )
    yield from plot_if_any(
        f'{NAME}-latency-{word}',
        f'Latency over time: {words} ({case})',
        [
            _line(
                f'{name} {share}',
                points,
                lambda each, name=name, share=share: each[name][f'{share}_ms'],
            )
            for share in ('p99', 'p50')
            for name in ('writes', 'reads')
        ],
        y=Axis('latency (ms)', log=True),
        **shown,
    )


def _line(
    label: str,
    points: Sequence[Mapping],
    value,
) -> Series:
    """Return a line through the points that have the value, and not 0."""
    known = [each for each in points if value(each)]
    x = [each['seconds'] for each in known]
    return Series(label, x, [value(each) for each in known])


def _step(row: Mapping) -> _Step:
    return _Step(row['case'], row['former'], row['shards'])


def _labels(parameters: Parameters, row: Mapping) -> tuple[str, str]:
    step = _step(row)
    return step.case_text(parameters), step.change


def _summary(row: Mapping, part: str, kind: str = _ALL) -> Summary | None:
    """Return the summary of a part of the load, None if there is none."""
    if part not in row:
        return None
    summary = Run.from_json(row[part]).summary
    if kind == _ALL:
        return summary
    return summary.of(kind) if kind in summary.by_operation else None


def _p99(summary: Summary | None) -> float | None:
    return summary.latency.p99_ms if summary else None


def _count(shards: int) -> str:
    return str(shards) if shards else PLAIN.label


def _seconds(parameters: Parameters) -> float:
    """Return the sum of waits, and of rows at the rates they move at."""
    total = shared.CLUSTER_SECONDS
    for case in parameters.cases:
        rate = parameters.rows_per_second if case == BOUNDED else _ROWS_RATE
        each = parameters.settle_seconds + parameters.rows / rate + 30
        if case != IDLE:
            each += 2 * parameters.seconds
        total += len(parameters.changes) * each
    return total


SUMMARY = 'Changes of the number of shards, idle and while clients write.'

SCENARIOS = [
    Scenario(NAME, SUMMARY, Parameters, measure, tables, plots, _seconds)
]
