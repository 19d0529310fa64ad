# SPDX-License-Identifier: Apache-2.0
"""``rates``: compare the admitted writes with the limit."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.sources import Uploads
from shardmw.bench.load.stage import Stage
from shardmw.bench.ratelimit import limits
from shardmw.bench.ratelimit.limits import FILLED, FRESH, SHARDMW, STOCK
from shardmw.bench.results.figures import most_in_window
from shardmw.bench.results.summary import summarize
from shardmw.bench.scenarios import base
from shardmw.bench.site import Site
from shardmw.bench.tables import figure, plain
from shardmw.placement import shard_of

WINDOWS_SECONDS = (1, 10)

# A window may begin with one write and end with another.
_ROUNDING = 1


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
        return [
            *(_Case(None, None, n) for n in (*self.shards, None)),
            *(
                _Case(SHARDMW, rate, shards)
                for rate in self.rates
                for shards in self.shards
            ),
            *(
                _Case(STOCK, rate, None, state)
                for rate in self.stock_rates
                for state in (FRESH, FILLED)
            ),
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
        return {
            **summary.as_json(),
            **row,
            'rate_since_first': rate_since_first(
                times, outcome.began_at + outcome.seconds
            ),
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
    """Return what kept the rate of a load from being higher. Pure."""
    if row['is_client_bound']:
        return 'clients'
    total = total_limit(row)
    if total and not limits.is_machine_bound(total, row['unlimited_rate']):
        return 'limit'
    return 'machine'


def total_limit(row: Mapping) -> float | None:
    """Return the limit of all shards together. Pure."""
    return row['rate'] and row['rate'] * (row['shards'] or 1)
