# SPDX-License-Identifier: Apache-2.0
"""``latency``: what a limit costs writes that it does not concern."""

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from shardmw.bench.ratelimit.limits import SHARDMW, STOCK
from shardmw.bench.ratelimit.parameters import Parameters
from shardmw.bench.ratelimit.rates import FRESH, container_text
from shardmw.bench.ratelimit.stage import Bed, Stage
from shardmw.bench.results.figures import median_interval
from shardmw.bench.results.summary import errors_text, summarize
from shardmw.bench.tables import Table, figure, number

#: The limit's least size, which no container here comes near.
LEAST_SIZE = 1_000_000_000

_CLIENT_COUNTS = (1, 16)
_RATE = 1.0
_SEED = 1
_WARM_UP_REQUESTS = 20


class _Case(NamedTuple):
    limiter: str | None
    shards: int | None


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Write in turns to clusters that differ in the filter that limits."""
    parameters = stage.parameters
    shards = parameters.middle_shards
    cases = [_Case(f, None) for f in (None, SHARDMW, STOCK)]
    cases += [_Case(f, shards) for f in (None, SHARDMW)]
    chance = random.Random(_SEED)
    figures = {'rows': []}
    with contextlib.ExitStack() as stack:
        beds = {
            limiter: stack.enter_context(stage.bed(limiter, _RATE, LEAST_SIZE))
            for limiter in (None, SHARDMW, STOCK)
        }
        for clients in _CLIENT_COUNTS:
            for case in cases:
                _write(stage, beds[case.limiter], case, clients, None)
            for pair in range(parameters.pairs):
                for case in chance.sample(cases, len(cases)):
                    bed = beds[case.limiter]
                    row = _write(stage, bed, case, clients, pair)
                    figures['rows'].append(row)
                    keep(figures)
            stage.screen.line(
                f'{clients} clients: {parameters.pairs} rounds of '
                f'{len(cases)} cases'
            )
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """Each case by the one without limits, round by round."""
    rows = figures['rows']
    cases = dict.fromkeys((r['clients'], r['shards']) for r in rows)
    cells = []
    for clients, shards in cases:
        found = [
            r for r in rows if (r['clients'], r['shards']) == (clients, shards)
        ]
        for limiter in dict.fromkeys(
            sorted((r['filter'] for r in found), key=_order)
        ):
            cells.append(_row(found, limiter, clients, shards))
    return [
        Table(
            'Writes that no limit concerns',
            (
                *('filter with a limit', 'container', 'clients', 'p50 ms'),
                *('p50 ratio', '95 % interval', 'mean ms', 'mean ratio'),
                *('95 % interval', 'errors'),
            ),
            cells,
            (_note(parameters),),
            names=2,
        )
    ]


def _write(
    stage: Stage, bed: Bed, case: _Case, clients: int, pair: int | None
) -> dict[str, object]:
    """One round of a case, in a new container.

    :param pair: which, None to warm up
    """
    requests = stage.parameters.requests
    count = _WARM_UP_REQUESTS if pair is None else requests
    container = bed.account.create(case.shards)
    load = stage.load(
        bed, container, clients=clients, seconds=None, count=clients * count
    )
    summary = summarize(stage.run(load))
    return {
        **summary.as_json(),
        'filter': case.limiter,
        'shards': case.shards,
        'clients': clients,
        'round': pair,
    }


def _row(
    rows: Sequence[Mapping],
    limiter: str | None,
    clients: int,
    shards: int | None,
) -> tuple[str, ...]:
    own = _by_round(rows, limiter)
    base = _by_round(rows, None)
    errors: dict[str, int] = {}
    for row in own.values():
        for what, count in row['errors'].items():
            errors[what] = errors.get(what, 0) + count
    cells = []
    for kind in ('p50_ms', 'mean_ms'):
        took = {n: row['latency'][kind] for n, row in own.items()}
        known = [each for each in took.values() if each is not None]
        ratios = [
            value / base[n]['latency'][kind]
            for n, value in took.items()
            # a round that was broken off may lack its base
            if value is not None and n in base and base[n]['latency'][kind]
        ]
        cells.append(figure(median(known)) if known else '—')
        cells += ('', '') if limiter is None else _ratio_cells(ratios)
    return (
        limiter or 'none',
        container_text(shards, FRESH),
        str(clients),
        *cells,
        errors_text(errors),
    )


def _ratio_cells(ratios: Sequence[float]) -> tuple[str, str]:
    if not ratios:
        return '—', '—'
    found = median_interval(ratios)
    if not found.confidence:
        return number(found.median, 3), '—'
    interval = f'{found.low:.3f} to {found.high:.3f}'
    if found.confidence < 0.95:
        interval += f' ({found.confidence:.0%})'
    return number(found.median, 3), interval


def _by_round(
    rows: Sequence[Mapping], limiter: str | None
) -> dict[int, Mapping]:
    return {row['round']: row for row in rows if row['filter'] == limiter}


def _order(limiter: str | None) -> int:
    return (None, SHARDMW, STOCK).index(limiter)


def _note(parameters: Parameters) -> str:
    return (
        f'{parameters.pairs} rounds, in each of them '
        f'{parameters.requests} writes of each client to a new container of '
        'every kind, in random order; each kind of filter on a cluster of '
        'its own. The limit is for containers of a thousand million objects '
        'and more. Ratios are those to the cluster without a limit, of the '
        'same round: their median, and its interval by order statistics.'
    )
