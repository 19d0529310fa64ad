# SPDX-License-Identifier: Apache-2.0
"""The kinds of work: their requests, and the content of containers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.bench.load import sources
from shardmw.bench.load.sources import Source
from shardmw.bench.names import FlatNames, Names, TreeNames
from shardmw.bench.site import Site
from shardmw.bench.units import parse_mix, parse_size_mix
from shardmw.bench.workloads.parameters import (
    ContainerParameters,
    DeleteParameters,
    ListParameters,
    MixedParameters,
    ReadParameters,
    WorkParameters,
    WriteParameters,
)

_OWN_ROWS = 100_000
_REMOTE_ROWS = 10_000
_DIRECTORIES = 100


class Task(NamedTuple):
    """A load on a container.

    :param path: of the container, quoted
    :param names: of its objects; None for an empty container
    :param conditions: of the run
    :param turn: the number of the round
    """

    path: str
    kind: Kind
    parameters: WorkParameters
    names: Names | None
    conditions: Mapping[str, object]
    turn: int


@dataclass(frozen=True)
class Work:
    """A kind of work.

    :param summary: a line for the help
    :param source: returns the requests of a task
    :param names: returns the names of the objects that a container has
                  before the load; raises ValueError or BenchError if that
                  is impossible
    :param is_of_objects: False if rows without objects are enough
    :param spends: True if each load needs a new container
    :param writes: True if it writes
    """

    name: str
    summary: str
    parameters: type[WorkParameters]
    source: Callable[[Task], Source]
    names: Callable[[WorkParameters, Site], Names | None]
    is_of_objects: bool = True
    spends: bool = False
    writes: bool = False

    def conditions(
        self, parameters: WorkParameters, names: Names | None
    ) -> Sequence[Mapping[str, object]]:
        """Return the conditions of the runs of each round."""
        return parameters.conditions(names)

    def put(
        self,
        site: Site,
        container: str,
        kind: Kind,
        parameters: WorkParameters,
        names: Names,
    ) -> None:
        """Fill a container."""
        if self.is_of_objects:
            size = parse_size_mix(parameters.size)
            site.populate(container, names, size, parameters.clients)
        elif site.is_own:
            site.fill(container, kind, names)
        else:
            site.populate(container, names)


def _object_names(parameters: ReadParameters, site: Site) -> Names:
    return FlatNames(parameters.objects)


def _row_names(parameters: ContainerParameters, site: Site) -> Names:
    default = _OWN_ROWS if site.is_own else _REMOTE_ROWS
    return FlatNames(parameters.rows or default)


def _listed_names(parameters: ListParameters, site: Site) -> Names:
    longest = site.longest_page
    if max(parameters.page) > longest:
        raise BenchError(
            f'{site.urls[0]} gives up to {longest} rows a page: choose a '
            f'smaller --page than {max(parameters.page)}'
        )
    names = _row_names(parameters, site)
    directories = parameters.directories
    if directories is None:
        in_directories = parameters.delimiter or parameters.prefix
        directories = _DIRECTORIES if in_directories else 0
    if not directories:
        return names
    return TreeNames(directories, max(1, len(names) // directories))


def _uploads(task: Task) -> Source:
    # spread names fall evenly into native ranges, too
    size = parse_size_mix(task.parameters.size)
    return sources.Uploads(task.path, size, spread=True)


def _shuffled(kind: type[Source]) -> Callable[[Task], Source]:
    return lambda task: kind(task.path, task.names, shuffled=True)


def _listings(task: Task) -> Source:
    return sources.Listings(
        task.path,
        task.names,
        task.conditions['page'],
        delimiter=task.parameters.delimiter,
        prefix=task.parameters.prefix,
        unordered=task.parameters.unordered,
        shards=task.kind.shards or 1,
        depth=task.kind.depth,
    )


def _mixed(task: Task) -> Source:
    return sources.Mixed(
        task.path,
        parse_mix(task.parameters.mix),
        task.names,
        parse_size_mix(task.parameters.size),
        tag=f'new{task.turn}',
    )


_ALL = (
    Work(
        'write',
        'Upload new objects.',
        WriteParameters,
        _uploads,
        lambda parameters, site: None,
        spends=True,
        writes=True,
    ),
    Work(
        'read',
        'Read objects.',
        ReadParameters,
        _shuffled(sources.Reads),
        _object_names,
    ),
    Work(
        'head',
        'Request the headers of objects.',
        ReadParameters,
        _shuffled(sources.Heads),
        _object_names,
    ),
    Work(
        'delete',
        'Delete objects until none is left.',
        DeleteParameters,
        _shuffled(sources.Deletes),
        _object_names,
        spends=True,
        writes=True,
    ),
    Work(
        'list',
        'List containers, page by page.',
        ListParameters,
        _listings,
        _listed_names,
        is_of_objects=False,
    ),
    Work(
        'head-container',
        'Request the headers of containers.',
        ContainerParameters,
        lambda task: sources.ContainerHeads(task.path),
        _row_names,
        is_of_objects=False,
    ),
    Work(
        'mixed',
        'Write, read, HEAD and delete objects in a ratio.',
        MixedParameters,
        _mixed,
        _object_names,
        writes=True,
    ),
)

#: All kinds of work, by name.
WORKS = {work.name: work for work in _ALL}
