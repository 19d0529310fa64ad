# SPDX-License-Identifier: Apache-2.0
"""The kinds of containers that are compared. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

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
    """

    layout: str
    parts: int = 1

    @property
    def label(self) -> str:
        """What tables and plots call it."""
        if self.layout == _SHARDED:
            return f'N = {self.parts}'
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
        """As the header says it; None without this filter's shards."""
        return self.parts if self.layout == _SHARDED else None

    def as_json(self) -> dict[str, object]:
        """What :meth:`from_json` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Kind':
        """The kind that :meth:`as_json` gave."""
        return cls(**values)


PLAIN = Kind(_PLAIN)

#: No container at all, but files of a disk.
DISK = Kind(_DISK)


def native(ranges: int) -> Kind:
    """A container that Swift's container-sharder split."""
    return Kind(_NATIVE, ranges)


def sharded(shards: int) -> Kind:
    """A container that this filter spreads over so many."""
    return Kind(_SHARDED, shards)
