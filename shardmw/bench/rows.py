# SPDX-License-Identifier: Apache-2.0
"""The rows that uploads leave in a container database. Pure."""

import bisect
import hashlib
import mimetypes
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import xor
from typing import NamedTuple

from shardmw.bench.kinds import Kind
from shardmw.placement import shard_of

#: Of Swift's timestamps.
TICKS_PER_SECOND = 100_000

_CONTENT_TYPE = 'application/octet-stream'
_CHECKSUM_DIGITS = 32


class Row(NamedTuple):
    """The row of an object, in the order of the columns."""

    name: str
    created_at: str
    size: int
    content_type: str
    etag: str


class Stamps(NamedTuple):
    """The times at which objects were written, one tick after another.

    :param first: that of the object 0, in ticks since 1970
    """

    first: int

    def of(self, number: int) -> str:
        """Return the time of an object in the form of a database."""
        seconds, ticks = divmod(self.first + number, TICKS_PER_SECOND)
        return f'{seconds:010d}.{ticks:05d}'


def stamps_before(moment: float, count: int) -> Stamps:
    """Return the times of so many objects, all before a moment.

    :param moment: such as now, in seconds since 1970
    """
    return Stamps(int(moment * TICKS_PER_SECOND) - count)


def row_maker(size: int, stamps: Stamps) -> Callable[[int, str], Row]:
    """Return a function that makes rows: ``make(number, object's name)``.

    :param size: of each object, whose bytes are all ``x``
    """
    etag = hashlib.md5(b'x' * size, usedforsecurity=False).hexdigest()
    types: dict[str, str] = {}

    def make(number: int, name: str) -> Row:
        ending = name[name.rfind('.') :] if '.' in name else ''
        kind = types.get(ending) or types.setdefault(ending, type_of(name))
        return Row(name, stamps.of(number), size, kind, etag)

    return make


def type_of(name: str) -> str:
    """Return the content type that Swift guesses from a name."""
    return mimetypes.guess_type(name)[0] or _CONTENT_TYPE


def placer(kind: Kind, uppers: Sequence[str]) -> Callable[[str], int]:
    """Return a function that tells where the row of a name goes.

    It gives the index of one of the parts that
    :func:`shardmw.bench.databases.parts` returns.

    :param uppers: the upper ends of a native container's ranges, without the
                   last one
    """
    if kind.is_native:
        return lambda name: bisect.bisect_left(uppers, name)
    if kind.is_plain:
        return lambda name: 0
    return lambda name: shard_of(name, kind.parts, kind.depth)


def checksum_with(checksum: str, rows: Iterable[Row]) -> str:
    """Return the checksum of a database after rows are added.

    Swift's is the XOR of the MD5 of each row's name and timestamp.
    """
    sums = (_row_sum(row.name, row.created_at) for row in rows)
    total = reduce(xor, sums, int(checksum, 16))
    return f'{total:0{_CHECKSUM_DIGITS}x}'


def _row_sum(name: str, created_at: str) -> int:
    digest = hashlib.md5(
        f'{name}-{created_at}'.encode(), usedforsecurity=False
    )
    return int.from_bytes(digest.digest(), 'big')
