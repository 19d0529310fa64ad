# SPDX-License-Identifier: Apache-2.0
"""``rates``: compare the admitted writes with the limit."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.sources import Uploads
from shardmw.bench.load.stage import Stage
from shardmw.bench.ratelimit import limits
from shardmw.bench.ratelimit.limits import (
    FILLED,
    FRESH,
    SHARDMW,
    STOCK,
    Parameters,
    container_text,
)
from shardmw.bench.results.figures import most_in_window
from shardmw.bench.results.summary import errors_text, summarize
from shardmw.bench.scenarios import Figures, Keep
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, figure, number, plain, ratio
from shardmw.placement import shard_of

WINDOWS_SECONDS = (1, 10)

# A window may begin with one write and end with another.
_ROUNDING = 1


class _Case(NamedTuple):
    limiter: str | None
    rate: float | None
    shards: int | None
    state: str = FRESH


def measure(stage: Stage, keep: Keep) -> Figures:
    """Write to new containers with each limit, and with none."""
    parameters = stage.parameters
    figures: dict[str, object] = {'rows': []}
    cases = [
        *(_Case(None, None, n) for n in (*parameters.shards, None)),
        *(
            _Case(SHARDMW, rate, shards)
            for rate in parameters.rates
            for shards in parameters.shards
        ),
        *(
            _Case(STOCK, rate, None, state)
            for rate in parameters.stock_rates
            for state in (FRESH, FILLED)
        ),
    ]
    # admitted writes/s without a limit, by the number of shards
    unlimited: dict[int | None, float] = {}
    with limits.limited_site(stage) as site:
        for case in cases:
            site.reconfigure(limits.limit_settings(case.limiter, case.rate))
            row = _write(stage, site, case)
            free = unlimited.setdefault(case.shards, row['admitted_rate'])
            figures['rows'].append({**row, 'unlimited_rate': free})
            keep(figures)
    return figures


def _write(stage: Stage, site: Site, case: _Case) -> dict[str, object]:
    if case.state == FILLED:
        container = limits.filled(site, case.shards)
    else:
        container = site.make(limits.kind_with(case.shards))
    load = limits.write_load(stage, site, container)
    outcome = stage.run(load)
    stored = {
        name: when
        for name, when in site.account.stored_times(container).items()
        # without the objects that were there before the load
        if when >= outcome.began_at
    }
    times = admission_times(outcome, load.source, stored)
    summary = summarize(outcome)
    limit = 'no limit' if case.rate is None else f'{plain(case.rate)}/s'
    stage.screen.line(
        f'{case.limiter or "no filter"}, {limit}, '
        f'{container_text(case.shards, case.state)}: '
        f'{figure(summary.admitted_rate)}/s admitted of '
        f'{figure(summary.offered_rate)}/s'
    )
    return {
        **summary.as_json(),
        'filter': case.limiter,
        'rate': case.rate,
        'shards': case.shards,
        'state': case.state,
        'rate_since_first': rate_since_first(
            times, outcome.began_at + outcome.seconds
        ),
        'most_by_window': most_by_window(times, case.shards or 1),
        'not_listed_yet': len(times) - len(stored),
    }


def admission_times(
    outcome: Outcome, uploads: Uploads, stored: Mapping[str, float]
) -> dict[str, float]:
    """Return when each write was admitted, on the wall clock. Pure.

    :param stored: by object name, from the container's listing; a write that
                   is not listed yet counts as admitted when it was answered
    """
    answered = {
        uploads.name(each.number): outcome.wall_time(each.end)
        for each in outcome.samples
        if each.is_admitted
    }
    return {**answered, **stored}


def rate_since_first(times: Mapping[str, float], end: float) -> float:
    """Return the admitted writes a second, from the first one on. Pure.

    A limit does not cause the time until the first write.

    :param times: by object name
    :param end: when the clients stopped, on the wall clock
    :returns: 0 if no write was admitted
    """
    first = min(times.values(), default=end)
    if end <= first:
        return 0.0
    return sum(first < when <= end for when in times.values()) / (end - first)


def most_by_window(
    times: Mapping[str, float],
    shards: int,
    windows: Iterable[float] = WINDOWS_SECONDS,
) -> dict[str, int]:
    """Return the most writes of any backing container by window. Pure.

    :param times: by object name
    :returns: by the seconds of the window
    """
    by_shard = defaultdict(list)
    for name, when in times.items():
        by_shard[shard_of(name, shards)].append(when)
    return {
        plain(seconds): max(
            (most_in_window(each, seconds) for each in by_shard.values()),
            default=0,
        )
        for seconds in windows
    }


def bound_by(row: Mapping) -> str:
    """Return what kept the rate of a load from being higher. Pure."""
    if row['is_client_bound']:
        return 'clients'
    if row['rate'] is None:
        return 'machine'
    total = row['rate'] * (row['shards'] or 1)
    machine = limits.is_machine_bound(total, row['unlimited_rate'])
    return 'machine' if machine else 'limit'


def tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return the admitted writes, and the most of them in any window."""
    rows = figures['rows']
    return [
        Table(
            'Admitted writes',
            (
                *('filter', 'container', 'limit /s', 'offered /s'),
                *('refused /s', 'admitted /s', 'since the first /s'),
                *('of limit × N', 'first second'),
                *('p50 ms', 'p95 ms', 'bound by', 'errors'),
            ),
            [_admitted_row(row) for row in rows],
            (
                f'{parameters.clients} clients, {parameters.size}-byte '
                f'objects, {plain(parameters.seconds)} s from the first '
                'second of each container on; *first second*: the writes '
                'admitted in it. *Since the first* leaves out the time until '
                'the first write, in which a busy machine connects the '
                'clients. A write that would wait longer than '
                f'{plain(parameters.max_sleep_seconds)} s is refused. '
                '*Bound by* is the machine where limit × N is more than 0.9 '
                'of the rate of the same container without a limit.',
            ),
            names=2,
        ),
        Table(
            'The most writes to a backing container in any window',
            (
                *('filter', 'container', 'limit /s', 'window s'),
                *('rate × T', 'rate × T + burst', 'most', 'held'),
            ),
            [
                _window_row(row, seconds, parameters.buffer_seconds)
                for row in rows
                if row['rate'] is not None
                for seconds in WINDOWS_SECONDS
            ],
            (
                'By the timestamps that proxies give to writes. *Burst*: the '
                'additional writes that a container may take after it was '
                'written to more slowly than its limit allows: '
                f'{plain(parameters.buffer_seconds)} s of its rate.',
            ),
            names=2,
        ),
    ]


def _admitted_row(row: Mapping) -> tuple[str, ...]:
    rate, shards = row['rate'], row['shards']
    total = None if rate is None else rate * (shards or 1)
    took = row['latency']
    return (
        row['filter'] or 'none',
        container_text(shards, row['state']),
        '—' if rate is None else plain(rate),
        figure(row['offered_rate']),
        figure(row['refused_rate']),
        figure(row['admitted_rate']),
        figure(row['rate_since_first']),
        ratio(row['rate_since_first'], total),
        number(row['admitted_each_second'][0]),
        figure(took['p50_ms']),
        figure(took['p95_ms']),
        bound_by(row),
        errors_text(row['errors']),
    )


def _window_row(
    row: Mapping, seconds: float, buffer_seconds: float
) -> tuple[str, ...]:
    rate = row['rate']
    most = row['most_by_window'][plain(seconds)]
    most_allowed = limits.allowed(rate, seconds, buffer_seconds)
    return (
        row['filter'],
        container_text(row['shards'], row['state']),
        plain(rate),
        plain(seconds),
        plain(rate * seconds),
        plain(most_allowed),
        number(most),
        'yes' if most <= most_allowed + _ROUNDING else 'no',
    )
