# SPDX-License-Identifier: Apache-2.0
"""Sizes, durations, counts, rates and mixes as text. Pure.

Functions that parse raise ValueError for text that they do not understand.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import NamedTuple

GOLDEN_SHARE = (math.sqrt(5) - 1) / 2

_SIZE = re.compile(r'(\d+)([KMGT]?)(?:i?B)?', re.IGNORECASE)
_SIZE_STEPS = ' KMGT'
_DURATION = re.compile(r'(\d+(?:\.\d+)?)(ms|s|m|h|)')
_UNIT_SECONDS = {'ms': 0.001, 's': 1, '': 1, 'm': 60, 'h': 3600}
_COUNT = re.compile(r'(\d+(?:\.\d+)?(?:e\d+)?)([KM]?)', re.IGNORECASE)
_COUNT_STEPS = {'': 1, 'K': 1_000, 'M': 1_000_000}
_MOST_COUNT = 10**18
_THOUSANDS = re.compile(r'\d{1,3}(?:,\d{3})+')
_SHARE = re.compile(r'\d+(?:\.\d+)?')
_SIZE_STEP = re.compile(
    r'(?P<low>[^:-]+)(-(?P<high>[^:-]+))?(:\s*(?P<share>\d+(\.\d+)?)\s*)?'
)

#: The operations of a mix.
OPERATIONS = ('write', 'read', 'head', 'delete', 'overwrite', 'list')
WRITE, READ, HEAD, DELETE, OVERWRITE, LIST = OPERATIONS


def parse_size(text: str) -> int:
    """Return the bytes of ``1``, ``4K`` or ``1MiB``; K is 1,024 bytes."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f'{text!r} is no size: write bytes, or 4K, 1M, 1G')
    number, unit = match.groups()
    return int(number) << 10 * _SIZE_STEPS.index(unit.upper() or ' ')


def size_text(size: int) -> str:
    """Return the shortest text for a size: ``4K``, ``64M`` or ``1500``."""
    for step in reversed(range(1, len(_SIZE_STEPS))):
        if size and size % (1 << 10 * step) == 0:
            return f'{size >> 10 * step}{_SIZE_STEPS[step]}'
    return str(size)


class SizeStep(NamedTuple):
    """Sizes from ``low`` to ``high`` bytes, evenly by their logarithm.

    :param share: relative to the shares of other steps
    """

    low: int
    high: int
    share: float

    @property
    def mean(self) -> float:
        if self.low == self.high:
            return self.low
        return (self.high - self.low) / math.log(self.high / self.low)

    @property
    def label(self) -> str:
        return '-'.join(map(size_text, dict.fromkeys((self.low, self.high))))


@dataclass(frozen=True)
class SizeMix:
    """Sizes of objects: see :func:`parse_size_mix`."""

    steps: tuple[SizeStep, ...]

    @property
    def label(self) -> str:
        """Return the mix as it is typed."""
        if len(self.steps) == 1:
            return self.steps[0].label
        return ','.join(f'{s.label}:{s.share:g}' for s in self.steps)

    @property
    def mean(self) -> float:
        """Return the mean bytes of an object."""
        shares = sum(step.share for step in self.steps)
        return sum(step.mean * step.share for step in self.steps) / shares

    @property
    def largest(self) -> int:
        """Return the most bytes of an object."""
        return max(step.high for step in self.steps)

    def size_of(self, number: int) -> int:
        """Return the size of an object, always the same for its number."""
        shares = [step.share for step in self.steps]
        index, rest = _chosen(shares, fraction(number))
        low, high, _ = self.steps[index]
        return low if low == high else round(low * (high / low) ** rest)


def parse_size_mix(text: str) -> SizeMix:
    """Return the sizes of objects.

    ``4K`` is one size; ``4K-64K`` is a range, evenly by the logarithm;
    ``1K:80,64K:15,1M:5`` has each size or range in proportion to the number
    after its colon.
    """
    parts = text.split(',')
    steps = []
    for part in parts:
        match = _SIZE_STEP.fullmatch(part)
        if not match or (match['share'] is None) != (len(parts) == 1):
            raise ValueError(
                f'{text!r} is no mix of sizes: write 4K, 4K-64K, or '
                '1K:80,64K:15,1M:5 with a share of each'
            )
        low = parse_size(match['low'])
        high = parse_size(match['high'] or match['low'])
        if low > high or (match['high'] and not low):
            raise ValueError(
                f'{part!r} is no range of sizes: write the smaller one '
                'first, and at least 1'
            )
        steps.append(SizeStep(low, high, float(match['share'] or 1)))
    if not any(step.share for step in steps):
        raise ValueError(f'{text!r} has no sizes: write a share above 0')
    return SizeMix(tuple(steps))


@dataclass(frozen=True)
class Mix:
    """Relative shares of operations."""

    write: float = 0
    read: float = 0
    head: float = 0
    delete: float = 0
    overwrite: float = 0
    list: float = 0

    def __post_init__(self) -> None:
        if not any(astuple(self)):
            raise ValueError('a mix needs at least one share above 0')
        if self.delete > self.write:
            raise ValueError(
                f'{self.label!r} deletes more than it writes: only objects '
                'that the load wrote are deleted'
            )

    @property
    def label(self) -> str:
        """Return the mix as it is typed."""
        shares = vars(self).items()
        return ','.join(f'{name}={share:g}' for name, share in shares if share)

    def operation_of(self, number: int) -> str:
        """Return the operation of a request, always the same for its number.

        Successive requests have the operations in the mix's proportions.
        """
        part = number * GOLDEN_SHARE % 1
        return OPERATIONS[_chosen(astuple(self), part)[0]]


def parse_mix(text: str) -> Mix:
    """Return the mix of ``write=20,read=70,head=5,delete=5``."""
    shares: dict[str, float] = {}
    for part in text.split(','):
        name, _, share = (each.strip() for each in part.partition('='))
        known = name in OPERATIONS and name not in shares
        if not known or not _SHARE.fullmatch(share):
            raise ValueError(
                f'{text!r} is no mix: write some of '
                f'{", ".join(OPERATIONS)}, each once with its share, such as '
                'write=20,read=70,head=5,delete=5'
            )
        shares[name] = float(share)
    return Mix(**shares)


def parse_count(text: str) -> int:
    """Return the integer of ``1000``, ``1,000,000``, ``10e6`` or ``1M``."""
    typed = text.strip()
    if _THOUSANDS.fullmatch(typed):
        typed = typed.replace(',', '')
    match = _COUNT.fullmatch(typed)
    exact = float(match[1]) * _COUNT_STEPS[match[2].upper()] if match else 0
    if not 1 <= exact <= _MOST_COUNT or exact != int(exact):
        raise ValueError(
            f'{text!r} is no count: write a whole number from 1 on, such as '
            '1000, 1,000,000, 10e6 or 1M'
        )
    return int(exact)


def parse_duration(text: str) -> float:
    """Return the seconds of ``10``, ``1.5s``, ``200ms`` or ``2m``."""
    match = _DURATION.fullmatch(text.strip())
    seconds = match and float(match[1]) * _UNIT_SECONDS[match[2]]
    if not seconds:
        raise ValueError(
            f'{text!r} is no duration: write seconds, or 200ms, 10s, 2m'
        )
    return seconds


def _chosen(shares: Sequence[float], part: float) -> tuple[int, float]:
    """Return the index of the share in which a part of the sum lies.

    :param part: at least 0 and below 1
    :returns: the index, and the position within that share, from 0 to 1
    """
    ends = list(accumulate(shares))
    # the product may be rounded up to the sum
    place = min(part * ends[-1], math.nextafter(ends[-1], 0))
    index = bisect_right(ends, place)
    return index, 1 - (ends[index] - place) / shares[index]


def fraction(number: int) -> float:
    """Return a random value from 0 to below 1, the same in every process."""
    digest = blake2b(b'%d' % number, digest_size=8, person=b'size').digest()
    # a float has room for 53 bits; more could be rounded up to 1
    return (int.from_bytes(digest, 'big') >> 11) / (1 << 53)
