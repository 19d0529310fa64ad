# SPDX-License-Identifier: Apache-2.0
"""What clients ask for. Pure.

A source is numbered requests, dealt out to the client processes in turn. It
is pickled and sent to them, so it's small and makes its requests there.

Paths of containers are quoted, such as ``/v1/AUTH_test/logs``. Names come
from :mod:`shardmw.bench.names`.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import ClassVar, NamedTuple, Protocol
from urllib.parse import quote, urlencode

from shardmw.bench.load.chance import shuffling_step
from shardmw.bench.names import Names, ScatteredNames, in_turns
from shardmw.bench.units import (
    DELETE,
    HEAD,
    LIST,
    OPERATIONS,
    OVERWRITE,
    READ,
    WRITE,
    Mix,
    SizeMix,
)

# Makes the first numbers that fit into its bits fall far apart, evenly.
_SPREAD_FACTOR = 40503
_SPREAD_MASK = 0xFFFF


class Request(NamedTuple):
    """What to send.

    :param kind: what it does, as an index of the source's ``kinds``
    :param target: path and query, quoted
    :param body_bytes: the size of its body, None for none
    """

    kind: int
    number: int
    method: bytes
    target: bytes
    body_bytes: int | None


class Source(Protocol):
    """Where requests come from.

    ``kinds`` are the names of what its requests do.
    """

    kinds: tuple[str, ...]

    def requests(self, first: int, step: int) -> Iterator[Request]:
        """Return the requests numbered ``first``, ``first + step`` and so on.

        An iterator with a method ``answered(request, status)`` is told what
        came of each.
        """
        ...


@dataclass(frozen=True)
class Uploads:
    """Objects, each of a name of its own, without end.

    :param size: of each object, in bytes
    :param prefix: what the names begin with
    :param spread: begin the names with four hexadecimal digits of a hash of
                   the request's number, so that they fall evenly into ranges
                   that divide these digits evenly
    """

    container_path: str
    size: int | SizeMix
    prefix: str = 'o'
    spread: bool = False
    kinds: ClassVar[tuple[str, ...]] = ('PUT',)

    def name(self, number: int) -> str:
        """Return the name of the object that a request uploads."""
        own = f'{self.prefix}{number:010d}'
        if not self.spread:
            return own
        return f'{number * _SPREAD_FACTOR & _SPREAD_MASK:04x}-{own}'

    def requests(self, first: int, step: int) -> Iterator[Request]:
        for number in count(first, step):
            yield _upload(self, number, self.name(number))


@dataclass(frozen=True)
class NamedUploads:
    """An object of each name; ends with the last one.

    :param size: of each object, in bytes
    :param first: the index of the first name
    """

    container_path: str
    names: Names
    size: int | SizeMix
    first: int = 0
    kinds: ClassVar[tuple[str, ...]] = ('PUT',)

    def requests(self, first: int, step: int) -> Iterator[Request]:
        for number in range(first, len(self.names) - self.first, step):
            yield _upload(self, number, self.names[self.first + number])


@dataclass(frozen=True)
class _Existing:
    """Requests for objects that exist, one after the other, round and round.

    :param count: only the first so many names; None for all
    :param shuffled: not in the names' order; each comes once a round still
    """

    container_path: str
    names: Names
    count: int | None = None
    shuffled: bool = False
    is_endless: ClassVar[bool] = True

    @property
    def total(self) -> int:
        """Return how many objects there are."""
        return len(self.names) if self.count is None else self.count

    def name(self, number: int) -> str:
        """Return the name of the object that a request is for."""
        return self.names[number * self._step % self.total]

    def requests(self, first: int, step: int) -> Iterator[Request]:
        method = self.kinds[0].encode()
        for number in count(first, step):
            if number >= self.total and not self.is_endless:
                return
            target = _target(self.container_path, self.name(number))
            yield Request(0, number, method, target, None)

    @cached_property
    def _step(self) -> int:
        return shuffling_step(self.total) if self.shuffled else 1


class Reads(_Existing):
    """GETs of objects that exist."""

    kinds = ('GET',)


class Heads(_Existing):
    """HEADs of objects that exist."""

    kinds = ('HEAD',)


class Deletes(_Existing):
    """DELETEs of objects that exist, of each once."""

    kinds = ('DELETE',)
    is_endless = False


@dataclass(frozen=True)
class ContainerHeads:
    """HEADs of a container, again and again."""

    container_path: str
    kinds: ClassVar[tuple[str, ...]] = ('HEAD',)

    def requests(self, first: int, step: int) -> Iterator[Request]:
        target = self.container_path.encode()
        for number in count(first, step):
            yield Request(0, number, b'HEAD', target, None)


@dataclass(frozen=True)
class Listings:
    """Pages of a container whose names are known, round and round.

    They don't depend on each other's answers, so that clients can ask for
    several at a time.

    :param names: of all that the container has
    :param page: rows of a page at most
    :param format: of Swift, such as ``json``; empty for plain text
    :param unordered: whether any order will do; not with a delimiter
    :param shards: that an unordered listing goes through, one after the
                   other; 1 if it is in the order of names all the same
    :param depth: of the container
    """

    container_path: str
    names: Names
    page: int
    delimiter: str = ''
    prefix: str = ''
    format: str = 'json'
    unordered: bool = False
    shards: int = 1
    depth: int = 0
    kinds: ClassVar[tuple[str, ...]] = ('GET',)

    def __post_init__(self) -> None:
        if self.unordered and self.delimiter:
            raise ValueError('a listing with a delimiter has an order')

    @property
    def pages(self) -> int:
        """Return how many pages the listing has; an empty one has one."""
        return max(1, -(-self._count // self.page))

    def rows_of(self, number: int) -> int:
        """Return how many rows the page has that a request is for."""
        before = number % self.pages * self.page
        return min(self.page, self._count - before)

    def requests(self, first: int, step: int) -> Iterator[Request]:
        # before the first is asked for, which must not wait for it
        order = self._order
        return (self._request(number, order) for number in count(first, step))

    def _request(self, number: int, order: Sequence[int]) -> Request:
        before = number % self.pages * self.page
        marker = ''
        if before:
            marker = self._row_at(order[before - 1])[0]
        after = f'&marker={quote(marker)}' if marker else ''
        target = f'{self.container_path}?{self._query}{after}'
        return Request(0, number, b'GET', target.encode(), None)

    @cached_property
    def _query(self) -> str:
        query = {
            'format': self.format,
            'limit': self.page,
            'prefix': self.prefix,
            'delimiter': self.delimiter,
            'allow_unordered': 'true' if self.unordered else '',
        }
        return urlencode({name: word for name, word in query.items() if word})

    @property
    def _count(self) -> int:
        """Return how many rows all pages have."""
        return len(self._folded if self.delimiter else self._range)

    @property
    def _order(self) -> Sequence[int]:
        """Return the indexes of the names of rows, in the rows' order."""
        if self.delimiter:
            return self._folded
        if not self.unordered or self.shards == 1:
            return self._range
        return in_turns(self.names, self._range, self.shards, self.depth)

    @cached_property
    def _range(self) -> range:
        """The indexes of the names that begin with the prefix."""
        first = bisect_left(self.names, self.prefix)
        return range(first, _end_of(self.names, self.prefix, first))

    @cached_property
    def _folded(self) -> Sequence[int]:
        """The indexes of the first names of rows, if some are subdirs."""
        found = []
        index = self._range.start
        while index < self._range.stop:
            found.append(index)
            _, index = self._row_at(index)
        return found

    def _row_at(self, index: int) -> tuple[str, int]:
        """``(row, index behind it)``: a name, or all that it stands for."""
        name = self.names[index]
        at = -1
        if self.delimiter:
            at = name.find(self.delimiter, len(self.prefix))
        if at < 0:
            return name, index + 1
        subdir = name[: at + len(self.delimiter)]
        return subdir, _end_of(self.names, subdir, index)


@dataclass(frozen=True)
class SomePages:
    """Some pages of listings, which lie evenly among all of them.

    :param first: the number of the first page
    :param stride: how far apart they are
    """

    listings: Listings
    first: int = 0
    stride: int = 1
    kinds: ClassVar[tuple[str, ...]] = Listings.kinds

    def rows_of(self, number: int) -> int:
        """Return how many rows the page has that a request is for."""
        return self.listings.rows_of(self.first + number * self.stride)

    def requests(self, first: int, step: int) -> Iterator[Request]:
        pages = self.listings.requests(
            self.first + first * self.stride, step * self.stride
        )
        for number, page in zip(count(first, step), pages, strict=False):
            yield page._replace(number=number)


@dataclass(frozen=True)
class Mixed:
    """Different operations, without end.

    Reads, heads and overwrites are of objects that exist. Writes are of new
    ones, whose names fall between theirs, and deletes of those that were
    written, once this was answered. Until one is, a write comes in the place
    of a delete. Pages of listings begin at the names of objects that exist.

    :param names: of objects that exist and are not deleted, at least one
    :param size: of objects that are written, in bytes
    :param tag: what tells these from those of another load
    :param page: rows of a page of a listing
    """

    container_path: str
    mix: Mix
    names: Names
    size: int | SizeMix
    tag: str = 'new'
    page: int = 100
    #: as :data:`OPERATIONS` are ordered
    kinds: ClassVar[tuple[str, ...]] = (
        *('PUT', 'GET', 'HEAD', 'DELETE', 'overwrite', 'list'),
    )

    def requests(self, first: int, step: int) -> Iterator[Request]:
        return _MixedRequests(self, first, step)


class _MixedRequests:
    """One process's share of a mix; knows what it wrote."""

    def __init__(self, mixed: Mixed, first: int, step: int) -> None:
        self._mixed = mixed
        self._numbers = count(first, step)
        path, names = mixed.container_path, mixed.names
        new = ScatteredNames(names, mixed.tag)
        sources = {
            WRITE: NamedUploads(path, new, mixed.size),
            READ: Reads(path, names, shuffled=True),
            HEAD: Heads(path, names, shuffled=True),
            OVERWRITE: Reads(path, names, shuffled=True),
            LIST: Listings(path, names, mixed.page),
        }
        self._requests = {
            operation: source.requests(first, step)
            for operation, source in sources.items()
        }
        self._written: deque[bytes] = deque()

    def __iter__(self) -> Iterator[Request]:
        return self

    def __next__(self) -> Request:
        number = next(self._numbers)
        operation = self._mixed.mix.operation_of(number)
        if operation == DELETE and not self._written:
            operation = WRITE
        kind = OPERATIONS.index(operation)
        if operation == DELETE:
            target = self._written.popleft()
            return Request(kind, number, b'DELETE', target, None)
        request = next(self._requests[operation])
        if operation == OVERWRITE:
            size = _size_of(self._mixed.size, number)
            request = request._replace(method=b'PUT', body_bytes=size)
        return request._replace(kind=kind, number=number)

    def answered(self, request: Request, status: int) -> None:
        """Take note of what can be deleted from now on."""
        if request.kind == 0 and 200 <= status < 300:
            self._written.append(request.target)


def _upload(
    uploads: Uploads | NamedUploads, number: int, name: str
) -> Request:
    target = _target(uploads.container_path, name)
    return Request(0, number, b'PUT', target, _size_of(uploads.size, number))


def _target(container_path: str, name: str) -> bytes:
    return f'{container_path}/{quote(name)}'.encode()


def _size_of(size: int | SizeMix, number: int) -> int:
    return size if isinstance(size, int) else size.size_of(number)


def _end_of(names: Names, prefix: str, first: int) -> int:
    """Return the index behind those that begin with a prefix.

    :param first: the index of the first of them
    """
    return bisect_left(
        names, True, first, key=lambda name: not name.startswith(prefix)
    )
