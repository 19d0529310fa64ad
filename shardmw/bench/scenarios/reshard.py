# SPDX-License-Identifier: Apache-2.0
"""``reshard``: changes of a container's layout, idle and with clients."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import click

from shardmw.bench import options as types
from shardmw.bench.changing import Change, change_layout
from shardmw.bench.kinds import PLAIN
from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.sources import Mixed
from shardmw.bench.load.stage import Stage, run_text
from shardmw.bench.names import FlatNames, Names
from shardmw.bench.options import option
from shardmw.bench.plots.plot import Axis, Band, Plot, Series
from shardmw.bench.results.figures import latency
from shardmw.bench.results.runs import Run
from shardmw.bench.results.summary import Summary, summarize
from shardmw.bench.scenarios import base
from shardmw.bench.scenarios.rounds import plot_if_any
from shardmw.bench.site import Site
from shardmw.bench.tables import figure, number, plain
from shardmw.bench.units import parse_mix

#: The cases: no clients; clients, and the rows move as fast as they can;
#: clients, and the rows move at a bounded rate.
IDLE, UNBOUNDED, BOUNDED = CASES = ('idle', 'unbounded', 'bounded')

#: The parts of a load that is under way before, during and after a change.
PARTS = BEFORE, DURING, MOVING, AFTER = 'before', 'during', 'moving', 'after'

#: The container for which the duration of a change is computed.
LARGE_ROWS = 200_000_000

#: The goal of the p99 of a bounded change, divided by the p99 before it.
GOAL_RATIO = 1.5

# Objects that clients read and overwrite.
_OBJECTS = 1000

# Swift's default: a change waits for this time and the conn_timeout before
# rows move. Clusters of the benchmark have more.
_NODE_TIMEOUT = '10'

_MOST_POINTS = 120
_LEAST_STEP_SECONDS = 2
_READS = ('GET', 'list')
_ALL = 'all'

_CASES = types.several('cases', click.Choice(CASES))


@dataclass(frozen=True)
class Reshard(base.PacedScenario, base.ClusterScenario):
    """Changes of the number of shards, idle and while clients write."""

    name = 'reshard'
    minutes = 60

    rows: int = base.shared('rows', 1_000_000)
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
    size: int = base.shared('size', 1)
    processes: int = base.shared('processes', 2)

    @property
    def changes(self) -> list[tuple[int, int]]:
        """Return the shard counts before and after each change."""
        back = reversed(self.shards[:-1])
        return list(pairwise((0, *self.shards, *back, 0)))

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        cached = str(self.info_cache_seconds)
        settings = {
            'proxy-server.recheck_container_existence': cached,
            'proxy-server.recheck_account_existence': cached,
            'internal-client.node_timeout': _NODE_TIMEOUT,
        }
        names = FlatNames(self.rows)
        count = min(_OBJECTS, len(names))
        objects = tuple(names[i * len(names) // count] for i in range(count))
        with stage.site(self.cluster(settings)) as site:
            for case in self.cases:
                container = base.filled(stage, site, PLAIN, names)
                site.populate(container, objects, self.size)
                for former, shards in self.changes:
                    step = {'case': case, 'former': former, 'shards': shards}
                    of_clients = {}
                    if case == IDLE:
                        change = self._changed(stage, site, container, step)
                    else:
                        change, of_clients = self._with_clients(
                            stage, site, container, objects, step
                        )
                    yield {
                        **step,
                        'rows_moved': change.rows_moved,
                        'rows_per_second': change.rows_per_second,
                        'phases': {p.name: p.seconds for p in change.phases},
                        **of_clients,
                        'change': change._asdict(),
                    }

    def _with_clients(
        self,
        stage: Stage,
        site: Site,
        container: str,
        objects: Names,
        step: Mapping,
    ) -> tuple[Change, dict[str, object]]:
        """Make a change during a load; return it and the load's figures."""
        source = Mixed(
            site.container_path(container),
            parse_mix(self.mix),
            objects,
            self.size,
            _word(step),
            self.page,
        )
        load = site.load(source, self.clients, pace_seconds=self.pace_seconds)
        running = stage.clients.begin(load)
        running.sleep_until(self.seconds)
        change = self._changed(stage, site, container, step)
        time.sleep(self.seconds)
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

    def _changed(
        self, stage: Stage, site: Site, container: str, step: Mapping
    ) -> Change:
        label = f'{self._case(step)}, {_change_text(step)}'
        bound = self.rows_per_second if step['case'] == BOUNDED else 0
        options = (
            *('--settle-seconds', plain(self.settle_seconds)),
            *('--info-cache-seconds', plain(self.info_cache_seconds)),
            *('--rows-per-second', str(bound)),
        )
        path = f'{site.account.name}/{container}'
        with stage.screen.status(label):
            change = change_layout(site.cluster, path, step['shards'], options)
        stage.screen.line(
            f'{label}: {number(change.rows_moved)} rows, '
            f'{figure(change.rows_per_second)} rows/s, '
            f'{figure(change.seconds)} s in all'
        )
        problems = (each['problem'] for each in change.moments)
        for problem in dict.fromkeys(problems):
            if problem:
                stage.screen.warning(f'the change waited: {problem}')
        return change

    def _case(self, step: Mapping) -> str:
        return {
            IDLE: 'no clients',
            UNBOUNDED: 'clients, no bound',
            BOUNDED: f'clients, {number(self.rows_per_second)} rows/s',
        }[step['case']]

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        rows = figures['rows']
        return {
            'changes': rows,
            'case_of': self._case,
            'change_of': _change_text,
            'part_of': _part,
            'latencies': _latencies,
            'failures': _failures,
            'whole': (BEFORE, DURING, AFTER),
            'phases': dict.fromkeys(n for row in rows for n in row['phases']),
            'with_clients': [row for row in rows if BEFORE in row],
            'all': _ALL,
            'goal': GOAL_RATIO,
            'large_rows': LARGE_ROWS,
            'objects': min(_OBJECTS, self.rows),
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        return [
            plot
            for row in figures['rows']
            if row.get('points')
            for plot in self._over_time(row)
        ]

    def _over_time(self, row: Mapping) -> Iterator[Plot]:
        points, step = row['points'], row['point_seconds']
        words = f'{_change_text(row)} ({self._case(row)})'
        change = Change(**row['change'])
        began = row['seconds_before']
        moved = [(began + at, rate) for at, rate in change.rates(step)]
        # the time after the command belongs to its last phase
        *phases, last = change.phases
        end = points[-1]['seconds'] - began
        phases.append(last._replace(end=max(end, last.end)))
        shown = {
            'x': Axis('time since the clients began (s)'),
            'note': f'Each point is of {step} s. Writes: PUT and DELETE of '
            'objects; reads: GET of objects and of pages of the listing.',
            'bands': [
                Band(each.name, began + each.begin, began + each.end)
                for each in phases
            ],
        }
        requests = [(each['seconds'], each['rate']) for each in points]
        yield from plot_if_any(
            f'rates-{_word(row)}',
            f'Rates over time: {words}',
            [
                _line('requests of clients', requests),
                _line('rows moved', moved),
            ],
            y=Axis('rate (/s)', log=True),
            **shown,
        )
        lines = [
            _line(
                f'{name} {share}',
                [
                    (each['seconds'], each[name][f'{share}_ms'])
                    for each in points
                ],
            )
            for share in ('p99', 'p50')
            for name in ('writes', 'reads')
        ]
        yield from plot_if_any(
            f'latency-{_word(row)}',
            f'Latency over time: {words}',
            lines,
            y=Axis('latency (ms)', log=True),
            **shown,
        )


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


def _line(label: str, points: Sequence[tuple]) -> Series:
    """Return a line through the points that have a value, and not 0."""
    known = [(x, y) for x, y in points if y]
    return Series(label, [x for x, _ in known], [y for _, y in known])


def _word(step: Mapping) -> str:
    """Return what tells the objects and plots of changes apart."""
    return f'{step["case"]}-{step["former"]}-{step["shards"]}'


def _change_text(step: Mapping) -> str:
    counts = (step['former'], step['shards'])
    return ' to '.join(str(n) if n else PLAIN.label for n in counts)


def _part(row: Mapping, part: str, kind: str = _ALL) -> Summary | None:
    if part not in row:
        return None
    summary = Run.from_json(row[part]).summary
    if kind == _ALL:
        return summary
    return summary.of(kind) if kind in summary.by_operation else None


def _latencies(
    row: Mapping, name: str, kind: str = _ALL
) -> dict[str, float | None]:
    summaries = {part: _part(row, part, kind) for part in PARTS}
    return {
        part: each and getattr(each.latency, name)
        for part, each in summaries.items()
    }


def _failures(row: Mapping) -> tuple[int | None, dict[str, int] | None]:
    """Return the refused requests and the errors of a load, if any."""
    parts = [_part(row, part) for part in (BEFORE, DURING, AFTER)]
    known = [each for each in parts if each]
    if not known:
        return None, None
    errors = sum((Counter(each.errors) for each in known), Counter())
    return sum(each.refused for each in known), dict(errors)
