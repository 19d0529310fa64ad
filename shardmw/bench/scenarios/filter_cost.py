# SPDX-License-Identifier: Apache-2.0
"""``filter-cost``: what the filter itself takes for a request to an object."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardmw.bench.comparing import interval_text, ratio_text
from shardmw.bench.errors import BenchError
from shardmw.bench.figures import Interval, median_interval, ratio_interval
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.memcached import Operations, operations
from shardmw.bench.names import FlatNames
from shardmw.bench.options import (
    CLIENT_COUNTS,
    COUNT,
    COUNTS,
    POSITIVE,
    RATE,
)
from shardmw.bench.parameters import check_shards, option
from shardmw.bench.plot import LINE, REFERENCE, Axis, Plot, Series
from shardmw.bench.ratelimit.limits import (
    SECRET_BYTES,
    SHARDMW,
    STOCK,
    token_settings,
)
from shardmw.bench.ratelimit.stage import Bed
from shardmw.bench.scenarios.parameters import ClusterParameters
from shardmw.bench.site import Site
from shardmw.bench.sources import Deletes, Heads, NamedUploads, Reads
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table, figure, number, plain
from shardmw.bench.turns import rotated
from shardmw.saio.topology import MEMCACHED, Server

NAME = 'filter-cost'
SUMMARY = "The filter's own time, and memcached's work, for an object request."
PUBLISHED = ''

#: Microseconds for a request, at most.
GOAL_US = 60

READS = ('GET', 'HEAD')
WRITES = ('PUT', 'DELETE')
METHODS = ('PUT', 'GET', 'HEAD', 'DELETE')

#: Limits in this process, by what tables call them. None makes a write wait.
OFF = 'off'
AHEAD = 'on'
EACH = 'on, each write booked'
SWIFTS = "on, by Swift's ratelimit"
LIMITS: Mapping[str, Mapping[str, str]] = {
    OFF: {},
    # slots are a microsecond apart: many are taken in one go
    AHEAD: {'container_ratelimit_0': '1000000'},
    # so many others may write that a worker takes no slot ahead of its writes
    EACH: {'container_ratelimit_0': '10000', 'ratelimit_proxies': '100000'},
    SWIFTS: {'container_ratelimit_0': '1000000'},
}

# What the filter keeps is written behind the answer.
_SETTLE_SECONDS = 0.5


@dataclass(frozen=True)
class Parameters(ClusterParameters):
    """What it is made with."""

    shards: tuple[int, ...] = option(
        (4, 32, 512), COUNTS, 'Shard counts, beside the plain container.'
    )
    requests: int = option(
        2000, COUNT, 'In this process: requests that are timed together.'
    )
    rounds: int = option(
        8, POSITIVE, 'In this process: how often, all in turns.'
    )
    clients: tuple[int, ...] = option(
        (1, 16),
        CLIENT_COUNTS,
        'On the cluster: clients at once.',
        '-t',
        '--clients',
    )
    objects: int = option(400, COUNT, 'On the cluster: requests of each kind.')
    cluster_shards: tuple[int, ...] = option(
        (32, 512), COUNTS, 'On the cluster: shard counts.'
    )
    limit: float = option(
        1000.0, RATE, 'On the cluster: writes/s of a container, if limited.'
    )

    def check(self) -> None:
        """As that of all; the cluster takes so many shards."""
        super().check()
        check_shards(self.cluster_shards, self.settings)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The containers that the filter's time is measured of."""
        return PLAIN, *map(sharded, self.shards)


class _Case(NamedTuple):
    """What is timed together.

    :param kind: of the container; None for the app without the filter
    """

    limits: str
    method: str
    kind: Kind | None


def measure(stage: Stage, keep) -> dict[str, object]:
    """Time requests in this process, and count those of a cluster's."""
    parameters = stage.parameters
    figures: dict[str, object] = {'rows': [], 'operations': []}
    options = parameters.cluster(token_settings(os.urandom(SECRET_BYTES)))
    with stage.site(options) as site:
        memcached = site.cluster.servers[MEMCACHED]
        timer = _Timer(parameters, memcached)
        for turn in range(parameters.rounds):
            figures['rows'] += timer.round(turn)
            keep(figures)
            stage.screen.line(
                f'round {turn + 1} of {parameters.rounds} in this process'
            )
        bed = Bed(site.cluster, site.account)
        for limiter in (None, STOCK, SHARDMW):
            bed.limit(limiter, parameters.limit)
            for kind in (PLAIN, *map(sharded, parameters.cluster_shards)):
                if limiter == STOCK and not kind.is_plain:
                    continue
                container = bed.filled(kind.shards)
                for clients in parameters.clients:
                    figures['operations'] += [
                        {'filter': limiter, 'kind': kind.as_json(), **each}
                        for each in _counted(stage, site, container, clients)
                    ]
                    keep(figures)
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """The filter's own time, and what memcached was asked for."""
    rows = figures['rows']
    return [
        _time_table(parameters, rows),
        _booking_table(parameters, rows),
        _operations_table(parameters, figures['operations']),
    ]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """The filter's own time by the container."""
    kinds = parameters.kinds
    found = []
    for limits in (OFF, AHEAD, EACH):
        series = []
        for method in methods_of(limits):
            points = [
                (i, own)
                for i, kind in enumerate(kinds)
                if (own := _own(figures['rows'], limits, method, kind))
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
        if series:
            ends = 0, len(kinds) - 1
            series.append(Series('goal', ends, (GOAL_US,) * 2, REFERENCE))
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
    """The requests that are timed with a limit: reads don't book."""
    return WRITES if limits in (EACH, SWIFTS) else METHODS


def kinds_of(limits: str, kinds: Sequence[Kind]) -> list[Kind]:
    """The containers that are: Swift's own filter knows plain ones only."""
    return [kind for kind in kinds if limits != SWIFTS or kind.is_plain]


def own_times(
    rows: Sequence[Mapping], limits: str, method: str, kind: Kind
) -> dict[int, float]:
    """The filter's own microseconds, by the round. Pure.

    It is what the request took, without what the app took in that round.
    """
    base = {each['turn']: each['us'] for each in _of(rows, OFF, method, None)}
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
            *(_Case(OFF, method, None) for method in METHODS),
            *(
                _Case(limits, method, kind)
                for limits in LIMITS
                for method in methods_of(limits)
                for kind in kinds_of(limits, parameters.kinds)
            ),
        ]
        self._apps = {
            limits: inprocess.limited_by_swift(settings)
            if limits == SWIFTS
            else inprocess.filtered(settings)
            for limits, settings in LIMITS.items()
        }
        # a container for each limit, lest one moves the other's counters
        self._requests = {
            (limits, kind): inprocess.Requests(
                kind, f'container-{i}-{kind.parts}', memcached.address
            )
            for i, limits in enumerate(LIMITS)
            for kind in kinds_of(limits, parameters.kinds)
        }

    def round(self, turn: int) -> list[dict[str, object]]:
        """Each case once."""
        return [self._timed(case, turn) for case in rotated(self._cases, turn)]

    def _timed(self, case: _Case, turn: int) -> dict[str, object]:
        app = self._inprocess.null_app
        if case.kind is not None:
            app = self._apps[case.limits]
        requests = self._requests[case.limits, case.kind or PLAIN]
        environs = requests.environs(case.method, self._count)
        # as after a while: each shard was written to of late
        warm_up = requests.environs(case.method, self._count)
        self._inprocess.check(app, warm_up)
        before = operations(self._memcached)
        took = self._inprocess.microseconds_each(app, environs)
        counts = operations(self._memcached).since(before)
        return {
            'limits': case.limits,
            'method': case.method,
            'kind': case.kind.as_json() if case.kind else None,
            'turn': turn,
            'us': took,
            'requests': len(environs),
            'operations': counts._asdict(),
        }


def _counted(
    stage: Stage, site: Site, container: str, clients: int
) -> list[dict[str, object]]:
    """What memcached is asked for on a cluster: PUT, GET, HEAD and DELETE."""
    path = site.container_path(container)
    names = FlatNames(stage.parameters.objects)
    sources = {
        'PUT': NamedUploads(path, names, 1),
        'GET': Reads(path, names),
        'HEAD': Heads(path, names),
        'DELETE': Deletes(path, names),
    }
    server = site.cluster.servers[MEMCACHED]
    found = []
    for method, source in sources.items():
        # what is looked up once a minute is known
        site.account.miss(container, writes=method in WRITES)
        time.sleep(_SETTLE_SECONDS)
        before = operations(server)
        label = f'{method}, {container}'
        load = site.load(source, min(clients, len(names)), count=len(names))
        outcome = stage.run(load, label)
        time.sleep(_SETTLE_SECONDS)
        counts = operations(server).since(before)
        answered = sum(each.is_admitted for each in outcome.samples)
        if answered != len(names):
            raise BenchError(
                f'{label}: {len(names) - answered} requests failed; with a '
                'limit, raise it so that none is refused'
            )
        stage.screen.line(
            f'{label}, clients {clients}: '
            f'{number(sum(counts) / answered, 2)} operations a request'
        )
        found.append(
            {
                'method': method,
                'clients': clients,
                'requests': answered,
                'operations': counts._asdict(),
            }
        )
    return found


def _time_table(parameters: Parameters, rows: Sequence[Mapping]) -> Table:
    kinds = parameters.kinds
    least, most = kinds[1], kinds[-1]
    cells = []
    for limits in LIMITS:
        for method in methods_of(limits):
            base = _of(rows, OFF, method, None)
            times = [_own(rows, limits, method, kind) for kind in kinds]
            if not any(times):
                continue
            growth = _growth(rows, limits, method, least, most)
            cells.append(
                (
                    limits,
                    method,
                    number(median_interval(b['us'] for b in base).median, 1),
                    *map(_time_text, times),
                    ratio_text(growth),
                    interval_text(growth),
                )
            )
    return Table(
        "The filter's own time for a request to an object, in µs",
        (
            *('write limits', 'request', 'app alone'),
            *(kind.label for kind in kinds),
            *(f'{most.label} by {least.label}', '95 % interval'),
        ),
        cells,
        (
            'Processor time, in one process, above an app that answers at '
            'once; what that takes by itself (*app alone*) is subtracted. '
            f'Medians of {number(parameters.rounds)} rounds of '
            f'{number(parameters.requests)} requests each, all in turns, with '
            'their intervals (95 % with six rounds or more). The info of the '
            'container and the sums over its shards are known, as on a busy '
            'proxy: what it takes to look them up, once a minute or so, is '
            'not in it.',
            '*on*: requests come as fast as they can, so a worker takes many '
            'slots of a container in one go, the fewer the more containers '
            'they are spread over. *Each write booked*: every write asks '
            'memcached for its slot, as where a container has less than ten '
            'writes a second from a worker. A container that was not written '
            'to for some seconds takes several operations to book, so many '
            "shards with few writes each cost most. *Swift's ratelimit*: that "
            'filter in the place of this one, which asks memcached for each '
            'write. The work of memcached itself is not in any of it.',
            f'The goal is {GOAL_US} µs or less, and none of it growing with '
            'N.',
        ),
        names=2,
    )


def _booking_table(parameters: Parameters, rows: Sequence[Mapping]) -> Table:
    kinds = parameters.kinds
    cells = []
    for limits in LIMITS:
        for method in methods_of(limits):
            each = [
                _operations_each(_of(rows, limits, method, kind))
                for kind in kinds
            ]
            if any(one is not None for one in each):
                cells.append(
                    (limits, method, *(number(one, 3) for one in each))
                )
    return Table(
        'What memcached was asked for meanwhile, by request',
        ('write limits', 'request', *(kind.label for kind in kinds)),
        cells,
        ("Operations of all kinds by memcached's own count, of all rounds.",),
        names=2,
    )


def _operations_table(
    parameters: Parameters, rows: Sequence[Mapping]
) -> Table:
    bases = {
        (each['method'], each['clients'], bool(each['filter'])): each
        for each in rows
        if each['kind'] == PLAIN.as_json() and each['filter'] in (None, STOCK)
    }
    cells = []
    for row in rows:
        key = row['method'], row['clients'], bool(row['filter'])
        counts = Operations(**row['operations'])
        requests = row['requests']
        all_of_it = sum(counts) / requests
        base = _operations_each([bases[key]]) if key in bases else None
        is_base = bases.get(key) is row
        more = None if is_base or base is None else all_of_it - base
        cells.append(
            (
                row['filter'] or 'none',
                Kind.from_json(row['kind']).label,
                row['method'],
                number(row['clients']),
                *(
                    number(one / requests, 2)
                    for one in (counts.get, counts.set, counts.incr)
                ),
                number(
                    (counts.decr + counts.delete + counts.touch) / requests, 2
                ),
                number(all_of_it, 2),
                '—' if more is None else f'{more:+.2f}',
            )
        )
    return Table(
        'memcached operations for a request to an object, on a cluster',
        (
            *('filter that limits', 'container', 'request', 'clients'),
            *('get', 'set', 'incr', 'other', 'all', "more than Swift's"),
        ),
        cells,
        (
            "By memcached's own count, over "
            f'{number(parameters.objects)} requests; all filters of the '
            'pipeline are in it, and tokens are checked without memcached. '
            f'The limit is {plain(parameters.limit)} /s for a container, so '
            "that nobody waits. *Swift's*: of a plain container, without a "
            "limit, or with that of Swift's own filter. A shard that was not "
            'written to for some seconds takes several operations to book: '
            'the more shards the same writes are spread over, the more of '
            'them do.',
        ),
        names=3,
    )


def _operations_each(rows: Sequence[Mapping]) -> float | None:
    """Operations by request, of all rounds."""
    requests = sum(each['requests'] for each in rows)
    counts = sum(sum(each['operations'].values()) for each in rows)
    return counts / requests if requests else None


def _own(
    rows: Sequence[Mapping], limits: str, method: str, kind: Kind
) -> Interval | None:
    times = own_times(rows, limits, method, kind)
    return median_interval(times.values()) if times else None


def _growth(
    rows: Sequence[Mapping], limits: str, method: str, least: Kind, most: Kind
) -> Interval | None:
    if least == most:
        return None
    few = own_times(rows, limits, method, least)
    many = own_times(rows, limits, method, most)
    return ratio_interval((many[turn], few.get(turn)) for turn in many)


def _of(
    rows: Sequence[Mapping], limits: str, method: str, kind: Kind | None
) -> list[Mapping]:
    wanted = limits, method, kind.as_json() if kind else None
    return [
        each
        for each in rows
        if (each['limits'], each['method'], each['kind']) == wanted
    ]


def _time_text(own: Interval | None) -> str:
    if own is None:
        return '—'
    text = figure(own.median)
    if own.confidence:
        text += f' ({figure(own.low)} to {figure(own.high)})'
    return text


def _word(limits: str) -> str:
    """Limits in a name."""
    return f'limits-{limits.replace(",", "").replace(" ", "-")}'
