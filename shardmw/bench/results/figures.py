# SPDX-License-Identifier: Apache-2.0
"""Figures of what was measured. Pure.

Times are seconds on one clock, in any order unless said.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# Of a histogram: each of its steps is an eighth wider than the one before.
_STEPS_A_DECADE = 20
_LEAST_MS = 0.001

# Tukey's fences lie so many times the middle half's width outside it.
_FENCES = 1.5

_SHARES = (0.5, 0.95, 0.99)


class Latency(NamedTuple):
    """How long operations took, in milliseconds; None of no operations."""

    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class Spread(NamedTuple):
    """How long something took, in milliseconds; None of nothing.

    :param trimmed_mean_ms: that of all but the outliers, which lie beyond
                            Tukey's fences
    :param stdev_ms: of the sample; 0 of one value
    :param outliers: how many there are
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
    """A median, and where that of all possible runs lies.

    :param confidence: the probability that it lies from ``low`` to ``high``;
                       with few values it's less than was asked for
    """

    median: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Histogram:
    """How often something took how long.

    The steps of all histograms are those of one logarithmic scale, so they
    add up; a histogram has those from its least value to its greatest.

    :param edges_ms: in milliseconds, ascending, one more than counts; empty
                     of nothing
    :param counts: how many lie from an edge on and before the next one
    """

    edges_ms: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """How many values it has."""
        return sum(self.counts)

    def percentile(self, share: float) -> float | None:
        """About the value that a share of the others lies below.

        :param share: 0 to 1
        :returns: milliseconds, None of nothing
        """
        if not self.counts:
            return None
        ends = np.cumsum(self.counts)
        wanted = share * ends[-1]
        step = int(np.searchsorted(ends, wanted))
        low, high = self.edges_ms[step : step + 2]
        count = self.counts[step]
        part = 1 - (ends[step] - wanted) / count if count else 0
        return float(low * (high / low) ** part)

    def __add__(self, other: 'Histogram') -> 'Histogram':
        known = [each for each in (self, other) if each.counts]
        if len(known) < 2:
            return known[0] if known else Histogram()
        steps = [each._first + np.arange(len(each.counts)) for each in known]
        first = min(self._first, other._first)
        return _histogram_of(
            first,
            np.bincount(
                np.concatenate(steps) - first,
                [*self.counts, *other.counts],
            ).astype(int),
        )

    def as_json(self) -> dict[str, object]:
        """What :meth:`from_json` takes."""
        return {'edges_ms': list(self.edges_ms), 'counts': list(self.counts)}

    @classmethod
    def from_json(cls, values: Mapping[str, Sequence]) -> 'Histogram':
        """The histogram that :meth:`as_json` gave."""
        return cls(tuple(values['edges_ms']), tuple(values['counts']))

    @property
    def _first(self) -> int:
        """Which step of the scale is its first."""
        return round(_STEPS_A_DECADE * math.log10(self.edges_ms[0]))


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value that a share (0 to 1) of the others lies below.

    :param values: at least one; between two of them it is interpolated
    """
    return float(np.quantile(_array(values), share))


def latency(durations: Iterable[float]) -> Latency:
    """Sum up how long operations took.

    :param durations: in seconds
    """
    in_ms = 1000 * _array(durations)
    if not in_ms.size:
        return Latency(None, None, None, None)
    return Latency(
        float(np.mean(in_ms)), *np.quantile(in_ms, _SHARES).tolist()
    )


def spread(durations: Iterable[float]) -> Spread:
    """Sum up how long something took.

    :param durations: in seconds
    """
    in_ms = 1000 * _array(durations)
    if not in_ms.size:
        return Spread(*[None] * 7)
    inner = within_fences(in_ms)
    return Spread(
        *latency(durations),
        float(np.max(in_ms)),
        float(np.mean(inner)),
        float(np.std(in_ms, ddof=min(1, in_ms.size - 1))),
        in_ms.size - inner.size,
    )


def within_fences(values: np.ndarray) -> np.ndarray:
    """Return all but the outliers: those beyond Tukey's fences.

    :param values: at least one
    """
    lower, upper = np.quantile(values, (0.25, 0.75))
    reach = _FENCES * (upper - lower)
    return values[(values >= lower - reach) & (values <= upper + reach)]


def histogram(durations: Iterable[float]) -> Histogram:
    """How often something took how long.

    :param durations: in seconds; what is shorter than a microsecond counts
                      as one
    """
    in_ms = np.maximum(_LEAST_MS, 1000 * _array(durations))
    if not in_ms.size:
        return Histogram()
    steps = np.floor(_STEPS_A_DECADE * np.log10(in_ms)).astype(int)
    first = int(steps.min())
    return _histogram_of(first, np.bincount(steps - first))


def _histogram_of(first: int, counts: np.ndarray) -> Histogram:
    steps = range(first, first + len(counts) + 1)
    edges = (10 ** (step / _STEPS_A_DECADE) for step in steps)
    return Histogram(
        tuple(float(f'{edge:.6g}') for edge in edges), tuple(counts.tolist())
    )


def _array(values: Iterable[float]) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values
    return np.fromiter(values, float)


def rolling_average(
    series: Sequence[float | None], width: int
) -> list[float | None]:
    """The mean of each value and those before it, for smoother lines.

    :param series: None where there is no value
    :param width: of so many, the value itself among them
    :returns: as many; None where all of them are None
    """
    means = []
    for end in range(1, len(series) + 1):
        window = series[max(0, end - width) : end]
        known = [each for each in window if each is not None]
        means.append(float(np.mean(known)) if known else None)
    return means


def means_each_second(
    times: Iterable[float],
    values: Iterable[float],
    began: float,
    seconds: float,
) -> list[float | None]:
    """The mean of what falls into each second of a time.

    :param times: when the values were found
    :returns: as long as what :func:`per_second` gives; None for no values
    """
    times = _array(times)
    inside, second, length = _seconds(times, began, seconds)
    sums = np.bincount(second, _array(values)[inside], length)
    counts = per_second(times, began, seconds)
    return [
        float(total / count) if count else None
        for total, count in zip(sums, counts, strict=True)
    ]


def per_second(
    times: Iterable[float], began: float, seconds: float
) -> list[int]:
    """How many fall into each second of a time.

    :param seconds: the length of the time; of its last second, only what
                    belongs to it counts
    """
    _, second, length = _seconds(_array(times), began, seconds)
    return np.bincount(second, minlength=length).tolist()


def _seconds(
    times: np.ndarray, began: float, seconds: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return which times are inside, the second of each, and the seconds.

    A time right before the end may be in no second after rounding; it belongs
    to the last one.
    """
    length = math.ceil(seconds)
    inside = (began <= times) & (times < began + seconds)
    second = (times[inside] - began).astype(int)
    return inside, np.minimum(second, length - 1), length


def count_between(times: Iterable[float], begin: float, end: float) -> int:
    """How many lie from a time on and before another."""
    return sum(begin <= each < end for each in times)


def most_in_window(times: Iterable[float], seconds: float) -> int:
    """The most that fall into any window of some length.

    :param seconds: the length; of its two ends, one belongs to the window
    """
    ordered = np.sort(_array(times))
    ends = np.searchsorted(ordered, ordered + seconds)
    return int(np.max(ends - np.arange(ordered.size), initial=0))


def median_interval(
    values: Iterable[float], confidence: float = 0.95
) -> Interval:
    """The median, and an interval for that of the distribution.

    By order statistics (a sign test turned round): exact whatever the
    distribution is, and not moved by outliers.

    :param values: at least one, independent of each other
    :param confidence: the least that is wanted; 6 values can give 0.95
    """
    ordered = np.sort(_array(values))
    size = ordered.size
    # the chance that the median lies between a value, counted from below,
    # and the same one counted from above
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
    confidence: float = 0.95,
) -> Interval | None:
    """The median of ratios, and its interval; see :func:`median_interval`.

    :param pairs: ``(figure, base)`` that were measured together; those
                  without a figure, or a base, are left out
    :returns: None if no pair is left
    """
    ratios = [a / b for a, b in pairs if a is not None and b]
    return median_interval(ratios, confidence) if ratios else None
