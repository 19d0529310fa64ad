# SPDX-License-Identifier: Apache-2.0
"""``filter-cost``: the filter's own time for a request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardmw.bench.kinds import PLAIN, Kind
from shardmw.bench.load.stage import Stage
from shardmw.bench.load.turns import rotated
from shardmw.bench.options import COUNT
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import Axis, Plot
from shardmw.bench.ratelimit.limits import token_settings
from shardmw.bench.results.figures import Interval, median_interval
from shardmw.bench.scenarios import Figures, Keep, Scenario, grouping
from shardmw.bench.scenarios import parameters as shared
from shardmw.bench.tables import Table, number
from shardmw.bench.targets.memcached import operations
from shardmw.saio.topology import MEMCACHED, Server

NAME = 'filter-cost'

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

# A listing takes as long as so many other requests.
_LISTINGS_SHARE = 100

# About how long a request takes, with what is not timed of it.
_REQUEST_SECONDS = 70e-6


@dataclass(frozen=True)
class Parameters(shared.ClusterParameters):
    """The options of the scenario."""

    shards: tuple[int, ...] = shared.shards_option(4, 32, 512)
    requests: int = option(
        2000,
        COUNT,
        'Requests that are timed together; for listings, one in '
        f'{_LISTINGS_SHARE} of them.',
    )
    rounds: int = shared.rounds_option(8)


class Case(NamedTuple):
    """Requests that are timed together.

    :param has_filter: False for the app alone
    """

    limits: str
    method: str
    kind: Kind
    has_filter: bool = True


def cases(kinds: Sequence[Kind]) -> list[Case]:
    """Return all cases. Pure.

    With limits, only writes are timed. Swift's own filter limits plain
    containers only.
    """
    return [
        *(Case(OFF, method, PLAIN, False) for method in METHODS),
        *(
            Case(limits, method, kind)
            for limits in LIMITS
            for method in (METHODS if limits == OFF else WRITES)
            for kind in kinds
            if limits != SWIFTS or kind.is_plain
        ),
    ]


def measure(stage: Stage, keep: Keep) -> Figures:
    """Time requests in this process; memcached is that of a cluster."""
    parameters = stage.parameters
    figures: dict[str, object] = {'rows': []}
    options = parameters.cluster(token_settings())
    with stage.site(options) as site:
        timed = _timer(parameters, site.cluster.servers[MEMCACHED])
        every = cases(parameters.kinds)
        for turn in range(parameters.rounds):
            for case in rotated(every, turn):
                figures['rows'].append({**timed(case), 'turn': turn})
            keep(figures)
            stage.screen.line(f'round {turn + 1} of {parameters.rounds}')
    return figures


def _timer(
    parameters: Parameters, memcached: Server
) -> Callable[[Case], dict[str, object]]:
    """Return a function that times the requests of a case."""
    # not imported at the top: it imports all of Swift's proxy
    from shardmw.bench.targets import inprocess

    alone = {kind: inprocess.answering(kind) for kind in parameters.kinds}
    # one filter and one container for each: a filter and memcached must not
    # have cached anything of another case
    apps, requests = {}, {}
    for i, (limits, settings) in enumerate(LIMITS.items()):
        make = inprocess.filtered
        if limits == SWIFTS:
            make = inprocess.limited_by_swift
        for kind in parameters.kinds:
            apps[limits, kind] = make(settings, alone[kind])
            requests[limits, kind] = inprocess.Requests(
                kind, f'container-{i}-{kind.parts}', memcached.address
            )

    def timed(case: Case) -> dict[str, object]:
        key = case.limits, case.kind
        app = apps[key] if case.has_filter else alone[case.kind]
        environs = requests[key].environs
        count = parameters.requests
        if case.method == LISTING:
            count = max(1, count // _LISTINGS_SHARE)
        # warm up: the layout and other lookups are cached then
        for method, times in ((LISTING, 1), (case.method, count)):
            inprocess.check(app, environs(method, times))
        wanted = environs(case.method, count)
        before = operations(memcached)
        took = inprocess.microseconds_each(app, wanted)
        counts = operations(memcached).since(before)
        return {
            'limits': case.limits,
            'method': case.method,
            'kind': case.kind.as_json(),
            'filters': int(case.has_filter),
            'us': took,
            'requests': count,
            'operations': counts._asdict(),
        }

    return timed


def case_of(row: Mapping) -> Case:
    """Return the case that a row is of. Pure."""
    return Case(
        row['limits'],
        row['method'],
        grouping.kind_of(row),
        bool(row['filters']),
    )


def own_times(rows: Sequence[Mapping], case: Case) -> dict[int, float]:
    """Return the filter's own microseconds by round. Pure.

    These are those of the request less those of the app alone in the round.
    """
    groups = grouping.grouped(rows, case_of)
    alone = groups.get(Case(OFF, case.method, PLAIN, False), ())
    base = {each['turn']: each['us'] for each in alone}
    return {
        each['turn']: each['us'] - base[each['turn']]
        for each in groups.get(case, ())
        if each['turn'] in base
    }


def _own(rows: Sequence[Mapping], case: Case) -> Interval | None:
    times = own_times(rows, case)
    return median_interval(times.values()) if times else None


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return the filter's own time, and the operations of memcached."""
    rows, kinds = figures['rows'], parameters.kinds
    groups = grouping.grouped(rows, case_of)
    lines = dict.fromkeys(
        case[:2] for case in cases(kinds) if case in groups and case.has_filter
    )
    time_rows, memcached_rows = [], []
    for limits, method in lines:
        of_kinds = [Case(limits, method, kind) for kind in kinds]
        alone = groups.get(Case(OFF, method, PLAIN, False), ())
        app_alone = None
        if alone:
            app_alone = median_interval(each['us'] for each in alone).median
        goal = GOALS_US.get(method) if limits == OFF else None
        time_rows.append(
            (
                *(limits, method, number(app_alone, 1)),
                *(grouping.median_text(_own(rows, case)) for case in of_kinds),
                number(goal),
            )
        )
        memcached_rows.append(
            (
                *(limits, method),
                *(
                    number(_operations_each(groups.get(case, ())), 3)
                    for case in of_kinds
                ),
            )
        )
    labels = [kind.label for kind in kinds]
    return [
        Table(
            "The filter's own time for a request, in µs",
            ('write limits', 'request', 'app alone', *labels, 'goal'),
            time_rows,
            (
                'Processor time, in one process, above an app that answers '
                'at once, less the time of that app for a request (*app '
                f'alone*). Medians of {number(parameters.rounds)} rounds of '
                f'{number(parameters.requests)} requests each, with their '
                '95 % intervals. What the filter looks up once a minute or '
                'so is cached. *Listing*: a page of 1,000 rows; above a real '
                'Swift, connections to container servers take more than the '
                'filter (`listing-cost`).',
                '*on*: a worker reserves many slots of a container at once, '
                'the fewer the more shards the writes are spread over. '
                '*Each write counted*: as where a worker has less than ten '
                "writes a second to a shard. *Swift's ratelimit*: that "
                'filter instead of this one.',
            ),
            names=2,
        ),
        Table(
            'Operations of memcached for a request',
            ('write limits', 'request', *labels),
            memcached_rows,
            (
                "Operations of all kinds by memcached's own count, of all "
                'rounds.',
            ),
            names=2,
        ),
    ]


def _operations_each(rows: Sequence[Mapping]) -> float | None:
    """Return the operations by request, of all rounds."""
    requests = sum(each['requests'] for each in rows)
    counts = sum(sum(each['operations'].values()) for each in rows)
    return counts / requests if requests else None


def plots(parameters: Parameters, figures: Figures) -> list[Plot]:
    """Return the filter's own time for objects by the container."""
    rows, kinds = figures['rows'], parameters.kinds
    found = []
    for limits in (OFF, AHEAD, EACH):
        series = [
            grouping.median_series(
                method,
                {
                    i: own_times(rows, Case(limits, method, kind)).values()
                    for i, kind in enumerate(kinds)
                },
            )
            for method in METHODS
            if method != LISTING
        ]
        if limits == OFF:
            series += [
                grouping.level(f'goal, {method}', range(len(kinds)), goal)
                for method, goal in GOALS_US.items()
                if method != 'HEAD'
            ]
        word = limits.replace(',', '').replace(' ', '-')
        found += grouping.plot_if_any(
            f'{NAME}-limits-{word}',
            f"The filter's own time (limits {limits})",
            series,
            x=Axis('container', names=[kind.label for kind in kinds]),
            y=Axis('processor time of a request (µs)'),
            note=grouping.MEDIANS_NOTE,
        )
    return found


def _seconds(parameters: Parameters) -> float:
    requests = 2 * parameters.requests * len(cases(parameters.kinds))
    return (
        shared.CLUSTER_SECONDS
        + parameters.rounds * requests * _REQUEST_SECONDS
    )


SUMMARY = "The filter's own time, and memcached's work, for a request."

SCENARIOS = [
    Scenario(NAME, SUMMARY, Parameters, measure, tables, plots, _seconds)
]
