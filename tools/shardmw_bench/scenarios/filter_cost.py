# SPDX-License-Identifier: Apache-2.0
"""``filter-cost``: the filter's own time for a request."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from shardmw_saio.topology import MEMCACHED, Server

from shardmw_bench.kinds import PLAIN, Kind
from shardmw_bench.load.stage import Stage, rotated
from shardmw_bench.options import COUNT, option
from shardmw_bench.plots.plot import Axis, Plot
from shardmw_bench.ratelimit.limits import token_settings
from shardmw_bench.results.comparing import Row
from shardmw_bench.scenarios import base, rounds
from shardmw_bench.targets.usage import operations

WRITES = ('PUT', 'DELETE')
LISTING = 'listing'
METHODS = ('GET', 'HEAD', *WRITES, LISTING)

#: The goals: microseconds for a request without limits, at most.
GOALS_US = {'GET': 3, 'HEAD': 3, 'PUT': 15}

#: The write limits, by their names in tables. None of them delays a write.
OFF = 'off'
AHEAD = 'on'
EACH = 'on, each write counted'
SWIFTS = "on, by Swift's ratelimit"
LIMITS: Mapping[str, Mapping[str, str]] = {
    OFF: {},
    # slots are a microsecond apart: many are reserved at once
    AHEAD: {'container_ratelimit_0': '1000000'},
    # with so many other proxies, a worker reserves no slot ahead
    EACH: {'container_ratelimit_0': '10000', 'ratelimit_proxies': '100000'},
    SWIFTS: {'container_ratelimit_0': '1000000'},
}

# A listing takes as long as this number of other requests.
_LISTINGS_SHARE = 100

_own_us = rounds.figure_of('own_us')


class Case(NamedTuple):
    """Requests that are timed together.

    :param filters: 0 for the app alone
    """

    limits: str
    method: str
    kind: Kind
    filters: int = 1


@dataclass(frozen=True)
class FilterCost(base.ClusterScenario):
    """The filter's own time, and memcached's work, for a request."""

    name = 'filter-cost'
    minutes = 2

    shards: tuple[int, ...] = base.shared('shards', (4, 32, 512))
    requests: int = option(
        2000,
        COUNT,
        'Requests that are timed together; for listings, one in '
        f'{_LISTINGS_SHARE} of them.',
    )
    rounds: int = base.shared('rounds', 8)

    @property
    def cases(self) -> list[Case]:
        """Return all cases.

        With limits, only writes are timed. Swift's own filter limits plain
        containers only.
        """
        return [
            *(Case(OFF, method, PLAIN, 0) for method in METHODS),
            *(
                Case(limits, method, kind)
                for limits in LIMITS
                for method in (METHODS if limits == OFF else WRITES)
                for kind in self.kinds
                if limits != SWIFTS or kind.is_plain
            ),
        ]

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        with stage.site(self.cluster(token_settings())) as site:
            timed = self._timer(site.cluster.servers[MEMCACHED])
            for turn in range(self.rounds):
                for case in rotated(self.cases, turn):
                    yield {**timed(case), 'turn': turn}
                stage.screen.line(f'round {turn + 1} of {self.rounds}')

    def _timer(self, memcached: Server) -> Callable[[Case], dict[str, object]]:
        # not imported at the top: it imports all of Swift's proxy
        from shardmw_bench.targets import inprocess

        alone = {kind: inprocess.answering(kind) for kind in self.kinds}
        # one filter and one container for each: a filter and memcached must
        # not have cached anything of another case
        apps, requests = {}, {}
        for i, (limits, settings) in enumerate(LIMITS.items()):
            make = inprocess.filtered
            if limits == SWIFTS:
                make = inprocess.limited_by_swift
            for kind in self.kinds:
                apps[limits, kind] = make(settings, alone[kind])
                requests[limits, kind] = inprocess.requests_of(
                    kind, f'container-{i}-{kind.parts}', memcached.address
                )

        def timed(case: Case) -> dict[str, object]:
            key = case.limits, case.kind
            app = apps[key] if case.filters else alone[case.kind]
            environs = requests[key]
            count = self.requests
            if case.method == LISTING:
                count = max(1, count // _LISTINGS_SHARE)
            # warm up: the layout and other lookups are cached then
            for method, times in ((LISTING, 1), (case.method, count)):
                inprocess.check(app, environs(method, times))
            wanted = environs(case.method, count)
            before = operations(memcached)
            took = inprocess.microseconds_each(app, wanted)
            counts = operations(memcached)
            counts.subtract(before)
            return {
                **case._asdict(),
                'kind': case.kind.as_json(),
                'us': took,
                'requests': count,
                'operations': counts,
            }

        return timed

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        rows = figures['rows']
        alone = rounds.grouped(
            (row for row in rows if not row['filters']),
            lambda row: row['method'],
        )
        cases: dict[tuple, dict[Kind, Row]] = {}
        for row in rounds.compared(own_times(rows), 'limits', 'method'):
            key = row.conditions['limits'], row.conditions['method']
            cases.setdefault(key, {})[row.kind] = row
        return {
            'kinds': self.kinds,
            'cases': cases,
            'alone': {
                method: median(row['us'] for row in own)
                for method, own in alone.items()
            },
            'goals': {(OFF, method): us for method, us in GOALS_US.items()},
            'own_us': lambda row: row and rounds.median(row, _own_us),
            'operations': _operations,
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        rows = rounds.compared(own_times(figures['rows']), 'limits', 'method')
        found = []
        for limits in (OFF, AHEAD, EACH):
            goals = {
                f'goal, {name}': GOALS_US[name] for name in ('GET', 'PUT')
            }
            word = limits.replace(',', '').replace(' ', '-')
            found += rounds.plot_by_kind(
                f'limits-{word}',
                f"The filter's own time (limits {limits})",
                [
                    row
                    for row in rows
                    if row.conditions['limits'] == limits
                    and row.conditions['method'] != LISTING
                ],
                lambda row: row.conditions['method'],
                _own_us,
                Axis('CPU time per request (µs)'),
                levels=goals if limits == OFF else {},
            )
        return found


def own_times(rows: Sequence[Mapping]) -> list[dict[str, object]]:
    """Return the rows of the filter, with its ``own_us``. Pure.

    That is the time of the request less that of the app alone in the round,
    or None if that is not known.
    """
    alone = {
        (row['method'], row['turn']): row['us']
        for row in rows
        if not row['filters']
    }
    found = []
    for row in rows:
        if row['filters']:
            app_us = alone.get((row['method'], row['turn']))
            own_us = None if app_us is None else row['us'] - app_us
            found.append({**row, 'own_us': own_us})
    return found


def _operations(row: Row | None) -> float | None:
    """Return the operations of memcached by request."""
    rows = [point.row for point in row.runs] if row else []
    requests = sum(each['requests'] for each in rows)
    counts = sum(sum(each['operations'].values()) for each in rows)
    return counts / requests if requests else None
