# SPDX-License-Identifier: Apache-2.0
"""``operations``: what memcached is asked for, for a write."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from shardmw.bench.ratelimit.limits import SHARDMW, STOCK
from shardmw.bench.ratelimit.parameters import Parameters
from shardmw.bench.ratelimit.rates import FRESH, container_text
from shardmw.bench.ratelimit.stage import Bed, Stage
from shardmw.bench.results.summary import errors_text, summarize
from shardmw.bench.tables import Table, figure, number, plain
from shardmw.bench.targets.memcached import Operations, operations
from shardmw.saio.topology import MEMCACHED

SATURATED = 'saturated'
TRICKLE = 'trickle'
MANNERS = (SATURATED, TRICKLE)

#: How much of the limit a trickle is.
_TRICKLE_SHARE = 0.5

# What shardmw keeps is written behind the answer.
_SETTLE_SECONDS = 0.5


class _Case(NamedTuple):
    limiter: str | None
    shards: int | None


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Count what memcached is asked for, with each filter."""
    parameters = stage.parameters
    figures = {'rows': []}
    with stage.bed() as bed:
        for limiter in (None, STOCK, SHARDMW):
            bed.limit(limiter, parameters.middle_rate)
            for shards in (None, parameters.middle_shards):
                if limiter == STOCK and shards:
                    continue
                case = _Case(limiter, shards)
                for manner in MANNERS:
                    row = _write(stage, bed, case, manner)
                    figures['rows'].append(row)
                    keep(figures)
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Operations by write, each kind of them."""
    return [
        Table(
            'memcached operations for a write',
            (
                *('filter that limits', 'container', 'load', 'offered /s'),
                *('refused', 'admitted', 'get', 'set', 'incr', 'decr'),
                *('other', 'all', 'all by admitted', 'errors'),
            ),
            [_row(row) for row in figures['rows']],
            (_note(parameters),),
            names=3,
        )
    ]


def trickling_clients(rate: float, shards: int | None) -> int:
    """How many clients, at a write a second each, stay below a limit."""
    return max(1, int(rate * (shards or 1) * _TRICKLE_SHARE))


def _write(
    stage: Stage, bed: Bed, case: _Case, manner: str
) -> dict[str, object]:
    parameters = stage.parameters
    container = bed.filled(case.shards)
    changes = {}
    if manner == TRICKLE:
        clients = trickling_clients(parameters.middle_rate, case.shards)
        changes = {
            'clients': min(clients, parameters.clients),
            'pace_seconds': 1.0,
        }
    server = bed.cluster.servers[MEMCACHED]
    time.sleep(_SETTLE_SECONDS)
    before = operations(server)
    outcome = stage.run(stage.load(bed, container, **changes))
    time.sleep(_SETTLE_SECONDS)
    counts = operations(server).since(before)
    summary = summarize(outcome)
    answered = [s for s in outcome.samples if s.is_admitted or s.is_refused]
    admitted = sum(s.is_admitted for s in answered)
    stage.screen.line(
        f'{case.limiter or "no limit"}, {container_text(case.shards, FRESH)}, '
        f'{manner}: {figure(sum(counts) / max(1, len(answered)))} operations '
        'for a write'
    )
    return {
        **summary.as_json(),
        'filter': case.limiter,
        'shards': case.shards,
        'manner': manner,
        'operations': counts._asdict(),
        # of the whole load, as the operations are
        'answered_in_all': len(answered),
        'admitted_in_all': admitted,
    }


def _row(row: Mapping) -> tuple[str, ...]:
    counts = Operations(**row['operations'])
    writes, admitted = row['answered_in_all'], row['admitted_in_all']
    kinds = (
        *(counts.get, counts.set, counts.incr, counts.decr),
        counts.delete + counts.touch,
        sum(counts),
    )
    return (
        row['filter'] or 'none',
        container_text(row['shards'], FRESH),
        row['manner'],
        figure(row['offered_rate']),
        number(writes - admitted),
        number(admitted),
        *(_by(count, writes) for count in kinds),
        _by(sum(counts), admitted),
        errors_text(row['errors']),
    )


def _by(count: int, writes: int) -> str:
    return number(count / writes, 2) if writes else '—'


def _note(parameters: Parameters) -> str:
    return (
        "By memcached's own count, over "
        f'{plain(parameters.seconds)} s, by writes that were admitted or '
        f'refused. The limit is {plain(parameters.middle_rate)} /s for a '
        f'container; {parameters.clients} clients saturate it, and a '
        'trickle is half of it, from clients with a write a second each. '
        'Tokens are checked without memcached.'
    )
