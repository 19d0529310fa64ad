# SPDX-License-Identifier: Apache-2.0
"""The experiments of ``shardmw-bench ratelimit``."""

import contextlib
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

from shardmw_saio.logs import read_from, size
from shardmw_saio.topology import MEMCACHED

from shardmw.core.placement import shard_of
from shardmw_bench.load.outcome import Outcome, errors_of
from shardmw_bench.load.sources import Load, Uploads
from shardmw_bench.load.stage import Ledger, Stage, rotated
from shardmw_bench.ratelimit import limits
from shardmw_bench.ratelimit.limits import FILLED, FRESH, SHARDMW, STOCK
from shardmw_bench.results import comparing as c
from shardmw_bench.results.figures import (
    count_between,
    most_in_window,
    per_second,
)
from shardmw_bench.results.runs import runs_of
from shardmw_bench.results.summary import summarize
from shardmw_bench.scenarios import base
from shardmw_bench.scenarios.rounds import grouped
from shardmw_bench.site import Site
from shardmw_bench.tables import figure, plain
from shardmw_bench.targets.usage import operations

WINDOWS_SECONDS = (1, 10)

# A window may begin with one write and end with another.
_ROUNDING = 1

WRITE = 'write'

SATURATED = 'saturated'
TRICKLE = 'trickle'

# The rate of a trickle, as a share of the limit.
_TRICKLE_SHARE = 0.5

# shardmw writes to memcached after the answer, too.
_SETTLE_SECONDS = 0.5

#: More objects than any container here has: the limit does not apply.
LEAST_SIZE = 1_000_000_000

_CLIENT_COUNTS = (1, 16)
_RATE = 1.0
_WARM_UP_REQUESTS = 20
_NO_FILTER = 'none'

PHASES = ('before', 'during', 'after')

_REFUSED = ' 498 '


class _Case(NamedTuple):
    """A filter, its limit, and the container that clients write to."""

    filter: str | None
    rate: float | None
    shards: int | None
    state: str = FRESH


class Rates(limits.LimitExperiment):
    """Compare the admitted writes with the limit."""

    name = 'rates'
    minutes = 4

    @property
    def _cases(self) -> list[_Case]:
        own = product(self.rates, self.shards)
        stock = product(self.stock_rates, (None,), (FRESH, FILLED))
        return [
            *(_Case(None, None, n) for n in (*self.shards, None)),
            *(_Case(SHARDMW, *each) for each in own),
            *(_Case(STOCK, *each) for each in stock),
        ]

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        # admitted writes/s without a limit, by the number of shards
        unlimited: dict[int | None, float] = {}
        with self.site(stage) as site:
            for case in self._cases:
                limit = limits.limit_settings(case.filter, case.rate)
                site.reconfigure(limit)
                row = self._write(stage, site, case)
                free = unlimited.setdefault(case.shards, row['admitted_rate'])
                yield {**row, 'unlimited_rate': free}

    def _write(
        self, stage: Stage, site: Site, case: _Case
    ) -> dict[str, object]:
        if case.state == FILLED:
            container = limits.filled(site, case.shards)
        else:
            container = site.make(limits.kind_with(case.shards))
        load = self.write_load(site, container)
        outcome = stage.run(load)
        stored = {
            name: when
            for name, when in site.account.stored_times(container).items()
            # without the objects that were there before the load
            if when >= outcome.began_at
        }
        times = admission_times(outcome, load.source, stored)
        summary = summarize(outcome)
        row = case._asdict()
        stage.screen.line(
            f'{case.filter or "no filter"}, limit '
            f'{limits.limit_text(case.rate)}, {limits.container_text(row)}: '
            f'{figure(summary.admitted_rate)}/s admitted of '
            f'{figure(summary.offered_rate)}/s'
        )
        end = outcome.began_at + outcome.seconds
        return {
            **summary.as_json(),
            **row,
            'rate_since_first': rate_since_first(times, end),
            'most_by_window': most_by_window(times, case.shards or 1),
            'not_listed_yet': len(times) - len(stored),
        }

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        return {
            **figures,
            'container': limits.container_text,
            'total': total_limit,
            'bound_by': bound_by,
            'rounding': _ROUNDING,
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
    """Return what limited the rate of a load. Pure."""
    if row['is_client_bound']:
        return 'clients'
    total = total_limit(row)
    if total and not limits.is_machine_bound(total, row['unlimited_rate']):
        return 'limit'
    return 'machine'


def total_limit(row: Mapping) -> float | None:
    return row['rate'] and row['rate'] * (row['shards'] or 1)


class Seed(limits.LimitExperiment):
    """Many writers to one container, plain and sharded, with and without a
    limit.
    """

    name = 'seed'
    minutes = 4

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        kinds = [limits.kind_with(n) for n in (None, self.seed_shards)]
        ledger = Ledger(stage, keep, 4 * self.rounds)
        with self.site(stage) as site:
            for limit in (None, self.seed_rate):
                site.reconfigure(limits.limit_settings(SHARDMW, limit))
                for turn in range(self.rounds):
                    for kind in rotated(kinds, turn):
                        load = self.write_load(site, site.make(kind))
                        ledger.measure(load, WRITE, kind, turn, limit=limit)
        return ledger.figures

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        runs = runs_of(figures)
        return {'rows': c.rows_of(runs), 'runs': runs}


class Operations(limits.LimitExperiment):
    """Count the memcached operations of a write."""

    name = 'operations'
    minutes = 3

    def measured(self, stage: Stage) -> Iterator[Mapping]:
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
        return {**figures, 'container': limits.container_text}


class Latency(limits.LimitExperiment):
    """Latency that limits add to writes to unlimited containers."""

    name = 'latency'
    minutes = 12

    @property
    def _cases(self) -> list[tuple[str | None, int | None]]:
        return [
            *((limiter, None) for limiter in (None, SHARDMW, STOCK)),
            *((limiter, self.middle_shards) for limiter in (None, SHARDMW)),
        ]

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
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
        cases = grouped(
            runs_of(figures),
            lambda run: (
                *(run.conditions['clients'], run.kind),
                run.conditions['filter'],
            ),
        )
        rows = []
        for (clients, kind, name), own in cases.items():
            to = cases.get((clients, kind, _NO_FILTER), ())
            to = () if name == _NO_FILTER else to
            rows.append(c.Row(WRITE, kind, own[0].conditions, own, to))
        return {'rows': sorted(rows, key=_place)}


def _place(row: c.Row) -> tuple:
    filters = (_NO_FILTER, SHARDMW, STOCK)
    place = filters.index(row.conditions['filter'])
    return row.conditions['clients'], row.kind.order, place


def trickling_clients(rate: float, shards: int | None) -> int:
    """Return how many clients with a write a second stay below a limit."""
    return max(1, int(rate * (shards or 1) * _TRICKLE_SHARE))


class LogLines(NamedTuple):
    """The number of lines of the proxies' logs.

    :param memcached: Swift's lines about memcached
    :param shardmw: shardmw's lines, except refusals
    :param refusals: shardmw's lines on refused writes
    """

    memcached: int
    shardmw: int
    refusals: int


class Outage(limits.LimitExperiment):
    """Stop memcached under load, and start it again."""

    name = 'outage'
    minutes = 2
    rows_key = 'runs'

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        with self.site(stage) as site:
            for rate in (None, self.middle_rate):
                site.reconfigure(limits.limit_settings(limits.SHARDMW, rate))
                yield {'rate': rate, **self._write(stage, site)}

    def _write(self, stage: Stage, site: Site) -> dict[str, object]:
        container = site.make(limits.kind_with(self.middle_shards))
        logs = [_log_sizes(site)]
        load = self.write_load(site, container, seconds=None)
        running = stage.clients.begin(load)
        running.sleep_until(self.seconds)
        logs.append(_log_sizes(site))
        died = time.monotonic()
        site.cluster.stop(MEMCACHED)
        time.sleep(self.seconds)
        site.cluster.start(MEMCACHED)
        back = time.monotonic()
        logs.append(_log_sizes(site))
        time.sleep(self.seconds)
        outcome = stage.checked(running.stop())
        logs.append(_log_sizes(site))
        times = [outcome.began, died, back, outcome.began + outcome.seconds]
        phases = []
        for i, span in enumerate(pairwise(times)):
            phase = {'phase': PHASES[i], **_phase(outcome, *span)}
            written = b''.join(
                read_from(path, begin)[: logs[i + 1][path] - begin]
                for path, begin in logs[i].items()
            ).decode(errors='replace')
            phase['log_lines'] = count_log_lines(written)._asdict()
            phases.append(phase)
            admitted = figure(phase['admitted_rate'])
            stage.screen.line(f'{PHASES[i]}: {admitted}/s admitted')
        return {
            **summarize(outcome).as_json(),
            'shards': self.middle_shards,
            'phases': phases,
        }

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        unlimited, *_ = figures['runs']
        rows = [
            {
                **phase,
                'rate': run['rate'],
                'shards': self.middle_shards,
                'unlimited_rate': free['admitted_rate'],
                'is_client_bound': False,
            }
            for run in reversed(figures['runs'])
            for phase, free in zip(
                run['phases'], unlimited['phases'], strict=True
            )
        ]
        functions = {'total': total_limit, 'bound_by': bound_by}
        return {'rows': rows, 'limit': limits.limit_text, **functions}


def _phase(outcome: Outcome, begin: float, end: float) -> dict[str, object]:
    ended = [each for each in outcome.samples if begin <= each.end < end]
    admitted = [each.end for each in ended if each.is_admitted]
    started = (each.start for each in outcome.samples)
    seconds = end - begin
    return {
        'seconds': seconds,
        'offered_rate': count_between(started, begin, end) / seconds,
        'admitted_rate': len(admitted) / seconds,
        'admitted_each_second': per_second(
            admitted, begin, max(1, int(seconds))
        ),
        'errors': errors_of(each.status for each in ended),
    }


def _log_sizes(site: Site) -> dict[Path, int]:
    proxies = range(1, len(site.urls) + 1)
    paths = (site.cluster.log_path(f'proxy-{i}') for i in proxies)
    return {path: size(path) for path in paths}


def count_log_lines(written: str) -> LogLines:
    """Count the lines about memcached and of shardmw. Pure.

    :param written: what was appended to the proxies' logs
    """
    lines = written.splitlines()
    own = [line for line in lines if 'shardmw: ' in line]
    refusals = sum(_REFUSED in line for line in own)
    # access lines have names of clients, containers and objects
    memcached = sum(
        'memcache' in line.lower()
        and ' INFO ' not in line
        and 'shardmw: ' not in line
        for line in lines
    )
    return LogLines(memcached, len(own) - refusals, refusals)
