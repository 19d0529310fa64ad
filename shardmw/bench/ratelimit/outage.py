# SPDX-License-Identifier: Apache-2.0
"""``outage``: stop memcached during a load, and start it again."""

import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from shardmw.bench.load.outcome import Outcome, errors_of
from shardmw.bench.load.stage import Stage
from shardmw.bench.ratelimit import limits
from shardmw.bench.results.figures import count_between, per_second
from shardmw.bench.results.summary import summarize
from shardmw.bench.scenarios import base
from shardmw.bench.site import Site
from shardmw.bench.tables import figure
from shardmw.saio.logs import read_from, size
from shardmw.saio.topology import MEMCACHED

PHASES = ('before', 'during', 'after')

_REFUSED = ' 498 '


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
    rows_key = 'runs'
    loads = 2 * len(PHASES)

    def measured(self, stage: Stage) -> Iterator[Mapping]:
        """Stop memcached during a load, without a limit and with one."""
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
            phase['log_lines'] = _log_lines(logs[i], logs[i + 1])._asdict()
            phases.append(phase)
            admitted = figure(phase['admitted_rate'])
            stage.screen.line(f'{PHASES[i]}: {admitted}/s admitted')
        return {
            **summarize(outcome).as_json(),
            'shards': self.middle_shards,
            'phases': phases,
        }

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        """Return each phase of both runs."""
        unlimited, *_ = figures['runs']
        rows = []
        for run in reversed(figures['runs']):
            total = run['rate'] and run['rate'] * self.middle_shards
            pairs = zip(run['phases'], unlimited['phases'], strict=True)
            for phase, free in pairs:
                is_bound = total and not limits.is_machine_bound(
                    total, free['admitted_rate']
                )
                rows.append(
                    {
                        **phase,
                        'rate': run['rate'],
                        'total': total,
                        'bound_by': 'limit' if is_bound else 'machine',
                    }
                )
        return {'rows': rows, 'limit': limits.limit_text}


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


def _log_lines(
    begins: Mapping[Path, int], ends: Mapping[Path, int]
) -> LogLines:
    written = b''.join(
        read_from(path, begin)[: ends[path] - begin]
        for path, begin in begins.items()
    )
    return count_log_lines(written.decode(errors='replace'))


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
