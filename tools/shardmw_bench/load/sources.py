# SPDX-License-Identifier: Apache-2.0
"""Loads, and the sources of their requests. Pure.

The requests of a source have numbers, which are spread over the client
processes. A source is pickled and sent to them, so it is small.

Container paths are quoted, such as ``/v1/AUTH_test/logs``.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, NamedTuple, Protocol
from urllib.parse import quote, urlencode

from shardmw_bench import units
from shardmw_bench.names import Names, ScatteredNames, shuffling_step
from shardmw_bench.units import Mix, SizeMix

#: What a client does when its write was refused by a rate limit.
RETRY_AFTER = 'retry-after'  #: wait as long as the response says
BACK_OFF = 'backoff'  #: wait for a fixed time
AT_ONCE = 'at-once'  #: do not wait
REFUSAL_POLICIES = (RETRY_AFTER, BACK_OFF, AT_ONCE)

# Multiplied by it, successive numbers are spread evenly over 16 bits.
_SPREAD_FACTOR = 40503


class Request(NamedTuple):
    """A request to send.

    :param kind: an index of the source's ``kinds``
    :param target: path and query, quoted
    :param body_bytes: the size of the body; None for no body
    """

    kind: int
    number: int
    method: bytes
    target: bytes
    body_bytes: int | None


class Source(Protocol):
    """Numbered requests; ``kinds`` are the names of their operations."""

    kinds: tuple[str, ...]

    def requests(self, first: int, step: int) -> Iterator[Request]:
        """Return the requests numbered ``first``, ``first + step`` and so on.

        If the iterator has a method ``answered(request, status)``, it is
        called after each request.
        """
        ...


@dataclass(frozen=True)
class Load:
    """Concurrent clients, each of which sends one request after the other.

    A client is a connection that is kept alive. A refused request is not
    repeated. A load ends after ``seconds`` or ``count`` requests, when its
    source has no more requests, or when :meth:`Clients.stop` is called.

    :param urls: of the proxies; the clients are spread over them
    :param backoff_seconds: to wait after a refusal without a Retry-After
    :param pace_seconds: the least time between two requests of a client
    :param timeout_seconds: the time after which a request is given up
    :param drain_seconds: how long to wait for the last responses
    :param insecure: True to accept any certificate
    """

    urls: tuple[str, ...]
    token: str
    source: Source
    clients: int
    seconds: float | None = None
    count: int | None = None
    on_refusal: str = RETRY_AFTER
    backoff_seconds: float = 1.0
    pace_seconds: float = 0.0
    timeout_seconds: float = 120.0
    drain_seconds: float = 60.0
    insecure: bool = False

    @property
    def ends_when_told(self) -> bool:
        return self.seconds is None and self.count is None


@dataclass(frozen=True)
class Uploads:
    """Uploads of new objects, without end.

    :param size: of each object, in bytes
    :param prefix: of the names
    :param spread: True to begin the names with four hexadecimal digits that
                   are evenly distributed
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
        return f'{number * _SPREAD_FACTOR & 0xFFFF:04x}-{own}'

    def requests(self, first: int, step: int) -> Iterator[Request]:
        for number in count(first, step):
            yield _request(self, number, self.name(number))


@dataclass(frozen=True)
class _OfNames:
    """Requests for named objects, with bodies if they have a size.

    :param shuffled: True to request each object once in each round, but not in
                     the order of names
    """

    container_path: str
    names: Names
    shuffled: bool = False
    size: int | SizeMix | None = None
    is_endless: ClassVar[bool] = True

    def requests(self, first: int, step: int) -> Iterator[Request]:
        total = len(self.names)
        jump = shuffling_step(total) if self.shuffled else 1
        numbers = count(first, step)
        if not self.is_endless:
            numbers = range(first, total, step)
        for number in numbers:
            yield _request(self, number, self.names[number * jump % total])


class Reads(_OfNames):
    """GETs of objects, without end."""

    kinds = ('GET',)


class Heads(_OfNames):
    """HEADs of objects, without end."""

    kinds = ('HEAD',)


class Overwrites(_OfNames):
    """Uploads of objects, without end."""

    kinds = ('PUT',)


class NamedUploads(_OfNames):
    """Uploads of an object under each name."""

    kinds = ('PUT',)
    is_endless = False


class Deletes(_OfNames):
    """DELETEs of objects, in one round."""

    kinds = ('DELETE',)
    is_endless = False


@dataclass(frozen=True)
class ContainerHeads:
    """HEADs of a container, without end."""

    container_path: str
    kinds: ClassVar[tuple[str, ...]] = ('HEAD',)

    def requests(self, first: int, step: int) -> Iterator[Request]:
        target = self.container_path.encode()
        for number in count(first, step):
            yield Request(0, number, b'HEAD', target, None)


@dataclass(frozen=True)
class Listings:
    """Pages of a listing whose rows are known, in rounds.

    No page depends on the response to another one, so that clients can
    request several at a time.

    :param rows: the names of all rows, in their order
    :param page: the limit of a page, in rows
    :param unordered: True for ``allow_unordered``
    :param first: the page that is requested first
    :param stride: the number of pages from one request to the next
    :param different: True to send each request with an end_marker of its own,
                      after all rows, so that no two requests are equal
    """

    container_path: str
    rows: Names
    page: int
    delimiter: str = ''
    prefix: str = ''
    unordered: bool = False
    first: int = 0
    stride: int = 1
    different: bool = False
    kinds: ClassVar[tuple[str, ...]] = ('GET',)

    @property
    def pages(self) -> int:
        """Return the number of pages; an empty listing has one."""
        return max(1, -(-len(self.rows) // self.page))

    def rows_of(self, number: int) -> int:
        return min(self.page, len(self.rows) - self._before(number))

    def requests(self, first: int, step: int) -> Iterator[Request]:
        words = {
            'format': 'json',
            'limit': self.page,
            'prefix': self.prefix,
            'delimiter': self.delimiter,
            'allow_unordered': 'true' if self.unordered else '',
        }
        query = urlencode({name: word for name, word in words.items() if word})
        for number in count(first, step):
            target = f'{self.container_path}?{query}'
            if before := self._before(number):
                target += f'&marker={quote(self.rows[before - 1])}'
            if self.different:
                target += f'&end_marker=~{number}'
            yield Request(0, number, b'GET', target.encode(), None)

    def _before(self, number: int) -> int:
        place = self.first + number * self.stride
        return place % self.pages * self.page


@dataclass(frozen=True)
class Mixed:
    """A mix of operations, without end.

    Existing objects are read and overwritten. New objects are written, with
    names between the existing ones, and deleted once their upload has
    succeeded. If there is none to delete, a delete is replaced by a write.

    :param names: of existing objects, at least one
    :param size: of written objects, in bytes
    :param tag: different for each load on a container
    :param page: the limit of a page of a listing, in rows
    """

    container_path: str
    mix: Mix
    names: Names
    size: int | SizeMix
    tag: str = 'new'
    page: int = 100
    # in the order of units.OPERATIONS
    kinds: ClassVar[tuple[str, ...]] = (
        *('PUT', 'GET', 'HEAD', 'DELETE', 'overwrite', 'list'),
    )

    def requests(self, first: int, step: int) -> Iterator[Request]:
        return _MixedRequests(self, first, step)


class _MixedRequests(Iterator):
    def __init__(self, mixed: Mixed, first: int, step: int) -> None:
        self._mixed = mixed
        self._numbers = count(first, step)
        path, names = mixed.container_path, mixed.names
        new, size = ScatteredNames(names, mixed.tag), mixed.size
        sources = {
            units.WRITE: NamedUploads(path, new, size=size),
            units.READ: Reads(path, names, shuffled=True),
            units.HEAD: Heads(path, names, shuffled=True),
            units.OVERWRITE: Overwrites(path, names, True, size),
            units.LIST: Listings(path, names, mixed.page),
        }
        self._requests = {
            operation: source.requests(first, step)
            for operation, source in sources.items()
        }
        self._written: deque[bytes] = deque()

    def __next__(self) -> Request:
        number = next(self._numbers)
        operation = self._mixed.mix.operation_of(number)
        if operation == units.DELETE and not self._written:
            operation = units.WRITE
        kind = units.OPERATIONS.index(operation)
        if operation == units.DELETE:
            target = self._written.popleft()
            return Request(kind, number, b'DELETE', target, None)
        request = next(self._requests[operation])
        return request._replace(kind=kind, number=number)

    def answered(self, request: Request, status: int) -> None:
        """Record an object that can be deleted from now on."""
        if request.kind == 0 and 200 <= status < 300:
            self._written.append(request.target)


def _request(source: Uploads | _OfNames, number: int, name: str) -> Request:
    target = f'{source.container_path}/{quote(name)}'.encode()
    size = source.size
    if isinstance(size, SizeMix):
        size = size.size_of(number)
    return Request(0, number, source.kinds[0].encode(), target, size)
