# SPDX-License-Identifier: Apache-2.0
"""``reshard``: changes of a container's layout, idle and with clients."""

import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

import click
from shardmw_saio import ClusterOptions

from shardmw_bench import options as types
from shardmw_bench.changing import (
    MOVING,
    SETTLING,
    Change,
    change_layout,
    split_natively,
)
from shardmw_bench.kinds import PLAIN, Kind, sharded
from shardmw_bench.load.outcome import Outcome
from shardmw_bench.load.sources import Load, Mixed
from shardmw_bench.load.stage import Stage, rotated, run_text
from shardmw_bench.names import FlatNames, Names
from shardmw_bench.options import option
from shardmw_bench.plots.plot import Axis, Band, Plot, Series
from shardmw_bench.results.figures import Interval, latency, ratio_interval
from shardmw_bench.results.runs import Run
from shardmw_bench.results.summary import summarize
from shardmw_bench.scenarios import base
from shardmw_bench.scenarios.rounds import grouped, plot_if_any
from shardmw_bench.site import Site
from shardmw_bench.tables import figure, number, plain
from shardmw_bench.units import parse_mix

#: The cases: no clients; clients; clients, and rows move at a bounded rate.
IDLE, CLIENTS, BOUNDED = CASES = ('idle', 'clients', 'bounded')

#: What moves the rows.
SHARDMW, SWIFT = ('shardmw-admin', 'container-sharder')

#: The parts of a load that is under way before, during and after a change.
BEFORE, AFTER = 'before', 'after'
PARTS = (BEFORE, MOVING, SETTLING, AFTER)

#: The goals: the slowest change without clients, its longest waits, and the
#: highest ratio of a request's p99 while rows move to its p99 before.
GOAL_ROWS_PER_SECOND = 12_000
GOAL_WAITS_SECONDS = 10
GOAL_RATIO = 1.2

# Objects that clients read.
_OBJECTS = 1000

_NO_CONTAINER_FILTER = {'shardmw-container.use': 'egg:swift#healthcheck'}

# How long clients send as much as they can, to measure the highest rate.
_CARRIED_SECONDS = 10

_MOST_REPLICAS = 3
_PER_ROWS = 100_000
_MOST_POINTS = 120
_LEAST_STEP_SECONDS = 2
_READS = ('GET', 'list')

_CASES = types.several('cases', click.Choice(CASES))
_REPLICAS = types.several('counts', click.IntRange(1, _MOST_REPLICAS))


class Goal(NamedTuple):
    """A goal, and what was found; None if it was not measured."""

    what: str
    wanted: float
    found: float | None
    is_least: bool = False

    @property
    def is_met(self) -> bool:
        if self.found is None:
            return False
        at_most = self.found <= self.wanted
        return self.found >= self.wanted if self.is_least else at_most


@dataclass(frozen=True)
class Reshard(base.ClusterScenario):
    """Changes of the number of shards, idle and while clients write; Swift's
    own sharder beside them.
    """

    name = 'reshard'
    minutes = 55

    rows: int = base.shared('rows', 400_000)
    client_rows: int = option(
        100_000, types.COUNT, 'Rows in each container that clients use.'
    )
    shards: tuple[int, ...] = option(
        (4, 32),
        types.COUNTS,
        'Shard counts; 4,32 changes from 0 to 4, 32, 4 and 0 again.',
    )
    cases: tuple[str, ...] = option(
        (IDLE, CLIENTS),
        _CASES,
        'idle: no clients; clients: rows move while clients work; bounded: '
        'the same, at --rows-per-second.',
    )
    rounds: int = base.shared('rounds', 3)
    replicas: tuple[int, ...] = option(
        (1,),
        _REPLICAS,
        'Replicas of the containers: 1,2,3 measures all rounds with the first '
        'number, and one round without clients with each other.',
    )
    container_filter: bool = option(
        False, bool, 'Container servers with the filter shardmw-container.'
    )
    rows_per_second: int = option(
        2000, types.POSITIVE, 'How fast rows move in bounded changes.'
    )
    settle_seconds: float = option(
        3.0,
        types.DURATION,
        'How long the old place has to stay empty without clients; with '
        'clients, it is --seconds.',
    )
    info_cache_seconds: int = option(
        1, types.POSITIVE, 'How long proxies cache container info.'
    )
    seconds: float = option(
        30.0,
        types.DURATION,
        'How long the clients work before and after each change.',
    )
    clients: int = base.shared('clients', 16)
    percent: int = option(
        60,
        click.IntRange(1, 100),
        'How much the clients send, of what the machine carries.',
    )
    mix: str = option(
        'write=35,delete=20,read=30,list=15',
        types.MIX,
        'Requests of the clients, in percent.',
    )
    page: int = option(
        100, types.POSITIVE, 'Page size: the limit of the listings.'
    )
    size: int = base.shared('size', 1)
    processes: int = base.shared('processes', 2)
    workers: int = base.shared('workers', 2)

    @property
    def changes(self) -> list[tuple[int, int]]:
        """Return the shard counts before and after each change."""
        back = reversed(self.shards[:-1])
        return list(pairwise((0, *self.shards, *back, 0)))

    def ways(self, case: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
        """Return what moves rows, and the changes of one container by it."""
        yield SHARDMW, self.changes
        if case != BOUNDED:
            yield from ((SWIFT, [(0, ranges)]) for ranges in self.shards)

    def replicated(self, replicas: int) -> ClusterOptions:
        """Return the options of a cluster with so many replicas."""
        cached = str(self.info_cache_seconds)
        settings = {
            'proxy-server.recheck_container_existence': cached,
            'proxy-server.recheck_account_existence': cached,
            **({} if self.container_filter else _NO_CONTAINER_FILTER),
        }
        options = self.cluster(settings)
        return options.changed(replicas=replicas, devices=replicas)

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        for replicas, turn in product(self.replicas, range(self.rounds)):
            cases = self.cases
            if replicas != self.replicas[0]:
                cases = () if turn else tuple({IDLE} & {*self.cases})
            if not cases:
                continue
            place = {'replicas': replicas, 'turn': turn}
            # a new cluster: databases of earlier rounds would cost time
            with stage.site(self.replicated(replicas)) as site:
                carried = {}
                if cases != (IDLE,):
                    carried = self._carried(stage, site)
                for case in cases:
                    for way in rotated([*self.ways(case)], turn):
                        for row in self._changes(
                            stage, site, case, carried, *way
                        ):
                            yield {**place, **row}

    def _changes(
        self,
        stage: Stage,
        site: Site,
        case: str,
        carried: Mapping[int, float],
        mover: str,
        changes: Sequence[tuple[int, int]],
    ) -> Iterator[Mapping]:
        """Change a new container, and yield the figures of each change.

        :param carried: the most requests/s by shard count; empty if idle
        """
        container, objects = self._filled(stage, site, PLAIN, case)
        for former, shards in changes:
            step = {'case': case, 'mover': mover}
            step |= {'former': former, 'shards': shards}
            of_clients = {}
            if case == IDLE:
                change = self._changed(stage, site, container, step)
            else:
                most = carried[former], carried[shards]
                rate = self.percent / 100 * min(most)
                change, of_clients = self._with_clients(
                    stage, site, container, objects, step, rate
                )
                names = ('carried_before', 'carried_after')
                of_clients |= zip(names, most, strict=True)
            processor = {
                'servers_processor': change.servers_processor,
                'command_processor': change.command_processor,
            }
            yield {
                **step,
                'rows_moved': change.rows_moved,
                'rows_per_second': change.rows_per_second,
                'seconds': change.seconds,
                'waits_seconds': change.waits_seconds,
                **{
                    name: change.per_rows(seconds, _PER_ROWS)
                    for name, seconds in processor.items()
                },
                'phases': {p.name: p.seconds for p in change.phases},
                **of_clients,
                'change': change._asdict(),
            }

    def _filled(
        self, stage: Stage, site: Site, kind: Kind, case: str
    ) -> tuple[str, Names]:
        """Return a new container, and the names with objects in it."""
        names = FlatNames(self.rows if case == IDLE else self.client_rows)
        container = base.filled(stage, site, kind, names)
        if case == IDLE:
            return container, ()
        count = min(_OBJECTS, len(names))
        objects = tuple(names[i * len(names) // count] for i in range(count))
        site.populate(container, objects, self.size)
        return container, objects

    def _load(
        self,
        site: Site,
        container: str,
        objects: Names,
        tag: str,
        **fields: object,
    ) -> Load:
        source = Mixed(
            site.container_path(container),
            parse_mix(self.mix),
            objects,
            self.size,
            tag,
            self.page,
        )
        return site.load(source, self.clients, **fields)

    def _carried(self, stage: Stage, site: Site) -> dict[int, float]:
        """Return the most requests/s on a container of each shard count."""
        found = {}
        for shards in (0, *self.shards):
            kind = sharded(shards) if shards else PLAIN
            container, objects = self._filled(stage, site, kind, CLIENTS)
            seconds = min(_CARRIED_SECONDS, self.seconds)
            load = self._load(
                *(site, container, objects, 'carried'), seconds=seconds
            )
            label = f'{kind.label}: as many requests as possible'
            outcome = stage.run(load, label)
            found[shards] = summarize(outcome).done_rate
            stage.screen.line(f'{label}: {figure(found[shards])} /s')
        return found

    def _with_clients(
        self,
        stage: Stage,
        site: Site,
        container: str,
        objects: Names,
        step: Mapping,
        rate: float,
    ) -> tuple[Change, dict[str, object]]:
        """Make a change during a load; return it and the load's figures.

        :param rate: of all clients together, in requests/s
        """
        pace = self.clients / rate
        load = self._load(
            *(site, container, objects, _word(step)), pace_seconds=pace
        )
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
        whole = summarize(outcome)
        return change, {
            'rate': rate,
            'refused': whole.refused,
            'errors': whole.errors,
            'seconds_before': change.began_at - outcome.began_at,
            **{part: run.as_json() for part, run in runs.items()},
            'point_seconds': step_seconds,
            'points': points_of(outcome, step_seconds),
        }

    def _changed(
        self, stage: Stage, site: Site, container: str, step: Mapping
    ) -> Change:
        label = f'{self._case(step)}, {step["mover"]}, {_change_text(step)}'
        path = f'{site.account.name}/{container}'
        is_idle = step['case'] == IDLE
        with stage.screen.status(label):
            if step['mover'] == SWIFT:
                rows = self.rows if is_idle else self.client_rows
                change = split_natively(
                    site.cluster, path, step['shards'], rows
                )
            else:
                settle = self.settle_seconds if is_idle else self.seconds
                bound = self.rows_per_second * (step['case'] == BOUNDED)
                options = (
                    *('--settle-seconds', plain(settle)),
                    *('--info-cache-seconds', plain(self.info_cache_seconds)),
                    *('--rows-per-second', str(bound)),
                )
                change = change_layout(
                    site.cluster, path, step['shards'], options
                )
        stage.screen.line(
            f'{label}: {number(change.rows_moved)} rows, '
            f'{figure(change.rows_per_second)} rows/s, '
            f'{figure(change.waits_seconds)} s of waits, '
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
            CLIENTS: 'clients',
            BOUNDED: f'clients, {number(self.rows_per_second)} rows/s',
        }[step['case']]

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        rows = figures['rows']
        changes = [*grouped(rows, _key).values()]
        with_clients = [own for own in changes if own[0]['case'] != IDLE]
        return {
            'changes': changes,
            'idle': [own for own in changes if own[0]['case'] == IDLE],
            'with_clients': with_clients,
            'pairs': _pairs(changes),
            'kinds': dict.fromkeys(
                kind for own in with_clients for kind in _operations(own)
            ),
            'p99_range': _range_of_ratios,
            'failures_of': _failures,
            'goals': goals_of(
                [
                    own
                    for own in changes
                    if own[0]['mover'] == SHARDMW
                    and own[0]['replicas'] == self.replicas[0]
                ]
            ),
            'case_of': self._case,
            'change_of': _change_text,
            'of_rounds': _of_rounds,
            'most_rounds': _most_rounds,
            'p99_of': _median_p99,
            'ratio_of': _ratio,
            'operations_of': _operations,
            'part_of': _part,
            'phases': dict.fromkeys(n for row in rows for n in row['phases']),
            'goal_ratio': GOAL_RATIO,
            'per_rows': _PER_ROWS,
            'objects': min(_OBJECTS, self.client_rows),
            'shardmw_admin': SHARDMW,
            'container_sharder': SWIFT,
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        return [
            plot
            for row in figures['rows']
            if row['turn'] == 0 and row.get('points')
            for plot in self._over_time(row)
        ]

    def _over_time(self, row: Mapping) -> list[Plot]:
        points, began = row['points'], row['seconds_before']
        # the time after the command belongs to its last phase
        *phases, last = Change(**row['change']).phases
        end = points[-1]['seconds'] - began
        phases.append(last._replace(end=max(end, last.end)))
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
        case = f'{self._case(row)}, {row["mover"]}'
        return plot_if_any(
            f'latency-{_word(row)}',
            f'Latency over time: {_change_text(row)} ({case})',
            lines,
            x=Axis('time since the clients began (s)'),
            y=Axis('latency (ms)', log=True),
            note=f'Each point is of {row["point_seconds"]} s, in the first '
            'round. Writes: PUT and DELETE of objects; reads: GET of objects '
            'and of pages of the listing.',
            bands=[
                Band(each.name, began + each.begin, began + each.end)
                for each in phases
            ],
        )


def goals_of(changes: Sequence[Sequence[Mapping]]) -> list[Goal]:
    """Return the goals, and the worst change of each. Pure.

    :param changes: the rounds of each change
    """
    idle = [own for own in changes if own[0]['case'] == IDLE]
    loaded = [own for own in changes if own[0]['case'] == CLIENTS]
    rates = _medians(idle, 'rows_per_second')
    waits = _medians(idle, 'waits_seconds')
    ratios = [
        ratio.median
        for own in loaded
        for operation in _operations(own)
        if (ratio := _ratio(own, MOVING, operation))
    ]
    failed = [_failures([row]) for own in loaded for row in own]
    return [
        Goal(
            *('rows/s without clients', GOAL_ROWS_PER_SECOND),
            *(min(rates, default=None), True),
        ),
        *(
            Goal(what, wanted, max(found, default=None))
            for what, wanted, found in (
                ('waits without clients (s)', GOAL_WAITS_SECONDS, waits),
                ('p99 while rows move / before', GOAL_RATIO, ratios),
                ('requests refused or failed', 0, failed),
            )
        ),
    ]


def runs_of_parts(outcome: Outcome, change: Change) -> dict[str, Run]:
    """Return a run for each part of a load in which a change was made. Pure.

    A change without the phase of a part has no such part.
    """
    begin = outcome.began + change.began_at - outcome.began_at
    first = min(outcome.steady_from, (outcome.began + begin) / 2)
    over = outcome.began + outcome.seconds
    spans = {BEFORE: (first, begin)}
    for name in (MOVING, SETTLING):
        if phase := change.phase(name):
            spans[name] = (begin + phase.begin, begin + phase.end)
    spans[AFTER] = (begin + change.seconds, over)
    return {
        part: Run(
            'mixed', PLAIN, 0, {'part': part}, summarize(outcome.part(*span))
        )
        for part, span in spans.items()
    }


def points_of(outcome: Outcome, step: int) -> list[dict[str, object]]:
    """Return the latencies in each interval of ``step`` seconds. Pure.

    :returns: ``seconds`` is the middle of an interval; ``writes`` and
              ``reads`` are latencies in milliseconds, None without requests
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
            'writes': latency(writes)._asdict(),
            'reads': latency(reads)._asdict(),
        }
        for place, (writes, reads) in enumerate(bins)
    ]


def _line(label: str, points: Sequence[tuple]) -> Series:
    """Return a line through the points whose value is known and not 0."""
    known = [(x, y) for x, y in points if y]
    return Series(label, [x for x, _ in known], [y for _, y in known])


def _key(row: Mapping) -> tuple:
    """Return what the rounds of a change have in common."""
    names = ('case', 'replicas', 'mover', 'former', 'shards')
    return tuple(row[name] for name in names)


def _pairs(
    changes: Sequence[Sequence[Mapping]],
) -> list[tuple[Sequence[Mapping], Sequence[Mapping]]]:
    """Return the rounds of each change without clients and with them."""
    found: dict[tuple, dict[str, Sequence[Mapping]]] = {}
    for own in changes:
        case, *rest = _key(own[0])
        found.setdefault(tuple(rest), {})[case] = own
    return [
        (cases.get(IDLE, ()), cases.get(CLIENTS, ()))
        for cases in found.values()
        if cases.keys() & {IDLE, CLIENTS}
    ]


def _word(step: Mapping) -> str:
    """Return a word that tells the objects and plots of changes apart."""
    names = ('case', 'mover', 'former', 'shards')
    return '-'.join(str(step[name]) for name in names)


def _change_text(step: Mapping) -> str:
    counts = (step['former'], step['shards'])
    return ' to '.join(str(n) if n else PLAIN.label for n in counts)


def _of_rounds(own: Sequence[Mapping], name: str) -> Interval:
    """Return the median and the range of a figure; NaN if it is not known."""
    found = [row[name] for row in own if row[name] is not None] or [math.nan]
    return Interval(statistics.median(found), min(found), max(found), 0.0)


def _most_rounds(changes: Sequence[Sequence[Mapping]]) -> int:
    """Return how many rounds the change with the most rounds has."""
    return max(map(len, changes), default=0)


def _medians(changes: Sequence[Sequence[Mapping]], name: str) -> list[float]:
    """Return the median of a figure of each change that has it."""
    found = (_of_rounds(own, name).median for own in changes)
    return [each for each in found if not math.isnan(each)]


def _part(row: Mapping, part: str) -> Run | None:
    return Run.from_json(row[part]) if part in row else None


def _operations(own: Sequence[Mapping]) -> list[str]:
    return [*_part(own[0], BEFORE).summary.by_operation]


def _p99(row: Mapping, part: str, operation: str) -> float | None:
    """Return the p99 in milliseconds, if there were such requests."""
    run = _part(row, part)
    if run is None or operation not in run.summary.by_operation:
        return None
    return run.summary.of(operation).latency.p99_ms


def _median_p99(own: Sequence[Mapping], part: str, operation: str) -> float:
    """Return the median of the rounds; NaN if there were no such requests."""
    found = (_p99(row, part, operation) for row in own)
    return statistics.median([x for x in found if x] or [math.nan])


def _ratio(
    own: Sequence[Mapping], part: str, operation: str, of: str = BEFORE
) -> Interval | None:
    """Return the ratio of the p99 of a part to another's, round by round."""
    return ratio_interval(
        (_p99(row, part, operation), _p99(row, of, operation)) for row in own
    )


def _range_of_ratios(own: Sequence[Mapping], operation: str) -> str | None:
    """Return the ratio of the p99 while rows move to before, with range.

    A single round has no range.
    """
    pairs = (
        (_p99(row, MOVING, operation), _p99(row, BEFORE, operation))
        for row in own
    )
    found = [moving / before for moving, before in pairs if moving and before]
    if not found:
        return None
    median, low, high = statistics.median(found), min(found), max(found)
    if len(found) == 1:
        return f'{median:.2f}'
    return f'{median:.2f} ({low:.2f} to {high:.2f})'


def _failures(own: Sequence[Mapping]) -> int | None:
    """Return how many requests of clients were refused or failed."""
    if not own:
        return None
    return sum(row['refused'] + sum(row['errors'].values()) for row in own)
