# SPDX-License-Identifier: Apache-2.0
"""Names of the objects that a container holds, without keeping them. Pure.

Names are picklable and small, however many they stand for, so that client
processes can make them where they are needed.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from shardmw.bench.load.chance import shuffling_step
from shardmw.placement import shard_of

_DIGITS = 10
_TREE_DIGITS = (4, 6)

# More than a load can upload.
_ENDLESS = 10**9

# As many as an experiment has kinds of containers.
_ORDERS = 8


class Names(Protocol):
    """So many names, each once, in ascending order as Swift compares them.

    An index from 0 on gives a name; one that there is none of raises
    IndexError, so that they can be iterated over.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> str: ...

    def __iter__(self) -> Iterator[str]: ...


@dataclass(frozen=True)
class FlatNames:
    """``o0000000000``, ``o0000000001`` and so on.

    As :class:`shardmw.bench.load.sources.Uploads` gives them.

    :param prefix: what all begin with
    """

    count: int
    prefix: str = 'o'

    def __post_init__(self) -> None:
        _check_fits(self.count, _DIGITS)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> str:
        _check_index(index, self.count)
        return f'{self.prefix}{index:010d}'

    def __iter__(self) -> Iterator[str]:
        return map(f'{self.prefix}%010d'.__mod__, range(self.count))


@dataclass(frozen=True)
class TreeNames:
    """``d0000/o000000``, ``d0000/o000001``, …, ``d0001/o000000`` and so on.

    :param directories: how many, of which each has
    :param per_directory: so many
    """

    directories: int
    per_directory: int

    def __post_init__(self) -> None:
        _check_fits(self.directories, _TREE_DIGITS[0])
        _check_fits(self.per_directory, _TREE_DIGITS[1])

    def __len__(self) -> int:
        return self.directories * self.per_directory

    def __getitem__(self, index: int) -> str:
        _check_index(index, len(self))
        directory, number = divmod(index, self.per_directory)
        return f'd{directory:04d}/o{number:06d}'

    def __iter__(self) -> Iterator[str]:
        for directory in range(self.directories):
            for number in range(self.per_directory):
                yield f'd{directory:04d}/o{number:06d}'


@dataclass(frozen=True)
class ListedNames:
    """Names that were told one by one.

    :param names: in ascending order
    """

    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> str:
        _check_index(index, len(self.names))
        return self.names[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


@dataclass(frozen=True)
class ScatteredNames:
    """Names that fall between those of others, anywhere and without end.

    They're not in ascending order, as what is uploaded to a container is
    not, either.

    :param others: those that are there, at least one
    :param tag: what tells them from those of another tag
    """

    others: Names
    tag: str

    def __len__(self) -> int:
        return _ENDLESS

    def __getitem__(self, index: int) -> str:
        total = len(self.others)
        between = self.others[index * shuffling_step(total) % total]
        return f'{between}-{self.tag}-{index}'

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))


@lru_cache(_ORDERS)
def in_turns(
    names: Names, within: range, shards: int, depth: int = 0
) -> Sequence[int]:
    """Return indexes of names shard after shard, as an unordered listing.

    Takes seconds for a million, and so it is remembered.

    :param within: the indexes that are wanted
    """
    turns = [array('Q') for _ in range(shards)]
    for index in within:
        turns[shard_of(names[index], shards, depth)].append(index)
    order = array('Q')
    for turn in turns:
        order.extend(turn)
    return order


@lru_cache(_ORDERS)
def one_name_each(shards: int, prefix: str) -> list[str]:
    """Return names of objects, one for each shard in its order.

    :param prefix: what all begin with
    """
    names: dict[int, str] = {}
    number = 0
    while len(names) < shards:
        name = f'{prefix}-{number}'
        names.setdefault(shard_of(name, shards), name)
        number += 1
    return [names[shard] for shard in range(shards)]


def _check_fits(count: int, digits: int) -> None:
    if not 0 <= count <= 10**digits:
        raise ValueError(f'{count:,} names: {10**digits:,} are the most')


def _check_index(index: int, count: int) -> None:
    if not 0 <= index < count:
        raise IndexError(f'there is no name {index} of {count}')
