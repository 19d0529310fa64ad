# SPDX-License-Identifier: Apache-2.0
"""``rates``: is what is admitted what the limit says?"""

from collections.abc import Callable, Mapping

from shardmw.bench.load.outcome import Outcome
from shardmw.bench.ratelimit.limits import (
    SHARDMW,
    STOCK,
    allowed,
    is_machine_bound,
)
from shardmw.bench.ratelimit.parameters import Parameters
from shardmw.bench.ratelimit.stage import Bed, Stage
from shardmw.bench.ratelimit.windows import (
    WINDOWS_SECONDS,
    admission_times,
    most_by_window,
    rate_since_first,
)
from shardmw.bench.results.summary import Summary, errors_text, summarize
from shardmw.bench.tables import Table, figure, number, plain, ratio

FRESH = 'new'
FILLED = 'with an object'

# A window may begin with one write and end with another.
_ROUNDING = 1

_Row = Mapping[str, object]


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Write to new containers with each limit, and with none."""
    parameters = stage.parameters
    figures = {'rows': []}
    #: what was admitted without a limit, by the number of shards
    unlimited: dict[int | None, float] = {}
    with stage.bed() as bed:

        def write(*case: object) -> None:
            row = _write(stage, bed, *case)
            free = unlimited.setdefault(row['shards'], row['admitted_rate'])
            figures['rows'].append({**row, 'unlimited_rate': free})
            keep(figures)

        for shards in (*parameters.shards, None):
            write(None, None, shards, FRESH)
        for rate in parameters.rates:
            bed.limit(SHARDMW, rate)
            for shards in parameters.shards:
                write(SHARDMW, rate, shards, FRESH)
        for rate in parameters.stock_rates:
            bed.limit(STOCK, rate)
            for state in (FRESH, FILLED):
                write(STOCK, rate, None, state)
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """What was admitted, and the most in any window."""
    limited = [row for row in figures['rows'] if row['rate'] is not None]
    return [
        Table(
            'Admitted writes',
            (
                *('filter', 'container', 'limit /s', 'offered /s'),
                *('refused /s', 'admitted /s', 'since the first /s'),
                *('of limit × N', 'first second'),
                *('p50 ms', 'p95 ms', 'bound by', 'errors'),
            ),
            [_admitted_row(row) for row in figures['rows']],
            (_admitted_note(parameters),),
            names=2,
        ),
        Table(
            'The most writes of any backing container in any window',
            (
                *('filter', 'container', 'limit /s', 'window s'),
                *('rate × T', 'rate × T + burst', 'most', 'held'),
            ),
            [
                _window_row(row, seconds, parameters.buffer_seconds)
                for row in limited
                for seconds in WINDOWS_SECONDS
            ],
            (_window_note(parameters),),
            names=2,
        ),
    ]


def container_text(shards: int | None, state: str) -> str:
    """A container as a cell of a table has it."""
    if shards is None:
        return 'plain' if state == FRESH else f'plain, {state}'
    return 'N = 1' if shards == 1 else f'N = {shards}'


def bound_by(row: _Row) -> str:
    """What kept the rate from being higher."""
    if row['is_client_bound']:
        return 'clients'
    if row['rate'] is None:
        return 'machine'
    total = row['rate'] * (row['shards'] or 1)
    machine = is_machine_bound(total, row['unlimited_rate'])
    return 'machine' if machine else 'limit'


def _write(
    stage: Stage,
    bed: Bed,
    limiter: str | None,
    rate: float | None,
    shards: int | None,
    state: str,
) -> dict[str, object]:
    filled = state == FILLED
    container = bed.filled(shards) if filled else bed.account.create(shards)
    load = stage.load(bed, container)
    outcome = stage.run(load)
    stored = bed.account.stored_times(container)
    stored = {k: v for k, v in stored.items() if _is_of(outcome, v)}
    times = admission_times(outcome, load.source, stored)
    summary = summarize(outcome)
    stage.screen.line(_progress(limiter, rate, shards, state, summary))
    return {
        **summary.as_json(),
        'filter': limiter,
        'rate': rate,
        'shards': shards,
        'state': state,
        'rate_since_first': rate_since_first(
            times, outcome.began_at + outcome.seconds
        ),
        'most_by_window': most_by_window(times, shards or 1),
        'not_listed_yet': len(times) - len(stored),
    }


def _is_of(outcome: Outcome, stored_at: float) -> bool:
    """Whether a write is one of the load's, and none before it."""
    return stored_at >= outcome.began_at


def _progress(
    limiter: str | None,
    rate: float | None,
    shards: int | None,
    state: str,
    summary: Summary,
) -> str:
    limit = 'no limit' if rate is None else f'{limiter} {plain(rate)}/s'
    return (
        f'{limit}, {container_text(shards, state)}: '
        f'{figure(summary.admitted_rate)}/s admitted of '
        f'{figure(summary.offered_rate)}/s'
    )


def _admitted_row(row: _Row) -> tuple[str, ...]:
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
    row: _Row, seconds: float, buffer_seconds: float
) -> tuple[str, ...]:
    rate = row['rate']
    most = row['most_by_window'][plain(seconds)]
    most_allowed = allowed(rate, seconds, buffer_seconds) + _ROUNDING
    return (
        row['filter'],
        container_text(row['shards'], row['state']),
        plain(rate),
        plain(seconds),
        plain(rate * seconds),
        plain(allowed(rate, seconds, buffer_seconds)),
        number(most),
        'yes' if most <= most_allowed else 'no',
    )


def _admitted_note(parameters: Parameters) -> str:
    return (
        f'{parameters.clients} clients, {parameters.size}-byte objects, '
        f'{plain(parameters.seconds)} s from the first second of each '
        'container on; *first second* is what was admitted in it. *Since the '
        'first* leaves out what a machine in the rush of new clients takes '
        'until it lets the first write in. A write that would wait '
        f'{plain(parameters.max_sleep_seconds)} s is refused. '
        '*Bound by* says machine where limit × N is more than 0.9 of what '
        'the same container takes without a limit.'
    )


def _window_note(parameters: Parameters) -> str:
    return (
        'By the timestamps that the proxies give to writes. *Burst* is what '
        'a container that was written to less than its limit may make up '
        f'for: {plain(parameters.buffer_seconds)} s of its rate.'
    )
