# SPDX-License-Identifier: Apache-2.0
"""Sizes, durations, lists and mixes, as they are typed. Pure.

All functions that parse raise ValueError for what they do not understand.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate
from typing import NamedTuple

from shardmw.bench.load.chance import even_fraction, fraction

_SIZE = re.compile(r'(\d+)([KMGT]?)(?:i?B)?', re.IGNORECASE)
_SIZE_STEPS = ' KMGT'
_DURATION = re.compile(r'(\d+(?:\.\d+)?)(ms|s|m|h|)')
_UNIT_SECONDS = {'ms': 0.001, 's': 1, '': 1, 'm': 60, 'h': 3600}
_COUNT = re.compile(r'(\d+(?:\.\d+)?(?:e\d+)?)([KM]?)', re.IGNORECASE)
_COUNT_STEPS = {'': 1, 'K': 1_000, 'M': 1_000_000}
_MOST_COUNT = 10**18  #: more than anybody has, and figures of it still fit
_THOUSANDS = re.compile(r'\d{1,3}(?:,\d{3})+')
_SHARE = re.compile(r'\d+(?:\.\d+)?')

#: The operations of a mix.
WRITE, READ, HEAD, DELETE, OVERWRITE, LIST = OPERATIONS = (
    *('write', 'read', 'head', 'delete', 'overwrite', 'list'),
)

_FOR_SIZES = b'size'


def parse_size(text: str) -> int:
    """Bytes of a size such as ``1``, ``4K`` or ``1MiB``; K is 1,024."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f'{text!r} is no size: write bytes, or 4K, 1M, 1G')
    number, unit = match.groups()
    return int(number) << 10 * _SIZE_STEPS.index(unit.upper() or ' ')


def size_text(size: int) -> str:
    """A size as a person would type it: ``4K``, ``64M``; 1,500 is ``1500``.

    :func:`parse_size` reads it.
    """
    for step in reversed(range(1, len(_SIZE_STEPS))):
        if size and size % (1 << 10 * step) == 0:
            return f'{size >> 10 * step}{_SIZE_STEPS[step]}'
    return str(size)


def parse_sizes(text: str) -> tuple[int, ...]:
    """Bytes of sizes such as ``4K,32K,4M``, in their order."""
    sizes = tuple(map(parse_size, text.split(',')))
    if len(set(sizes)) < len(sizes):
        raise ValueError(f'{text!r} has a size twice: write each once')
    return sizes


class SizeStep(NamedTuple):
    """Sizes from ``low`` to ``high`` bytes, evenly by their logarithm.

    :param share: how many of all have them, by the sum of all shares
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
        if self.low == self.high:
            return size_text(self.low)
        return f'{size_text(self.low)}-{size_text(self.high)}'


@dataclass(frozen=True)
class SizeMix:
    """Sizes of many objects; see :func:`parse_size_mix`.

    :param steps: at least one, whose shares aren't all 0
    """

    steps: tuple[SizeStep, ...]

    @property
    def label(self) -> str:
        """As it's typed."""
        if len(self.steps) == 1:
            return self.steps[0].label
        return ','.join(f'{s.label}:{s.share:g}' for s in self.steps)

    @property
    def mean(self) -> float:
        """Bytes of an object, in the long run."""
        shares = sum(step.share for step in self.steps)
        return sum(step.mean * step.share for step in self.steps) / shares

    @property
    def largest(self) -> int:
        """The most bytes of an object."""
        return max(step.high for step in self.steps)

    def size_of(self, number: int) -> int:
        """The size of an object, always the same by its number."""
        first = self.steps[0]
        if len(self.steps) == 1 and first.low == first.high:
            return first.low
        step, rest = _chosen(
            [step.share for step in self.steps],
            fraction(number, _FOR_SIZES),
        )
        low, high, _ = self.steps[step]
        return low if low == high else round(low * (high / low) ** rest)


def parse_size_mix(text: str) -> SizeMix:
    """Sizes of many objects.

    ``4K`` is one size for all, ``4K-64K`` are those between, evenly by their
    logarithm; ``1K:80,64K:15,1M:5`` are some of each, in the proportions of
    the numbers behind the colons.
    """
    parts = [part.partition(':') for part in text.split(',')]
    steps = []
    for sizes, colon, share in parts:
        if bool(colon) != (len(parts) > 1) or (
            colon and not _SHARE.fullmatch(share.strip())
        ):
            raise ValueError(
                f'{text!r} is no mix of sizes: write 4K, 4K-64K, or '
                '1K:80,64K:15,1M:5 with a share of each'
            )
        low, dash, high = sizes.partition('-')
        bounds = parse_size(low), parse_size(high if dash else low)
        if bounds[0] > bounds[1] or (dash and not bounds[0]):
            raise ValueError(
                f'{sizes!r} is no range of sizes: write the smaller one '
                'first, and at least 1'
            )
        steps.append(SizeStep(*bounds, float(share or 1)))
    if not any(step.share for step in steps):
        raise ValueError(f'{text!r} has no sizes: write a share above 0')
    return SizeMix(tuple(steps))


@dataclass(frozen=True)
class Mix:
    """Shares of operations, by the sum of all.

    :raises ValueError: if there's nothing to do, or more to delete than is
                        written
    """

    write: float = 0
    read: float = 0
    head: float = 0
    delete: float = 0
    overwrite: float = 0
    list: float = 0

    def __post_init__(self) -> None:
        if not any(astuple(self)):
            raise ValueError('a mix has to have something above 0 in it')
        if self.delete > self.write:
            raise ValueError(
                f'{self.label!r} deletes more than it writes: only what was '
                'written is deleted'
            )

    @property
    def label(self) -> str:
        """As it's typed."""
        shares = zip(OPERATIONS, astuple(self), strict=True)
        return ','.join(f'{name}={share:g}' for name, share in shares if share)

    def operation_of(self, number: int) -> str:
        """One of :data:`OPERATIONS`, always the same by a number."""
        part = even_fraction(number)
        return OPERATIONS[_chosen(astuple(self), part)[0]]


def parse_mix(text: str) -> Mix:
    """Shares of operations, such as ``write=20,read=70,head=5,delete=5``."""
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
    """A number from 1 on, such as ``1000``, ``1,000,000``, ``10e6``, ``1M``.

    K and M are a thousand and a million.
    """
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


def _chosen(shares: Sequence[float], part: float) -> tuple[int, float]:
    """``(index, rest)``: where a part of all shares lies.

    :param part: from 0 on and below 1
    :returns: ``rest`` is how far into that share it lies, from 0 to 1
    """
    ends = list(accumulate(shares))
    # the product may be rounded up to the end
    place = min(part * ends[-1], math.nextafter(ends[-1], 0))
    index = bisect_right(ends, place)
    return index, 1 - (ends[index] - place) / shares[index]


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``10``, ``1.5s``, ``200ms`` or ``2m``."""
    match = _DURATION.fullmatch(text.strip())
    seconds = match and float(match[1]) * _UNIT_SECONDS[match[2]]
    if not seconds:
        raise ValueError(
            f'{text!r} is no duration: write seconds, or 200ms, 10s, 2m'
        )
    return seconds


def parse_counts(text: str) -> tuple[int, ...]:
    """Numbers from 1 on, such as ``1,8,32``, in their order."""
    return _listed(
        *(text, int, 1, 'list: write whole numbers from 1 on, each once'),
        'such as 1,8,32',
    )


def parse_shards(text: str) -> tuple[int, ...]:
    """Shard counts such as ``0,1,32``, in their order; 0 is none at all."""
    return _listed(
        *(text, int, 0, 'list of shard counts: write whole numbers'),
        'each once, 0 for a plain container, such as 0,1,32',
    )


def parse_rates(text: str) -> tuple[float, ...]:
    """Rates above 0, such as ``5,20,0.5``, in their order."""
    return _listed(
        *(text, float, math.ulp(0), 'list: write rates above 0, each once'),
        'such as 5,20,100',
    )


def parse_choices(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the words that are known, in the order of these."""
    words = [word.strip() for word in text.split(',')]
    unknown = [word for word in words if word not in known]
    if unknown:
        raise ValueError(
            f'{unknown[0]!r} is unknown: take some of {",".join(known)}'
        )
    return tuple(word for word in known if word in words)


def parse_rate(text: str) -> float:
    """A single rate above 0."""
    try:
        (rate,) = parse_rates(text)
    except ValueError:
        raise ValueError(
            f'{text!r} is no rate: write one number above 0'
        ) from None
    return rate


def _listed(
    text: str, kind: Callable[[str], float], least: float, what: str, such: str
) -> tuple:
    """Return the numbers of a list, each of which is there once."""
    try:
        found = tuple(map(kind, text.split(',')))
        good = all(least <= each < math.inf for each in found)
    except ValueError:
        good = False
    if not good or len(set(found)) < len(found):
        raise ValueError(f'{text!r} is no {what}, {such}')
    return found
