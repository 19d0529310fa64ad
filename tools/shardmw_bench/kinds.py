# SPDX-License-Identifier: Apache-2.0
"""The kinds of containers that are compared. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

_PLAIN, _NATIVE, _SHARDED = 'plain', 'native', 'sharded'


@dataclass(frozen=True)
class Kind:
    """A kind of container: see the constants and functions below.

    :param layout: ``plain``, ``native`` (sharded by Swift), ``sharded`` (by
                   this filter), or ``plain disk``
    :param parts: the number of shard ranges or of shards
    :param depth: of a sharded container
    """

    layout: str
    parts: int = 1
    depth: int = 0

    @property
    def label(self) -> str:
        if self.layout == _SHARDED:
            depth = f', depth {self.depth}' if self.depth else ''
            return f'N = {self.parts}{depth}'
        if self.layout == _NATIVE:
            return f'native, {self.parts} ranges'
        return self.layout

    @property
    def word(self) -> str:
        """Return the kind for the name of a container."""
        depth = f'-depth-{self.depth}' if self.depth else ''
        return f'{self.shards or self.layout}{depth}'

    @property
    def is_plain(self) -> bool:
        return self.layout == _PLAIN

    @property
    def is_native(self) -> bool:
        return self.layout == _NATIVE

    @property
    def shards(self) -> int | None:
        """Return the shard count; None if this filter does not shard it."""
        return self.parts if self.layout == _SHARDED else None

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """Return a sort key: plain kinds first, then native ones."""
        return not self.is_plain, not self.is_native, self.parts, self.depth

    def at(self, depths: Iterable[int]) -> list['Kind']:
        """Return this kind with each depth, or only itself if not sharded."""
        if self.shards is None:
            return [self]
        return [replace(self, depth=depth) for depth in depths]

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Kind':
        return cls(**values)


PLAIN = Kind(_PLAIN)

#: Files on a disk instead of a container.
DISK = Kind('plain disk')


def native(ranges: int) -> Kind:
    """Return a container that Swift's container-sharder splits."""
    return Kind(_NATIVE, ranges)


def sharded(shards: int) -> Kind:
    """Return a container that this filter shards."""
    return Kind(_SHARDED, shards)
