# SPDX-License-Identifier: Apache-2.0
"""What each kind of work asks for. Pure, but for what it puts in before."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.bench.names import FlatNames, Names, TreeNames
from shardmw.bench.site import Site
from shardmw.bench.sources import (
    Deletes,
    Heads,
    Listings,
    Mixed,
    Reads,
    Source,
    Uploads,
)
from shardmw.bench.units import parse_mix, parse_size_mix
from shardmw.bench.workloads.parameters import (
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


@dataclass(frozen=True)
class Work:
    """A kind of work.

    :param summary: a line for the help
    :param source: what to ask for: ``(container's path, parameters, names,
                   conditions, turn)``
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
    source: Callable[..., Source]
    names: Callable[[WorkParameters, Site], Names | None]
    put: Callable[..., None]
    conditions: Callable[..., Sequence[Mapping[str, object]]]
    spends: bool = False
    writes: bool = False


def _no_names(parameters: WorkParameters, site: Site) -> None:
    return None


def _object_names(parameters: ReadParameters, site: Site) -> Names:
    return FlatNames(parameters.objects)


def _listed_names(parameters: ListParameters, site: Site) -> Names:
    longest = site.longest_page
    if max(parameters.page) > longest:
        raise BenchError(
            f'{site.urls[0]} gives up to {longest} rows a page: ask for '
            f'fewer than {max(parameters.page)}'
        )
    rows = parameters.rows or (_OWN_ROWS if site.is_own else _REMOTE_ROWS)
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
    parameters: ListParameters,
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


def _list_conditions(
    parameters: ListParameters, names: Names
) -> list[dict[str, object]]:
    words = {
        name: getattr(parameters, name) for name in ('delimiter', 'prefix')
    }
    return [
        {
            'clients': parameters.clients,
            'rows': len(names),
            'page': page,
            **{name: word for name, word in words.items() if word},
        }
        for page in parameters.page
    ]


def _uploads(
    path: str,
    parameters: WriteParameters,
    names: None,
    conditions: Mapping,
    turn: int,
) -> Source:
    # so that they fall evenly into ranges of names, too
    return Uploads(path, parse_size_mix(parameters.size), spread=True)


def _reads(
    path: str,
    parameters: ReadParameters,
    names: Names,
    conditions: Mapping,
    turn: int,
) -> Source:
    return Reads(path, names, shuffled=True)


def _heads(
    path: str,
    parameters: ReadParameters,
    names: Names,
    conditions: Mapping,
    turn: int,
) -> Source:
    return Heads(path, names, shuffled=True)


def _deletes(
    path: str,
    parameters: DeleteParameters,
    names: Names,
    conditions: Mapping,
    turn: int,
) -> Source:
    return Deletes(path, names, shuffled=True)


def _listings(
    path: str,
    parameters: ListParameters,
    names: Names,
    conditions: Mapping,
    turn: int,
) -> Source:
    return Listings(
        path,
        names,
        conditions['page'],
        delimiter=parameters.delimiter,
        prefix=parameters.prefix,
    )


def _mixed(
    path: str,
    parameters: MixedParameters,
    names: Names,
    conditions: Mapping,
    turn: int,
) -> Source:
    return Mixed(
        path,
        parse_mix(parameters.mix),
        names,
        parse_size_mix(parameters.size),
        tag=f'new{turn}',
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
