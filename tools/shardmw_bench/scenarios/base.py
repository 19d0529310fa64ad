# SPDX-License-Identifier: Apache-2.0
"""Experiments that the command line offers, and what several share. Pure."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from shardmw_saio import ClusterOptions

from shardmw_bench import options as types
from shardmw_bench import templates
from shardmw_bench.kinds import PLAIN, Kind, sharded
from shardmw_bench.options import Parameters, check_shards, option
from shardmw_bench.plots.plot import Plot
from shardmw_bench.tables import Table

Figures = Mapping[str, object]
Keep = Callable[[Figures], None]


class Scenario(Parameters):
    """An experiment. Subclasses are frozen dataclasses of its parameters.

    The first paragraph of the docstring is the help of the command.

    ``name``
        of the command and of the result
    ``published``
        a sentence on figures that others published
    ``rows_key``
        the name of what is measured among the figures
    ``defaults``
        parameters that differ from the defaults of the fields
    ``main_tables``
        how many of its tables, from the first, a page for operators has
    ``minutes``
        about how long it takes with the default options; 0 for work, whose
        ``expected_seconds`` are computed
    """

    name: ClassVar[str]
    published: ClassVar[str] = ''
    rows_key: ClassVar[str] = 'rows'
    defaults: ClassVar[Mapping[str, object]] = {}
    main_tables: ClassVar[int] = 1
    minutes: ClassVar[int] = 0

    @classmethod
    def summary(cls) -> str:
        """Return the help of the command, as one line."""
        return inspect.getdoc(cls).partition('\n\n')[0].replace('\n', ' ')

    @classmethod
    def default(cls) -> 'Scenario':
        """Return the scenario of a command without options."""
        return cls(**cls.defaults)

    def measure(self, stage: Any, keep: Keep, **others: object) -> Figures:
        """Measure, and return figures for JSON: ``runs``, or ``rows``.

        :param stage: the clients and the screen
        :param keep: takes the figures after each step, for the case that
                     the command is interrupted
        :param others: further figures
        """
        figures = {**others, self.rows_key: []}
        for row in self.measured(stage):
            figures[self.rows_key].append(row)
            keep(figures)
        return figures

    def measured(self, stage: Any) -> Iterator[Mapping]:
        """Measure step by step, and yield the figures of each."""
        raise NotImplementedError

    def check_figures(self, figures: Figures) -> None:
        """Raise BenchError if the figures, already kept, show a failure."""

    def tables(self, figures: Figures) -> list[Table]:
        """Return the tables of all figures, or of part of them.

        These are the tables of the template of the scenario's name.
        """
        return templates.tables(
            self.name, **{**vars(self), **self.shown(figures)}
        )

    def shown(self, figures: Figures) -> Mapping[str, object]:
        """Return what the template shows, in addition to the parameters."""
        return figures

    def plots(self, figures: Figures) -> list[Plot]:
        """Return the plots of all figures, or of part of them."""
        return []


# The type, the help and the flags of options that several scenarios have.
_SHARED = {
    'shards': (
        types.COUNTS,
        'Shard counts, in addition to the plain container.',
    ),
    'clients': (types.CLIENTS, 'Concurrent clients.', '-t', '--clients'),
    'size': (types.SIZE, 'Size of the objects.', '-b', '--size'),
    'rows': (types.COUNT, 'Rows in each container.'),
    'page': (types.PAGES, 'Page sizes: limits of the listings.'),
    'rounds': (
        types.POSITIVE,
        'Rounds; each measures every container. Intervals need 6 rounds.',
    ),
    'processes': (
        types.PROCESSES,
        'Client processes; the clients are spread over them.',
    ),
    'proxies': (types.PROCESSES, 'Proxies of the cluster.'),
    'workers': (
        types.WORKERS,
        'Worker processes of each server; 0 for a single process.',
    ),
    'settings': (
        types.SETTING,
        'A setting of the cluster, as for shardmw-saio. Can be repeated.',
        '--set',
    ),
}


def shared(name: str, default: object) -> Any:
    """Return a field that is an option of several scenarios."""
    return option(default, *_SHARED[name], multiple=name == 'settings')


@dataclass(frozen=True)
class ClusterScenario(Scenario):
    """A scenario whose cluster can be configured."""

    shards: tuple[int, ...] = shared('shards', (32,))
    proxies: int = shared('proxies', 1)
    workers: int = shared('workers', 0)
    settings: Mapping[str, str] = shared('settings', {})

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return PLAIN, *map(sharded, self.shards)

    def check(self) -> None:
        check_shards(self.shards, self.settings)

    def cluster(
        self, settings: Mapping[str, str] | None = None
    ) -> ClusterOptions:
        """Return the options of the cluster.

        :param settings: of the scenario; the user's settings override them
        """
        return ClusterOptions(
            proxies=self.proxies,
            workers=self.workers,
            settings={**(settings or {}), **self.settings},
        )


@dataclass(frozen=True)
class LoadScenario(ClusterScenario):
    """A scenario that repeats loads on a cluster in rounds."""

    seconds: float = option(5.0, types.DURATION, 'How long each load lasts.')
    rounds: int = shared('rounds', 6)
    processes: int = shared('processes', 2)


def filled(stage: Any, site: Any, kind: Kind, names: Any) -> str:
    """Return a new container with rows, whose databases were filled."""
    with stage.screen.status(f'{kind.label}: writing {len(names):,} rows'):
        container = site.make(kind, names)
        site.fill(container, kind, names)
    return container
