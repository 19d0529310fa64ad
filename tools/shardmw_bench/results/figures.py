# SPDX-License-Identifier: Apache-2.0
"""Statistics of measured times, and linear fits. Pure.

Times are seconds on one clock, in any order.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import linear_regression, stdev
from typing import NamedTuple

import numpy as np

# Each step of a histogram is an eighth wider than the one before.
_STEPS_A_DECADE = 20
_LEAST_MS = 0.001

# Tukey's fences, in interquartile ranges.
_FENCES = 1.5

_SHARES = (0.5, 0.95, 0.99)

Point = tuple[float, float]

#: The jackknife leaves out each of so many blocks in turn,
BLOCKS = 10
#: with this 95 % quantile of Student's t for nine degrees of freedom.
_STUDENT_T = 2.262

# Unknowns that are closer to being dependent are not told apart.
_LEAST_SINGULAR_VALUE = 1e-5


class Latency(NamedTuple):
    """The latency of operations; None if there are none."""

    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class Spread(NamedTuple):
    """The distribution of durations; None if there are none.

    :param trimmed_mean_ms: without outliers, which lie beyond Tukey's fences
    :param stdev_ms: of the sample
    """

    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    trimmed_mean_ms: float | None
    stdev_ms: float | None
    outliers: int = 0


class Interval(NamedTuple):
    """A median and its interval, of less confidence for few values."""

    median: float
    low: float
    high: float
    confidence: float


class Slope(NamedTuple):
    """The slope of a line and its 95 % interval, if it is known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Histogram:
    """A histogram of durations.

    All histograms have the steps of one logarithmic scale, so they can be
    added. A histogram has the steps from its least value to its greatest.

    :param edges_ms: ascending, one more than counts; empty without values
    """

    edges_ms: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts)

    def __add__(self, other: 'Histogram') -> 'Histogram':
        return _histogram_of(self._steps + other._steps)

    @property
    def _steps(self) -> Counter[int]:
        lows = np.rint(np.log10(self.edges_ms[:-1]) * _STEPS_A_DECADE)
        return Counter(dict(zip(lows.astype(int), self.counts, strict=True)))


def latency(durations: Iterable[float]) -> Latency:
    """Return the latency of operations, whose durations are in seconds."""
    in_ms = 1000 * _array(durations)
    if not in_ms.size:
        return Latency(*[None] * 4)
    return Latency(
        float(np.mean(in_ms)), *np.quantile(in_ms, _SHARES).tolist()
    )


def spread(durations: Iterable[float]) -> Spread:
    """Return the distribution of durations, which are in seconds."""
    durations = _array(durations)
    in_ms = 1000 * durations
    if not in_ms.size:
        return Spread(*[None] * 7)
    lower, upper = np.quantile(in_ms, (0.25, 0.75))
    reach = _FENCES * (upper - lower)
    inner = in_ms[(in_ms >= lower - reach) & (in_ms <= upper + reach)]
    return Spread(
        *latency(durations),
        float(np.max(in_ms)),
        float(np.mean(inner)),
        float(np.std(in_ms, ddof=min(1, in_ms.size - 1))),
        in_ms.size - inner.size,
    )


def histogram(durations: Iterable[float]) -> Histogram:
    """Return a histogram of durations in seconds, from a microsecond on."""
    in_ms = np.maximum(_LEAST_MS, 1000 * _array(durations))
    steps = np.floor(_STEPS_A_DECADE * np.log10(in_ms)).astype(int)
    return _histogram_of(Counter(steps.tolist()))


def _histogram_of(counts: Counter[int]) -> Histogram:
    if not counts:
        return Histogram()
    steps = range(min(counts), max(counts) + 1)
    edges = (10 ** (x / _STEPS_A_DECADE) for x in (*steps, steps.stop))
    return Histogram(
        [float(f'{edge:.6g}') for edge in edges],
        [counts[step] for step in steps],
    )


def _array(values: Iterable[float]) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values
    return np.fromiter(values, float)


def rolling_average(
    series: Sequence[float | None], width: int
) -> list[float | None]:
    """Return the mean of each value and the ``width - 1`` before it.

    :param series: None where there is no value, as in what is returned
    """
    windows = (
        series[max(0, i + 1 - width) : i + 1] for i in range(len(series))
    )
    known = ([x for x in window if x is not None] for window in windows)
    return [float(np.mean(each)) if each else None for each in known]


def means_each_second(
    times: Iterable[float],
    values: Iterable[float],
    began: float,
    seconds: float,
) -> list[float | None]:
    """Return the mean of values at times in each second; None for none."""
    counts = per_second(times, began, seconds)
    sums = _by_second(times, began, seconds, _array(values))
    return [
        float(total / count) if count else None
        for total, count in zip(sums, counts, strict=True)
    ]


def per_second(
    times: Iterable[float], began: float, seconds: float
) -> list[int]:
    """Return how many times lie in each second; the last may be shorter."""
    return _by_second(times, began, seconds).tolist()


def _by_second(
    times: Iterable[float],
    began: float,
    seconds: float,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the count, or the sum of weights, in each second."""
    after = _array(times) - began
    inside = (after >= 0) & (after < seconds)
    if weights is not None:
        weights = weights[inside]
    at = after[inside].astype(int)
    return np.bincount(at, weights, math.ceil(seconds))


def count_between(times: Iterable[float], begin: float, end: float) -> int:
    """Return how many times are at least ``begin`` and before ``end``."""
    return sum(begin <= each < end for each in times)


def most_in_window(times: Iterable[float], seconds: float) -> int:
    """Return the most times in any window of a length, without its end."""
    ordered = np.sort(_array(times))
    ends = np.searchsorted(ordered, ordered + seconds)
    return int(np.max(ends - np.arange(ordered.size), initial=0))


def median_interval(
    values: Iterable[float], confidence: float = 0.95
) -> Interval:
    """Return the median and its confidence interval.

    The interval is the inversion of a sign test, which holds for any
    distribution.

    :param values: at least one, independent of each other
    :param confidence: the least confidence; 6 values can give 0.95
    """
    ordered = np.sort(_array(values))
    size = ordered.size
    # the confidence of the interval between the value number `cut` from
    # below and the one from above
    chances = [
        1 - 2 * sum(math.comb(size, k) for k in range(cut + 1)) / 2**size
        for cut in range((size + 1) // 2)
    ]
    cut = max(0, sum(chance >= confidence for chance in chances) - 1)
    return Interval(
        float(np.median(ordered)),
        float(ordered[cut]),
        float(ordered[size - 1 - cut]),
        max(0.0, chances[cut]),
    )


def ratio_interval(
    pairs: Iterable[tuple[float | None, float | None]],
) -> Interval | None:
    """Return the median and the interval of ratios.

    :param pairs: ``(figure, base)``, measured together; pairs without a
                  figure or a base are left out
    :returns: None if no pair is left
    """
    ratios = [a / b for a, b in pairs if a is not None and b]
    return median_interval(ratios) if ratios else None


def least_squares(
    equations: Sequence[Sequence[float]], values: Sequence[float]
) -> list[float] | None:
    """Return the unknowns of the best fit of linear equations.

    :param equations: the factors of the unknowns in each equation
    :param values: the right side of each equation
    :returns: None if the unknowns are not determined
    """
    factors = np.atleast_2d(np.array(equations, float))
    # normalized, so that units do not matter
    lengths = np.linalg.norm(factors, axis=0)
    if not (factors.size and lengths.all()):
        return None
    found, _, rank, _ = np.linalg.lstsq(
        factors / lengths, values, rcond=_LEAST_SINGULAR_VALUE
    )
    return (found / lengths).tolist() if rank == len(lengths) else None


def slope_interval(points: Sequence[Point]) -> Slope | None:
    """Return the slope of a line through points and its interval.

    Points that follow each other are correlated, so the jackknife leaves out
    blocks of them.

    :param points: in the order of x
    :returns: None for a single x
    """
    x, y = np.array(points, float).reshape(-1, 2).T
    if len(np.unique(x)) < 2:
        return None
    whole = linear_regression(x, y).slope
    if len(x) < 2 * BLOCKS:
        return Slope(whole)
    without = [
        linear_regression(np.delete(x, block), np.delete(y, block)).slope
        for block in np.array_split(np.arange(len(x)), BLOCKS)
    ]
    reach = _STUDENT_T * stdev(without) * (BLOCKS - 1) / math.sqrt(BLOCKS)
    return Slope(whole, whole - reach, whole + reach)
