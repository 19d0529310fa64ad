# SPDX-License-Identifier: Apache-2.0
"""Scenarios that compare containers, as ``shardmw-bench compare`` does."""

from dataclasses import dataclass, replace
from itertools import product

import click

from shardmw_bench import options as types
from shardmw_bench.kinds import DISK
from shardmw_bench.load.sources import Reads
from shardmw_bench.load.stage import Ledger, Stage
from shardmw_bench.names import FlatNames
from shardmw_bench.options import option
from shardmw_bench.plots.plot import Plot
from shardmw_bench.plots.runs import LATENCIES, all_of, by_condition
from shardmw_bench.results.runs import runs_of
from shardmw_bench.scenarios import base
from shardmw_bench.scenarios.rounds import grouped
from shardmw_bench.site import Site
from shardmw_bench.tables import Table, plain
from shardmw_bench.targets.disk import served, write_files
from shardmw_bench.units import size_text
from shardmw_bench.workloads import report
from shardmw_bench.workloads.measuring import measure_work
from shardmw_bench.workloads.works import LIMIT_OPTION, WORKS, Work

WRITE = 'write'
READ = 'read'
_WORKS = types.several('works', click.Choice((WRITE, READ)))

_KIB, _MIB = 1 << 10, 1 << 20

# At most so many bytes are uploaded before reads.
_READ_BYTES = 128 * _MIB

# A load of uploads ends after so many bytes.
_WRITTEN_BYTES = 2048 * _MIB


@dataclass(frozen=True)
class Comparison(base.LoadScenario):
    """Uploads and reads under several conditions."""

    works: tuple[str, ...] = option(
        (WRITE, READ), _WORKS, 'The work to measure: write, read or both.'
    )
    clients: tuple[int, ...] = option(
        (16,), types.CLIENT_COUNTS, 'Concurrent clients.', '-t', '--clients'
    )
    sizes: tuple[int, ...] = option(
        (4 * _KIB,), types.SIZES, 'Sizes of the objects.', '-b', '--sizes'
    )
    objects: tuple[int, ...] = option(
        (256,),
        types.COUNTS,
        'Objects in each container that is read; fewer if they are large.',
    )
    limit: float | None = option(
        None,
        types.RATE,
        'Rate limit of each backing container, in writes/s; measured in '
        'addition to no limit.',
    )
    disk: bool = option(
        False, bool, 'Also read the objects as files from a web server.'
    )

    def works_with(self, limit: float | None) -> list[Work]:
        found = []
        for work, size in product(self.works, self.sizes):
            counts = self.objects if work == READ else (0,)
            for objects, clients in product(counts, self.clients):
                if work == READ:
                    most = max(1, _READ_BYTES // size)
                    also = {'objects': min(objects, most)}
                else:
                    also = {'count': max(clients, _WRITTEN_BYTES // size)}
                found.append(
                    WORKS[work](
                        clients=clients,
                        shards=(0, *self.shards),
                        rounds=self.rounds,
                        seconds=self.seconds,
                        size=size_text(size),
                        limit=limit,
                        **also,
                    )
                )
        return found

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        ledger = Ledger(stage, keep)
        for limit in dict.fromkeys((None, self.limit)):
            settings = {LIMIT_OPTION: plain(limit)} if limit else {}
            with stage.site(self.cluster(settings)) as site:
                ledger.cluster = site.cluster
                for each in self.works_with(limit):
                    measure_work(stage, site, ledger, each)
                    if self.disk:
                        _read_from_disk(site, ledger, each)
        return ledger.figures

    def tables(self, figures: base.Figures) -> list[Table]:
        works = grouped(figures['runs'], lambda run: run['work'])
        return [
            table
            for runs in works.values()
            for table in report.tables({'runs': runs})
        ]

    def plots(self, figures: base.Figures) -> list[Plot]:
        runs = runs_of(figures)
        return [
            *all_of(runs),
            *by_condition(runs, 'size', *LATENCIES),
            *by_condition(runs, 'clients', *LATENCIES),
        ]


def _read_from_disk(site: Site, ledger: Ledger, parameters: Work) -> None:
    """Read files of a web server that uses sendfile."""
    names = FlatNames(parameters.objects)
    conditions = parameters.conditions(names)[0]
    words = '-'.join(map(str, conditions.values()))
    folder = site.cluster.path / f'files-{words}'
    write_files(folder, names, conditions['size'])
    with served(folder) as url:
        load = replace(
            site.load(
                Reads('', names, shuffled=True),
                parameters.clients,
                seconds=parameters.seconds,
            ),
            urls=(url,),
        )
        for turn in range(parameters.rounds):
            ledger.measure(load, READ, DISK, turn, **conditions)


class ContainerSharding(Comparison):
    """Many writers, one container: plain, and of 1 to 512 shards."""

    name = 'container-sharding'
    minutes = 10
    published = (
        'Published for 128 writers: 87,000 writes in 15 minutes on one '
        'container, 135,000 on 32, which are 97 /s and 150 /s (1.55 times as '
        'many).'
    )
    defaults = {
        'works': (WRITE,),
        'clients': (128,),
        'sizes': (1,),
        'shards': (1, 32, 64, 128, 256, 512),
        'limit': 100.0,
    }


class ObjectSize(Comparison):
    """Uploads of small and large objects, plain and sharded."""

    name = 'object-size'
    minutes = 5
    published = (
        'Published for 16 clients: 325, 300, 40 and 3 PUT/s of 4K, 32K, 4M '
        'and 64M, which are 1.3, 9.2, 155 and 160 MB/s.'
    )
    defaults = {
        'works': (WRITE,),
        'sizes': (4 * _KIB, 32 * _KIB, 4 * _MIB, 64 * _MIB),
    }


class Concurrency(Comparison):
    """PUT and GET of small and large objects, by one client and many."""

    name = 'concurrency'
    minutes = 7
    published = (
        'Published for PUT by 16 clients: 325 /s of 4K (1.3 MB/s) and 40 /s '
        'of 4M (155 MB/s).'
    )
    defaults = {
        'seconds': 2.5,
        'clients': (1, 16),
        'sizes': (4 * _KIB, 4 * _MIB),
    }


class SmallObjects(Comparison):
    """Time PUT and GET of a 64K object, plain and sharded."""

    name = 'small-objects'
    minutes = 6
    defaults = {
        'seconds': 2.0,
        'rounds': 12,
        'clients': (1, 16),
        'sizes': (64 * _KIB,),
    }


class LogServing(Comparison):
    """Reads of one log again and again, and of recent logs, by many clients;
    from a plain disk, too.
    """

    name = 'log-serving'
    minutes = 4
    published = (
        'Published means for a log of 1.2 MB: from a plain disk 7.6 ms to the '
        'response and 1,389 ms of transfer; from Swift 96.7 ms and 3,660 ms.'
    )
    defaults = {
        'works': (READ,),
        'sizes': (1200 * _KIB,),
        'objects': (1, 64),
        'disk': True,
    }
