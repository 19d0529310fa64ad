# SPDX-License-Identifier: Apache-2.0
"""What clients ask for. Pure.

A source is numbered requests, dealt out to the client processes in turn. It
is pickled and sent to them, so it's small and makes its requests there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, Protocol
from urllib.parse import quote


class Request(NamedTuple):
    """What to send.

    :param kind: what it does, as an index of the source's ``kinds``
    :param target: path and query, quoted
    :param body: None for none
    """

    kind: int
    number: int
    method: bytes
    target: bytes
    body: bytes | None


class Source(Protocol):
    """Where requests come from.

    ``kinds`` are the names of what its requests do.
    """

    kinds: tuple[str, ...]

    def requests(self, first: int, step: int) -> Iterator[Request]:
        """The requests numbered ``first``, ``first + step``, and so on."""
        ...


@dataclass(frozen=True)
class Uploads:
    """Objects of one size, each of a name of its own, without end.

    :param container_path: quoted, such as ``/v1/AUTH_test/logs``
    :param size: of each object, in bytes
    :param prefix: what the names begin with
    """

    container_path: str
    size: int
    prefix: str = 'o'
    kinds: tuple[str, ...] = ('PUT',)

    def name(self, number: int) -> str:
        """The name of the object that a request uploads."""
        return f'{self.prefix}{number:010d}'

    def requests(self, first: int, step: int) -> Iterator[Request]:
        base = f'{self.container_path}/{quote(self.prefix)}'.encode()
        body = b'x' * self.size
        for number in count(first, step):
            yield Request(0, number, b'PUT', b'%s%010d' % (base, number), body)
