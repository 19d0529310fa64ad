# SPDX-License-Identifier: Apache-2.0
"""``filter-cost``: the filter's own time for a request."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardmw.bench.figures import Interval, median_interval
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.memcached import operations
from shardmw.bench.options import COUNT, COUNTS, POSITIVE
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import LINE, REFERENCE, Axis, Plot, Series
from shardmw.bench.ratelimit.limits import SECRET_BYTES, token_settings
from shardmw.bench.scenarios.parameters import ClusterParameters
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table, figure, number
from shardmw.bench.turns import rotated
from shardmw.saio.topology import MEMCACHED, Server

NAME = 'filter-cost'
SUMMARY = "The filter's own time, and memcached's work, for a request."
PUBLISHED = ''

READS = ('GET', 'HEAD')
WRITES = ('PUT', 'DELETE')
LISTING = 'listing'
METHODS = (*READS, *WRITES, LISTING)

#: Microseconds for a request without limits, at most.
GOALS_US = {'GET': 3, 'HEAD': 3, 'PUT': 15}

#: The write limits, by what tables call them. None of them makes a write wait.
OFF = 'off'
AHEAD = 'on'
EACH = 'on, each write counted'
SWIFTS = "on, by Swift's ratelimit"
LIMITS: Mapping[str, Mapping[str, str]] = {
    OFF: {},
    # slots are a microsecond apart: many are reserved at once
    AHEAD: {'container_ratelimit_0': '1000000'},
    # so many others may write that a worker reserves no slot ahead
    EACH: {'container_ratelimit_0': '10000', 'ratelimit_proxies': '100000'},
    SWIFTS: {'container_ratelimit_0': '1000000'},
}

# A listing takes as long as so many other requests.
_LISTINGS_SHARE = 100


@dataclass(frozen=True)
class Parameters(ClusterParameters):
    """What it is made with."""

    shards: tuple[int, ...] = option(
        (4, 32, 512), COUNTS, 'Shard counts, beside the plain container.'
    )
    requests: int = option(
        2000,
        COUNT,
        'Requests that are timed together; of listings a '
        f'{_LISTINGS_SHARE}th.',
    )
    rounds: int = option(8, POSITIVE, 'How often, all in turns.')

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the containers that the filter's time is measured of."""
        return PLAIN, *map(sharded, self.shards)


class _Case(NamedTuple):
    """What is timed together.

    :param has_filter: False for the app alone
    """

    limits: str
    method: str
    kind: Kind
    has_filter: bool = True


def measure(stage: Stage, keep) -> dict[str, object]:
    """Time requests in this process; memcached is that of a cluster."""
    parameters = stage.parameters
    figures: dict[str, object] = {'rows': []}
    options = parameters.cluster(token_settings(os.urandom(SECRET_BYTES)))
    with stage.site(options) as site:
        timer = _Timer(parameters, site.cluster.servers[MEMCACHED])
        for turn in range(parameters.rounds):
            figures['rows'] += timer.round(turn)
            keep(figures)
            stage.screen.line(f'round {turn + 1} of {parameters.rounds}')
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Return the filter's own time, and what memcached was asked for."""
    rows = figures['rows']
    return [_time_table(parameters, rows), _memcached_table(parameters, rows)]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """Return the filter's own time for objects by the container."""
    kinds = parameters.kinds
    ends = 0, len(kinds) - 1
    found = []
    for limits in (OFF, AHEAD, EACH):
        series = []
        for method in methods_of(limits):
            points = [
                (i, own)
                for i, kind in enumerate(kinds)
                if method != LISTING
                and (own := _own(figures['rows'], limits, method, kind))
            ]
            if points:
                series.append(
                    Series(
                        method,
                        [i for i, _ in points],
                        [own.median for _, own in points],
                        LINE,
                        [own.low for _, own in points],
                        [own.high for _, own in points],
                    )
                )
        if not series:
            continue
        if limits == OFF:
            series += [
                Series(f'goal, {method}', ends, (goal,) * 2, REFERENCE)
                for method, goal in GOALS_US.items()
                if method != 'HEAD'
            ]
        found.append(
            Plot(
                f'{NAME}-{_word(limits)}',
                f"The filter's own time (limits {limits})",
                Axis('container', names=[kind.label for kind in kinds]),
                Axis('processor time of a request (µs)'),
                series,
                'Medians of the rounds, with their intervals.',
            )
        )
    return found


def methods_of(limits: str) -> tuple[str, ...]:
    """Return the requests that are timed with a limit: that count against it.

    All of them are without one.
    """
    return METHODS if limits == OFF else WRITES


def kinds_of(limits: str, kinds: Sequence[Kind]) -> list[Kind]:
    """Return the containers that are timed with a limit.

    Swift's own filter knows plain containers only.
    """
    return [kind for kind in kinds if limits != SWIFTS or kind.is_plain]


def own_times(
    rows: Sequence[Mapping], limits: str, method: str, kind: Kind
) -> dict[int, float]:
    """Return the filter's own microseconds, by the round. Pure.

    That is what the request took, without what the app alone took for it in
    that round.
    """
    base = {
        each['turn']: each['us'] for each in _of(rows, OFF, method, PLAIN, 0)
    }
    return {
        each['turn']: each['us'] - base[each['turn']]
        for each in _of(rows, limits, method, kind)
        if each['turn'] in base
    }


class _Timer:
    """Times requests in this process, all cases in turns."""

    def __init__(self, parameters: Parameters, memcached: Server) -> None:
        # not at the top, for it takes the whole of Swift's proxy
        from shardmw.bench import inprocess

        self._count = parameters.requests
        self._memcached = memcached
        self._inprocess = inprocess
        self._cases = [
            *(_Case(OFF, method, PLAIN, False) for method in METHODS),
            *(
                _Case(limits, method, kind)
                for limits in LIMITS
                for method in methods_of(limits)
                for kind in kinds_of(limits, parameters.kinds)
            ),
        ]
        self._alone = {
            kind: inprocess.answering(kind) for kind in parameters.kinds
        }
        # one filter and one container for each: what a filter or memcached
        # keeps of one is not for the others
        self._apps = {}
        self._requests = {}
        for i, (limits, settings) in enumerate(LIMITS.items()):
            for kind in kinds_of(limits, parameters.kinds):
                make = inprocess.filtered
                if limits == SWIFTS:
                    make = inprocess.limited_by_swift
                self._apps[limits, kind] = make(settings, self._alone[kind])
                self._requests[limits, kind] = inprocess.Requests(
                    kind, f'container-{i}-{kind.parts}', memcached.address
                )

    def round(self, turn: int) -> list[dict[str, object]]:
        """Return the rows of a round, in which each case has its turn."""
        return [self._timed(case, turn) for case in rotated(self._cases, turn)]

    def _timed(self, case: _Case, turn: int) -> dict[str, object]:
        key = case.limits, case.kind
        app = self._apps[key] if case.has_filter else self._alone[case.kind]
        count = self._count
        if case.method == LISTING:
            count = max(1, count // _LISTINGS_SHARE)
        environs = self._requests[key].environs
        # as after a while: the layout and what else is looked up are known
        for method, times in ((LISTING, 1), (case.method, count)):
            self._inprocess.check(app, environs(method, times))
        timed = environs(case.method, count)
        before = operations(self._memcached)
        took = self._inprocess.microseconds_each(app, timed)
        counts = operations(self._memcached).since(before)
        return {
            'limits': case.limits,
            'method': case.method,
            'kind': case.kind.as_json(),
            'filters': int(case.has_filter),
            'turn': turn,
            'us': took,
            'requests': len(timed),
            'operations': counts._asdict(),
        }


def _time_table(parameters: Parameters, rows: Sequence[Mapping]) -> Table:
    cells = []
    for limits in LIMITS:
        for method in methods_of(limits):
            alone = _of(rows, OFF, method, PLAIN, 0)
            times = [
                _own(rows, limits, method, kind) for kind in parameters.kinds
            ]
            if not any(times):
                continue
            goal = GOALS_US.get(method) if limits == OFF else None
            cells.append(
                (
                    limits,
                    method,
                    number(median_interval(b['us'] for b in alone).median, 1),
                    *map(_time_text, times),
                    number(goal),
                )
            )
    return Table(
        "The filter's own time for a request, in µs",
        (
            *('write limits', 'request', 'app alone'),
            *(kind.label for kind in parameters.kinds),
            'goal',
        ),
        cells,
        (
            'Processor time, in one process, above an app that answers at '
            'once, without what that takes for a request (*app alone*). '
            f'Medians of {number(parameters.rounds)} rounds of '
            f'{number(parameters.requests)} requests each, with their 95 % '
            'intervals. What the filter looks up once a minute or so is '
            'known. *Listing*: a page of 1,000 rows; above a real Swift, '
            'connections to container servers take more than the filter '
            '(`listing-cost`).',
            '*on*: a worker reserves many slots of a container at once, the '
            'fewer the more shards the writes are spread over. *Each write '
            'counted*: as where a worker has less than ten writes a second '
            "to a shard. *Swift's ratelimit*: that filter in the place of "
            'this one.',
        ),
        names=2,
    )


def _memcached_table(parameters: Parameters, rows: Sequence[Mapping]) -> Table:
    cells = []
    for limits in LIMITS:
        for method in methods_of(limits):
            each = [
                _operations_each(_of(rows, limits, method, kind))
                for kind in parameters.kinds
            ]
            if any(one is not None for one in each):
                cells.append(
                    (limits, method, *(number(one, 3) for one in each))
                )
    return Table(
        'What memcached was asked for meanwhile, by request',
        (
            *('write limits', 'request'),
            *(kind.label for kind in parameters.kinds),
        ),
        cells,
        ("Operations of all kinds by memcached's own count, of all rounds.",),
        names=2,
    )


def _operations_each(rows: Sequence[Mapping]) -> float | None:
    """Return the operations by request, of all rounds."""
    requests = sum(each['requests'] for each in rows)
    counts = sum(sum(each['operations'].values()) for each in rows)
    return counts / requests if requests else None


def _own(
    rows: Sequence[Mapping], limits: str, method: str, kind: Kind
) -> Interval | None:
    times = own_times(rows, limits, method, kind)
    return median_interval(times.values()) if times else None


def _of(
    rows: Sequence[Mapping],
    limits: str,
    method: str,
    kind: Kind,
    filters: int = 1,
) -> list[Mapping]:
    wanted = limits, method, kind.as_json(), filters
    names = ('limits', 'method', 'kind', 'filters')
    return [
        each for each in rows if tuple(each[name] for name in names) == wanted
    ]


def _time_text(own: Interval | None) -> str:
    if own is None:
        return '—'
    text = figure(own.median)
    if own.confidence:
        text += f' ({figure(own.low)} to {figure(own.high)})'
    return text


def _word(limits: str) -> str:
    """Return limits as a part of a name."""
    return f'limits-{limits.replace(",", "").replace(" ", "-")}'
