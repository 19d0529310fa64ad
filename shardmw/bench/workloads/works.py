# SPDX-License-Identifier: Apache-2.0
"""What each kind of work asks for. Pure, but for what it puts in before."""

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
    :param source: what to ask for
    :param names: what a container has to hold before, ``(parameters, site)``;
                  None for nothing; BenchError or ValueError, in words for
                  people, if it can't
    :param put: puts that into a container: ``(site, container, kind,
                parameters, names)``
    :param conditions: of its runs, in each round one after the other:
                       ``(parameters, names)``
    :param spends: whether a container does for one load only
    :param writes: whether it writes
    """

    name: str
    summary: str
    parameters: type[WorkParameters]
    source: Callable[[Task], Source]
    names: Callable[[WorkParameters, Site], Names | None]
    put: Callable[..., None]
    conditions: Callable[..., Sequence[Mapping[str, object]]]
    spends: bool = False
    writes: bool = False


def _no_names(parameters: WorkParameters, site: Site) -> None:
    return None


def _object_names(parameters: ReadParameters, site: Site) -> Names:
    return FlatNames(parameters.objects)


def _contained_names(parameters: ContainerParameters, site: Site) -> Names:
    return FlatNames(_rows(parameters, site))


def _rows(parameters: ContainerParameters, site: Site) -> int:
    return parameters.rows or (_OWN_ROWS if site.is_own else _REMOTE_ROWS)


def _listed_names(parameters: ListParameters, site: Site) -> Names:
    longest = site.longest_page
    if max(parameters.page) > longest:
        raise BenchError(
            f'{site.urls[0]} gives up to {longest} rows a page: ask for '
            f'no more of them than that, and not for {max(parameters.page)}'
        )
    rows = _rows(parameters, site)
    directories = parameters.directories
    if directories is None:
        in_directories = parameters.delimiter or parameters.prefix
        directories = _DIRECTORIES if in_directories else 0
    if not directories:
        return FlatNames(rows)
    return TreeNames(directories, max(1, rows // directories))


def _put_nothing(*_: object) -> None:
    pass


def _put_objects(
    site: Site,
    container: str,
    kind: Kind,
    parameters: ReadParameters,
    names: Names,
) -> None:
    size = parse_size_mix(parameters.size)
    site.populate(container, names, size, parameters.clients)


def _put_rows(
    site: Site,
    container: str,
    kind: Kind,
    parameters: ContainerParameters,
    names: Names,
) -> None:
    if site.is_own:
        site.fill(container, kind, names)
    else:
        site.populate(container, names)


def _object_conditions(
    parameters: WriteParameters, names: Names | None
) -> list[dict[str, object]]:
    size = parse_size_mix(parameters.size)
    conditions = {
        'clients': parameters.clients,
        'size': size.largest if size.largest == size.mean else size.label,
        **({} if names is None else {'objects': len(names)}),
        **({} if parameters.limit is None else {'limit': parameters.limit}),
    }
    return [conditions]


def _mixed_conditions(
    parameters: MixedParameters, names: Names
) -> list[dict[str, object]]:
    (conditions,) = _object_conditions(parameters, names)
    return [{**conditions, 'mix': parameters.mix}]


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
    # so that they fall evenly into ranges of names, too
    return Uploads(
        task.path, parse_size_mix(task.parameters.size), spread=True
    )


def _reads(task: Task) -> Source:
    return Reads(task.path, task.names, shuffled=True)


def _heads(task: Task) -> Source:
    return Heads(task.path, task.names, shuffled=True)


def _deletes(task: Task) -> Source:
    return Deletes(task.path, task.names, shuffled=True)


def _container_heads(task: Task) -> Source:
    return ContainerHeads(task.path)


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
        'Upload objects, each of a name of its own.',
        WriteParameters,
        _uploads,
        _no_names,
        _put_nothing,
        _object_conditions,
        spends=True,
        writes=True,
    ),
    Work(
        'read',
        'Read objects.',
        ReadParameters,
        _reads,
        _object_names,
        _put_objects,
        _object_conditions,
    ),
    Work(
        'head',
        'Ask for the headers of objects.',
        ReadParameters,
        _heads,
        _object_names,
        _put_objects,
        _object_conditions,
    ),
    Work(
        'delete',
        'Delete objects, until there are none.',
        DeleteParameters,
        _deletes,
        _object_names,
        _put_objects,
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
        _put_rows,
        _list_conditions,
    ),
    Work(
        'head-container',
        'Ask for the headers of containers.',
        ContainerParameters,
        _container_heads,
        _contained_names,
        _put_rows,
        _container_conditions,
    ),
    Work(
        'mixed',
        'Write, read, HEAD and delete objects, in a ratio.',
        MixedParameters,
        _mixed,
        _object_names,
        _put_objects,
        _mixed_conditions,
        writes=True,
    ),
)

#: All kinds of work, by name.
WORKS = {work.name: work for work in _ALL}
