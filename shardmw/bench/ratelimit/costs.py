# SPDX-License-Identifier: Apache-2.0
"""``seed``, ``operations`` and ``latency``: the effect and cost of limits."""

import contextlib
import random
import time
from collections.abc import Mapping
from dataclasses import replace

from shardmw.bench.load.stage import Ledger, Stage
from shardmw.bench.load.turns import rotated
from shardmw.bench.ratelimit import limits
from shardmw.bench.ratelimit.limits import SHARDMW, STOCK, Parameters
from shardmw.bench.results import comparing as c
from shardmw.bench.results.runs import runs_of
from shardmw.bench.results.summary import errors_text, summarize
from shardmw.bench.scenarios import Figures, Keep
from shardmw.bench.scenarios.grouping import grouped
from shardmw.bench.site import Site
from shardmw.bench.tables import Table, figure, number, plain
from shardmw.bench.targets.memcached import Operations, operations
from shardmw.saio.topology import MEMCACHED

WRITE = 'write'


def measure_seed(stage: Stage, keep: Keep) -> Figures:
    """Write to both kinds of container in turns, with a limit and without."""
    parameters = stage.parameters
    kinds = [limits.kind_with(n) for n in (None, parameters.seed_shards)]
    rates = (None, parameters.seed_rate)
    ledger = Ledger(stage, keep, 2 * parameters.rounds * len(kinds))
    with limits.limited_site(stage) as site:
        for limit in rates:
            site.reconfigure(limits.limit_settings(SHARDMW, limit))
            for turn in range(parameters.rounds):
                for kind in rotated(kinds, turn):
                    load = limits.write_load(stage, site, site.make(kind))
                    ledger.measure(load, WRITE, kind, turn, limit=limit)
    return ledger.figures


def seed_tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return the rates of both kinds of container, and their ratio."""
    runs = runs_of(figures)
    return [
        c.table(
            f'{parameters.clients} writers, one container',
            c.rows_of(runs),
            [
                c.condition('limit'),
                c.CONTAINER,
                c.RATE,
                *c.RATE_RATIO,
                c.REFUSED,
                c.ERRORS,
            ],
            [
                '*Limit*: in writes/s of each backing container. Each '
                f'load of {plain(parameters.seconds)} s has a new container; '
                f'{parameters.size}-byte objects.',
                c.rounds_note(runs),
            ],
        )
    ]


SATURATED = 'saturated'
TRICKLE = 'trickle'

# The share of the limit that a trickle has.
_TRICKLE_SHARE = 0.5

# shardmw writes to memcached after the answer, too.
_SETTLE_SECONDS = 0.5


def measure_operations(stage: Stage, keep: Keep) -> Figures:
    """Count the operations of memcached, with each filter."""
    parameters = stage.parameters
    figures: dict[str, object] = {'rows': []}
    with limits.limited_site(stage) as site:
        for limiter in (None, STOCK, SHARDMW):
            site.reconfigure(
                limits.limit_settings(limiter, parameters.middle_rate)
            )
            for shards in (None, parameters.middle_shards):
                if limiter == STOCK and shards:
                    continue
                for manner in (SATURATED, TRICKLE):
                    row = _counted(stage, site, limiter, shards, manner)
                    figures['rows'].append(row)
                    keep(figures)
    return figures


def trickling_clients(rate: float, shards: int | None) -> int:
    """Return how many clients with a write a second stay below a limit."""
    return max(1, int(rate * (shards or 1) * _TRICKLE_SHARE))


def _counted(
    stage: Stage,
    site: Site,
    limiter: str | None,
    shards: int | None,
    manner: str,
) -> dict[str, object]:
    parameters = stage.parameters
    load = limits.write_load(stage, site, limits.filled(site, shards))
    if manner == TRICKLE:
        clients = trickling_clients(parameters.middle_rate, shards)
        load = replace(
            load, clients=min(clients, load.clients), pace_seconds=1.0
        )
    server = site.cluster.servers[MEMCACHED]
    time.sleep(_SETTLE_SECONDS)
    before = operations(server)
    outcome = stage.run(load)
    time.sleep(_SETTLE_SECONDS)
    counts = operations(server).since(before)
    answered = [s for s in outcome.samples if s.is_admitted or s.is_refused]
    stage.screen.line(
        f'{limiter or "no limit"}, {limits.container_text(shards)}, {manner}: '
        f'{figure(sum(counts) / max(1, len(answered)))} operations a write'
    )
    return {
        **summarize(outcome).as_json(),
        'filter': limiter,
        'shards': shards,
        'manner': manner,
        'operations': counts._asdict(),
        # of the whole load, as the operations are
        'answered_in_all': len(answered),
        'admitted_in_all': sum(s.is_admitted for s in answered),
    }


def operations_tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return the operations for a write, by kind."""
    return [
        Table(
            'memcached operations of a write',
            (
                *('filter that limits', 'container', 'load', 'offered /s'),
                *('refused', 'admitted', 'get', 'set', 'incr', 'decr'),
                *('other', 'all', 'all by admitted', 'errors'),
            ),
            [_operations_row(row) for row in figures['rows']],
            (
                "By memcached's own count, over "
                f'{plain(parameters.seconds)} s, divided by the writes that '
                'were admitted or refused. The limit of a container is '
                f'{plain(parameters.middle_rate)} /s. *Saturated*: '
                f'{parameters.clients} clients; *trickle*: clients with one '
                'write a second each, which use half of the limit.',
            ),
            names=3,
        )
    ]


def _operations_row(row: Mapping) -> tuple[str, ...]:
    counts = Operations(**row['operations'])
    writes, admitted = row['answered_in_all'], row['admitted_in_all']
    kinds = (
        *(counts.get, counts.set, counts.incr, counts.decr),
        *(counts.delete + counts.touch, sum(counts)),
    )
    return (
        *(row['filter'] or 'none', limits.container_text(row['shards'])),
        *(row['manner'], figure(row['offered_rate'])),
        *(number(writes - admitted), number(admitted)),
        *(number(each / writes if writes else None, 2) for each in kinds),
        number(sum(counts) / admitted if admitted else None, 2),
        errors_text(row['errors']),
    )


#: More objects than any container here has: the limit does not apply.
LEAST_SIZE = 1_000_000_000

_CLIENT_COUNTS = (1, 16)
_RATE = 1.0
_WARM_UP_REQUESTS = 20
_NO_FILTER = 'none'


def measure_latency(stage: Stage, keep: Keep) -> Figures:
    """Write in turns to clusters that differ in the filter that limits."""
    parameters = stage.parameters
    shards = parameters.middle_shards
    cases = [(f, None) for f in (None, SHARDMW, STOCK)]
    cases += [(f, shards) for f in (None, SHARDMW)]
    random_order = random.Random(1)
    ledger = Ledger(
        stage, keep, len(_CLIENT_COUNTS) * parameters.pairs * len(cases)
    )
    with contextlib.ExitStack() as stack:
        sites = {
            limiter: stack.enter_context(
                limits.limited_site(
                    stage, limiter=limiter, rate=_RATE, least_size=LEAST_SIZE
                )
            )
            for limiter in (None, SHARDMW, STOCK)
        }

        def load_of(case: tuple, clients: int, requests: int):
            site, kind = sites[case[0]], limits.kind_with(case[1])
            return limits.write_load(
                *(stage, site, site.make(kind)),
                clients=clients,
                seconds=None,
                count=clients * requests,
            )

        for clients in _CLIENT_COUNTS:
            for case in cases:
                stage.run(load_of(case, clients, _WARM_UP_REQUESTS))
            for turn in range(parameters.pairs):
                for case in random_order.sample(cases, len(cases)):
                    ledger.measure(
                        load_of(case, clients, parameters.requests),
                        *(WRITE, limits.kind_with(case[1]), turn),
                        clients=clients,
                        filter=case[0] or _NO_FILTER,
                    )
    return ledger.figures


def latency_tables(parameters: Parameters, figures: Figures) -> list[Table]:
    """Return each case, with ratios to the one without a limit."""
    groups = grouped(
        runs_of(figures),
        lambda run: (run.conditions['clients'], run.kind),
    )
    rows = []
    for (clients, kind), own in groups.items():
        by_filter = grouped(own, lambda run: run.conditions['filter'])
        base = by_filter.get(_NO_FILTER, [])
        for name in (_NO_FILTER, SHARDMW, STOCK):
            if name in by_filter:
                some = by_filter[name]
                to = () if name == _NO_FILTER else base
                conditions = {'clients': clients, 'filter': name}
                rows.append(c.Row(WRITE, kind, conditions, some, to))
    with_filter = c.Column(
        'filter with a limit', lambda row: row.conditions['filter'], True
    )
    return [
        c.table(
            'Writes to unlimited containers',
            rows,
            [
                *(with_filter, c.CONTAINER, c.condition('clients'), c.P50),
                *c.ratios('p50 ratio', c.latency_of('p50_ms')),
                c.MEAN,
                *c.ratios('mean ratio', c.latency_of('mean_ms')),
                c.ERRORS,
            ],
            (
                f'{parameters.pairs} rounds, in each of them '
                f'{parameters.requests} writes of each client to a new '
                'container of every kind, in random order; one cluster for '
                'each filter. The limit is for containers of a thousand '
                'million objects and more. Ratios are those to the cluster '
                'without a limit in the same round: their median and its '
                'interval.',
            ),
        )
    ]
