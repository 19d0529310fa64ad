# SPDX-License-Identifier: Apache-2.0
"""``seed``, ``operations`` and ``latency``: the effect and cost of limits."""

import contextlib
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from shardmw.bench.load.sources import Load
from shardmw.bench.load.stage import Ledger, Stage, rotated
from shardmw.bench.ratelimit import limits
from shardmw.bench.ratelimit.limits import SHARDMW, STOCK
from shardmw.bench.results import comparing as c
from shardmw.bench.results.runs import runs_of
from shardmw.bench.results.summary import summarize
from shardmw.bench.scenarios import base
from shardmw.bench.scenarios.rounds import grouped
from shardmw.bench.site import Site
from shardmw.bench.tables import figure
from shardmw.bench.targets.usage import operations
from shardmw.saio.topology import MEMCACHED

WRITE = 'write'

SATURATED = 'saturated'
TRICKLE = 'trickle'

# The share of the limit that a trickle has.
_TRICKLE_SHARE = 0.5

# shardmw writes to memcached after the answer, too.
_SETTLE_SECONDS = 0.5

#: More objects than any container here has: the limit does not apply.
LEAST_SIZE = 1_000_000_000

_CLIENT_COUNTS = (1, 16)
_RATE = 1.0
_WARM_UP_REQUESTS = 20
_NO_FILTER = 'none'


class Seed(limits.LimitExperiment):
    """Many writers to one container, plain and sharded, with and without a
    limit.
    """

    name = 'seed'

    @property
    def loads(self) -> int:
        return 4 * self.rounds

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        """Write to both kinds in turns, without a limit and with one."""
        kinds = [limits.kind_with(n) for n in (None, self.seed_shards)]
        ledger = Ledger(stage, keep, self.loads)
        with self.site(stage) as site:
            for limit in (None, self.seed_rate):
                site.reconfigure(limits.limit_settings(SHARDMW, limit))
                for turn in range(self.rounds):
                    for kind in rotated(kinds, turn):
                        load = self.write_load(site, site.make(kind))
                        ledger.measure(load, WRITE, kind, turn, limit=limit)
        return ledger.figures

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        """Return the rates of both kinds of container, and their ratio."""
        runs = runs_of(figures)
        return {'rows': c.rows_of(runs), 'runs': runs}


class Operations(limits.LimitExperiment):
    """Count the memcached operations of a write."""

    name = 'operations'
    loads = 10

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        """Count the operations of memcached, with each filter."""
        with self.site(stage) as site:
            for limiter in (None, STOCK, SHARDMW):
                limit = limits.limit_settings(limiter, self.middle_rate)
                site.reconfigure(limit)
                for shards in (None, self.middle_shards):
                    if limiter == STOCK and shards:
                        continue
                    for manner in (SATURATED, TRICKLE):
                        yield {
                            'filter': limiter,
                            'shards': shards,
                            'manner': manner,
                            **self._counted(stage, site, shards, manner),
                        }

    def _counted(
        self, stage: Stage, site: Site, shards: int | None, manner: str
    ) -> dict[str, object]:
        load = self.write_load(site, limits.filled(site, shards))
        if manner == TRICKLE:
            clients = trickling_clients(self.middle_rate, shards)
            load = replace(
                load, clients=min(clients, load.clients), pace_seconds=1.0
            )
        server = site.cluster.servers[MEMCACHED]
        time.sleep(_SETTLE_SECONDS)
        before = operations(server)
        outcome = stage.run(load)
        time.sleep(_SETTLE_SECONDS)
        counts = operations(server)
        counts.subtract(before)
        answered = [
            s for s in outcome.samples if s.is_admitted or s.is_refused
        ]
        each = figure(counts.total() / max(1, len(answered)))
        stage.screen.line(f'{manner}: {each} operations a write')
        return {
            **summarize(outcome).as_json(),
            'operations': counts,
            # of the whole load, as the operations are
            'answered_in_all': len(answered),
            'admitted_in_all': sum(s.is_admitted for s in answered),
        }

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        """Return the operations for a write, by kind."""
        return {**figures, 'container': limits.container_text}


class Latency(limits.LimitExperiment):
    """Latency that limits add to writes to unlimited containers."""

    name = 'latency'

    @property
    def _cases(self) -> list[tuple[str | None, int | None]]:
        """Return filters with the shards of a container."""
        return [
            *((limiter, None) for limiter in (None, SHARDMW, STOCK)),
            *((limiter, self.middle_shards) for limiter in (None, SHARDMW)),
        ]

    @property
    def expected_seconds(self) -> float:
        # a write takes 10 ms by one client, and 70 ms by one of 16
        each = 0.08 * self.requests + 2 * base.LOAD_SECONDS
        return base.CLUSTER_SECONDS + len(self._cases) * self.pairs * each

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        """Write in turns to clusters that differ in the filter that limits."""
        cases = self._cases
        random_order = random.Random(1)
        loads = len(_CLIENT_COUNTS) * self.pairs * len(cases)
        ledger = Ledger(stage, keep, loads)
        limit = {'rate': _RATE, 'least_size': LEAST_SIZE}
        with contextlib.ExitStack() as stack:
            sites = {
                limiter: stack.enter_context(
                    self.site(stage, limiter=limiter, **limit)
                )
                for limiter in (None, SHARDMW, STOCK)
            }

            def load_of(case: tuple, clients: int, requests: int) -> Load:
                site, kind = sites[case[0]], limits.kind_with(case[1])
                ends = {'seconds': None, 'count': clients * requests}
                return self.write_load(
                    site, site.make(kind), clients=clients, **ends
                )

            for clients in _CLIENT_COUNTS:
                for case in cases:
                    stage.run(load_of(case, clients, _WARM_UP_REQUESTS))
                for turn in range(self.pairs):
                    for case in random_order.sample(cases, len(cases)):
                        ledger.measure(
                            load_of(case, clients, self.requests),
                            *(WRITE, limits.kind_with(case[1]), turn),
                            clients=clients,
                            filter=case[0] or _NO_FILTER,
                        )
        return ledger.figures

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        """Return each case, to be compared with the one without a limit."""
        groups = grouped(
            runs_of(figures),
            lambda run: (run.conditions['clients'], run.kind),
        )
        rows = []
        for (_, kind), own in groups.items():
            by_filter = grouped(own, lambda run: run.conditions['filter'])
            base_runs = by_filter.get(_NO_FILTER, [])
            for name in (_NO_FILTER, SHARDMW, STOCK):
                if some := by_filter.get(name):
                    to = () if name == _NO_FILTER else base_runs
                    row = c.Row(WRITE, kind, some[0].conditions, some, to)
                    rows.append(row)
        return {'rows': rows}


def trickling_clients(rate: float, shards: int | None) -> int:
    """Return how many clients with a write a second stay below a limit."""
    return max(1, int(rate * (shards or 1) * _TRICKLE_SHARE))
