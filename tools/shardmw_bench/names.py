# SPDX-License-Identifier: Apache-2.0
"""Object names that are computed and not stored. Pure.

Names are pickled and sent to client processes, so they are small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from shardmw.core.placement import shard_of
from shardmw_bench.errors import BenchError
from shardmw_bench.units import GOLDEN_SHARE

#: Different names, in ascending order as Swift compares them.
Names = Sequence[str]


@dataclass(frozen=True)
class FlatNames(Sequence):
    """The names ``o0000000000``, ``o0000000001`` and so on."""

    count: int
    prefix: str = 'o'

    def __post_init__(self) -> None:
        _check_fits(self.count, 10)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> str:
        return f'{self.prefix}{range(self.count)[index]:010d}'


@dataclass(frozen=True)
class TreeNames(Sequence):
    """The names ``d0000/o000000``, ``d0000/o000001``, …, ``d0001/o000000``."""

    directories: int
    per_directory: int

    def __post_init__(self) -> None:
        _check_fits(self.directories, 4)
        _check_fits(self.per_directory, 6)

    def __len__(self) -> int:
        return self.directories * self.per_directory

    def __getitem__(self, index: int) -> str:
        index = range(len(self))[index]
        directory, number = divmod(index, self.per_directory)
        return f'd{directory:04d}/o{number:06d}'


@dataclass(frozen=True)
class ScatteredNames(Sequence):
    """Endless new names between existing ones, in no order.

    :param others: the existing names, at least one
    :param tag: different for each load
    """

    others: Names
    tag: str

    def __len__(self) -> int:
        # more than a load can upload
        return 10**9

    def __getitem__(self, index: int) -> str:
        total = len(self.others)
        between = self.others[index * shuffling_step(total) % total]
        return f'{between}-{self.tag}-{index}'


def shuffling_step(total: int) -> int:
    """Return a step to visit ``total`` places once each, not in order.

    ``number * step % total`` takes each value once.
    """
    step = max(1, round(total * GOLDEN_SHARE))
    while math.gcd(step, total) > 1:
        step += 1
    return step


@lru_cache
def one_name_each(shards: int, prefix: str) -> list[str]:
    """Return one name for each shard, in the order of the shards."""
    names: dict[int, str] = {}
    numbers = count()
    while len(names) < shards:
        name = f'{prefix}-{next(numbers)}'
        names.setdefault(shard_of(name, shards), name)
    return [names[shard] for shard in range(shards)]


def _check_fits(count: int, digits: int) -> None:
    if not 0 <= count <= 10**digits:
        raise BenchError(f'{count:,} names: {10**digits:,} are the most')
