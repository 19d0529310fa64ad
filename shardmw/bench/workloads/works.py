# SPDX-License-Identifier: Apache-2.0
"""The kinds of work: their requests, and what they need before."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.bench.load.sources import (
    ContainerHeads,
    Deletes,
    Heads,
    Listings,
    Mixed,
    Reads,
    Source,
    Uploads,
)
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
    :param names: what it holds; None for nothing
    :param conditions: of the run
    :param turn: which of the rounds it belongs to
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
    :param names: ``(parameters, site)``: returns the names of what a
                  container has to hold before, None for nothing; raises
                  BenchError or ValueError if it cannot
    :param conditions: ``(parameters, names)``: returns those of its runs, in
                       each round one after the other
    :param is_of_objects: False if rows without objects are enough
    :param spends: True if a container is good for one load only
    :param writes: True if it writes
    """

    name: str
    summary: str
    parameters: type[WorkParameters]
    source: Callable[[Task], Source]
    names: Callable[[WorkParameters, Site], Names | None]
    conditions: Callable[..., Sequence[Mapping[str, object]]]
    is_of_objects: bool = True
    spends: bool = False
    writes: bool = False

    def put(
        self,
        site: Site,
        container: str,
        kind: Kind,
        parameters: WorkParameters,
        names: Names,
    ) -> None:
        """Put what a container has to hold into it."""
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
            f'{site.urls[0]} gives up to {longest} rows a page: ask for '
            f'no more of them than that, and not for {max(parameters.page)}'
        )
    names = _row_names(parameters, site)
    directories = parameters.directories
    if directories is None:
        in_directories = parameters.delimiter or parameters.prefix
        directories = _DIRECTORIES if in_directories else 0
    if not directories:
        return names
    return TreeNames(directories, max(1, len(names) // directories))


def _object_conditions(
    parameters: WriteParameters, names: Names | None
) -> list[dict[str, object]]:
    size = parse_size_mix(parameters.size)
    values = {
        'clients': parameters.clients,
        'size': size.largest if size.largest == size.mean else size.label,
        'objects': None if names is None else len(names),
        'limit': parameters.limit,
        'mix': getattr(parameters, 'mix', None),
    }
    return [{name: each for name, each in values.items() if each is not None}]


def _container_conditions(
    parameters: ContainerParameters, names: Names
) -> list[dict[str, object]]:
    return [{'clients': parameters.clients, 'rows': len(names)}]


def _list_conditions(
    parameters: ListParameters, names: Names
) -> list[dict[str, object]]:
    (conditions,) = _container_conditions(parameters, names)
    words = {
        'delimiter': parameters.delimiter,
        'prefix': parameters.prefix,
        'order': 'any' if parameters.unordered else '',
    }
    also = {name: word for name, word in words.items() if word}
    return [{**conditions, 'page': page, **also} for page in parameters.page]


def _uploads(task: Task) -> Source:
    # spread names fall evenly into native ranges, too
    size = parse_size_mix(task.parameters.size)
    return Uploads(task.path, size, spread=True)


def _listings(task: Task) -> Source:
    return Listings(
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
    return Mixed(
        task.path,
        parse_mix(task.parameters.mix),
        task.names,
        parse_size_mix(task.parameters.size),
        tag=f'new{task.turn}',
    )


_ALL = (
    Work(
        'write',
        'Upload objects with a new name each.',
        WriteParameters,
        _uploads,
        lambda parameters, site: None,
        _object_conditions,
        spends=True,
        writes=True,
    ),
    Work(
        'read',
        'Read objects.',
        ReadParameters,
        lambda task: Reads(task.path, task.names, shuffled=True),
        _object_names,
        _object_conditions,
    ),
    Work(
        'head',
        'Ask for the headers of objects.',
        ReadParameters,
        lambda task: Heads(task.path, task.names, shuffled=True),
        _object_names,
        _object_conditions,
    ),
    Work(
        'delete',
        'Delete objects, until there are none.',
        DeleteParameters,
        lambda task: Deletes(task.path, task.names, shuffled=True),
        _object_names,
        _object_conditions,
        spends=True,
        writes=True,
    ),
    Work(
        'list',
        'List containers, page by page.',
        ListParameters,
        _listings,
        _listed_names,
        _list_conditions,
        is_of_objects=False,
    ),
    Work(
        'head-container',
        'Ask for the headers of containers.',
        ContainerParameters,
        lambda task: ContainerHeads(task.path),
        _row_names,
        _container_conditions,
        is_of_objects=False,
    ),
    Work(
        'mixed',
        'Write, read, HEAD and delete objects, in a ratio.',
        MixedParameters,
        _mixed,
        _object_names,
        _object_conditions,
        writes=True,
    ),
)

#: All kinds of work, by name.
WORKS = {work.name: work for work in _ALL}
