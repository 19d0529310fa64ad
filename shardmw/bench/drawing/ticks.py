# SPDX-License-Identifier: Apache-2.0
"""Where the labels of an axis are, and what they say. Pure."""

import math
from collections.abc import Sequence

from shardmw.bench.units import size_text

# More labels than that are in each other's way.
_MOST = 7

# What a logarithmic axis has in a decade, the more the better.
_LOG_STEPS = ((1, 2, 5), (1, 3), (1,))

# An axis with fewer labels than that doesn't tell its scale.
_LEAST = 3

_MILLION = 1_000_000


def linear_ticks(low: float, high: float, most: int = _MOST) -> list[float]:
    """Round numbers from one value to another.

    :param most: how many there may be
    """
    if not high > low:
        return [low]
    step = _round_step((high - low) / most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [_clean(n * step) for n in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = _MOST) -> list[float]:
    """Numbers from one value to another, as evenly as powers of ten are.

    :param low: above 0
    """
    if not high > low:
        return [low]
    exponents = range(
        math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1
    )
    for steps in _LOG_STEPS:
        found = [
            _clean(step * 10.0**exponent)
            for exponent in exponents
            for step in steps
        ]
        inside = [each for each in found if low <= each <= high]
        if len(inside) <= most:
            break
    if len(inside) < _LEAST:
        return linear_ticks(low, high, most)
    return inside[:: math.ceil(len(inside) / most)]


def tick_texts(values: Sequence[float], sizes: bool = False) -> list[str]:
    """The labels of one axis: all with the same digits, or in millions.

    :param sizes: whether the values are bytes: they are told as 4K and so on
    """
    if sizes:
        return [size_text(round(value)) for value in values]
    if max(map(abs, values), default=0) >= _MILLION:
        return [_in_millions(value) for value in values]
    return [number_text(value) for value in values]


def number_text(value: float) -> str:
    """A number as people write it: 0.001, 0.5, 20, 1,000."""
    text = f'{_clean(value):,.6f}'
    return text.rstrip('0').rstrip('.')


def _in_millions(value: float) -> str:
    """As ``2 M``; what is far below a million in full."""
    if 0 < abs(value) < _MILLION / 10:
        return number_text(value)
    return f'{number_text(value / _MILLION)} M' if value else '0'


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, and no less than that."""
    power = 10.0 ** math.floor(math.log10(least))
    for step in (1, 2, 5, 10):
        if step * power >= least * (1 - 1e-9):
            return step * power
    return 10 * power


def _clean(value: float) -> float:
    """Without what binary fractions add."""
    return float(f'{value:.12g}')
