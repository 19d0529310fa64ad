# SPDX-License-Identifier: Apache-2.0
"""Figures of what was measured. Pure.

Times are seconds on one clock, in any order unless said.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Latency(NamedTuple):
    """How long operations took, in milliseconds; None of no operations."""

    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class Interval(NamedTuple):
    """A median, and where that of all possible runs lies.

    :param confidence: the probability that it lies from ``low`` to ``high``;
                       with few values it's less than was asked for
    """

    median: float
    low: float
    high: float
    confidence: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value that a share of the others lies below.

    Between two values it is interpolated.

    :param ordered: at least one value, in ascending order
    :param share: 0 to 1
    """
    position = share * (len(ordered) - 1)
    lower = math.floor(position)
    upper = min(lower + 1, len(ordered) - 1)
    part = position - lower
    if not part:
        return ordered[lower]
    return ordered[lower] * (1 - part) + ordered[upper] * part


def latency(durations: Iterable[float]) -> Latency:
    """Sum up how long operations took.

    :param durations: in seconds
    """
    ordered = sorted(1000 * each for each in durations)
    if not ordered:
        return Latency(None, None, None, None)
    return Latency(
        math.fsum(ordered) / len(ordered),
        *(percentile(ordered, share) for share in (0.5, 0.95, 0.99)),
    )


def per_second(
    times: Iterable[float], began: float, seconds: float
) -> list[int]:
    """How many fall into each second of a time.

    :param seconds: the length of the time; of its last second, only what
                    belongs to it counts
    """
    counts = [0] * math.ceil(seconds)
    for each in times:
        if began <= each < began + seconds:
            counts[min(int(each - began), len(counts) - 1)] += 1
    return counts


def count_between(times: Iterable[float], begin: float, end: float) -> int:
    """How many lie from a time on and before another."""
    return sum(begin <= each < end for each in times)


def most_in_window(times: Iterable[float], seconds: float) -> int:
    """The most that fall into any window of some length.

    :param seconds: the length; of its two ends, one belongs to the window
    """
    ordered = sorted(times)
    most = first = 0
    for last, each in enumerate(ordered):
        while each - ordered[first] >= seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def median_interval(
    values: Iterable[float], confidence: float = 0.95
) -> Interval:
    """The median, and an interval for that of the distribution.

    By order statistics (a sign test turned round): exact whatever the
    distribution is, and not moved by outliers.

    :param values: at least one, independent of each other
    :param confidence: the least that is wanted; 6 values can give 0.95
    """
    ordered = sorted(values)
    size = len(ordered)
    cut = 0
    outside = _below_half(size, 0)
    while cut + 1 < size - cut - 1:
        wider = _below_half(size, cut + 1)
        if 1 - 2 * wider < confidence:
            break
        cut, outside = cut + 1, wider
    return Interval(
        percentile(ordered, 0.5),
        ordered[cut],
        ordered[size - 1 - cut],
        max(0.0, 1 - 2 * outside),
    )


def _below_half(size: int, most: int) -> float:
    """The chance that of some coins no more than ``most`` show heads."""
    return sum(math.comb(size, k) for k in range(most + 1)) / 2**size
