# SPDX-License-Identifier: Apache-2.0
"""The kinds of containers that are compared. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

_PLAIN = 'plain'
_NATIVE = 'native'
_SHARDED = 'sharded'
_DISK = 'plain disk'


@dataclass(frozen=True, order=True)
class Kind:
    """What a container is made as; take the three functions below.

    :param layout: ``plain``, ``native`` (by Swift's own container-sharder),
                   ``sharded`` (by this filter), or ``plain disk``
    :param parts: shard ranges of a native one, shards of a sharded one
    :param depth: of a sharded one
    """

    layout: str
    parts: int = 1
    depth: int = 0

    @property
    def label(self) -> str:
        """Return the name in tables and plots."""
        if self.layout == _SHARDED:
            depth = f', depth {self.depth}' if self.depth else ''
            return f'N = {self.parts}{depth}'
        if self.layout == _NATIVE:
            return f'native, {self.parts} ranges'
        return self.layout

    @property
    def is_plain(self) -> bool:
        return self.layout == _PLAIN

    @property
    def is_native(self) -> bool:
        return self.layout == _NATIVE

    @property
    def shards(self) -> int | None:
        """Return the shards of this filter; None if it has none."""
        return self.parts if self.layout == _SHARDED else None

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """Return a key that sorts plain kinds first, then native ones."""
        return not self.is_plain, not self.is_native, self.parts, self.depth

    def at(self, depths: Iterable[int]) -> list['Kind']:
        """Return this kind with each of some depths, if it can have one."""
        if self.shards is None:
            return [self]
        return [replace(self, depth=depth) for depth in depths]

    def as_json(self) -> dict[str, object]:
        """Return what :meth:`from_json` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Kind':
        """Return the kind that :meth:`as_json` gave."""
        return cls(**values)


PLAIN = Kind(_PLAIN)

#: No container at all, but files of a disk.
DISK = Kind(_DISK)


def native(ranges: int) -> Kind:
    """Return a kind that Swift's container-sharder splits."""
    return Kind(_NATIVE, ranges)


def sharded(shards: int) -> Kind:
    """Return a kind that this filter spreads over so many shards."""
    return Kind(_SHARDED, shards)
