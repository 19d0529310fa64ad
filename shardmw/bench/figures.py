# SPDX-License-Identifier: Apache-2.0
"""Figures of what was measured. Pure.

Times are seconds on one clock, in any order unless said.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

# Of a histogram: each of its steps is an eighth wider than the one before.
_STEPS_A_DECADE = 20
_LEAST_MS = 0.001

# Tukey's fences lie so many times the middle half's width outside it.
_FENCES = 1.5


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
        wanted = share * self.total
        below = 0
        for index, count in enumerate(self.counts):
            if count and below + count >= wanted:
                low, high = self.edges_ms[index : index + 2]
                return low * (high / low) ** ((wanted - below) / count)
            below += count
        return None

    def __add__(self, other: 'Histogram') -> 'Histogram':
        return _histogram_of(self._by_step() + other._by_step())

    def as_json(self) -> dict[str, object]:
        """What :meth:`from_json` takes."""
        return {'edges_ms': list(self.edges_ms), 'counts': list(self.counts)}

    @classmethod
    def from_json(cls, values: Mapping[str, Sequence]) -> 'Histogram':
        """The histogram that :meth:`as_json` gave."""
        return cls(tuple(values['edges_ms']), tuple(values['counts']))

    def _by_step(self) -> Counter[int]:
        if not self.counts:
            return Counter()
        first = round(_STEPS_A_DECADE * math.log10(self.edges_ms[0]))
        return Counter(dict(enumerate(self.counts, first)))


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
    # rises with the share, however it is rounded
    return ordered[lower] + (ordered[upper] - ordered[lower]) * part


def latency(durations: Iterable[float]) -> Latency:
    """Sum up how long operations took.

    :param durations: in seconds
    """
    ordered = sorted(1000 * each for each in durations)
    if not ordered:
        return Latency(None, None, None, None)
    return Latency(
        mean(ordered),
        *(percentile(ordered, share) for share in (0.5, 0.95, 0.99)),
    )


def spread(durations: Iterable[float]) -> Spread:
    """Sum up how long something took.

    :param durations: in seconds
    """
    ordered = sorted(1000 * each for each in durations)
    if not ordered:
        return Spread(*[None] * 7)
    inner = within_fences(ordered)
    return Spread(
        mean(ordered),
        *(percentile(ordered, share) for share in (0.5, 0.95, 0.99)),
        ordered[-1],
        mean(inner),
        deviation(ordered),
        len(ordered) - len(inner),
    )


def mean(values: Sequence[float]) -> float:
    """Of at least one value."""
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample; 0 of a single value."""
    middle = mean(values)
    squares = math.fsum((each - middle) ** 2 for each in values)
    return math.sqrt(squares / max(1, len(values) - 1))


def within_fences(ordered: Sequence[float]) -> Sequence[float]:
    """All but the outliers: those beyond Tukey's fences.

    :param ordered: at least one value, in ascending order
    """
    lower, upper = percentile(ordered, 0.25), percentile(ordered, 0.75)
    reach = _FENCES * (upper - lower)
    begin = bisect_left(ordered, lower - reach)
    return ordered[begin : bisect_right(ordered, upper + reach)]


def histogram(durations: Iterable[float]) -> Histogram:
    """How often something took how long.

    :param durations: in seconds; what is shorter than a microsecond counts
                      as one
    """
    return _histogram_of(Counter(map(_step, durations)))


def _step(seconds: float) -> int:
    in_ms = max(_LEAST_MS, 1000 * seconds)
    return math.floor(_STEPS_A_DECADE * math.log10(in_ms))


def _histogram_of(by_step: Mapping[int, int]) -> Histogram:
    used = [step for step, count in by_step.items() if count]
    if not used:
        return Histogram()
    steps = range(min(used), max(used) + 1)
    edges = (10 ** (n / _STEPS_A_DECADE) for n in (*steps, steps.stop))
    return Histogram(
        tuple(float(f'{edge:.6g}') for edge in edges),
        tuple(by_step.get(step, 0) for step in steps),
    )


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
        means.append(mean(known) if known else None)
    return means


def means_each_second(
    values: Iterable[tuple[float, float]], began: float, seconds: float
) -> list[float | None]:
    """The mean of what falls into each second of a time.

    :param values: ``(when, value)``
    :returns: as long as what :func:`per_second` gives; None for no values
    """
    found = [array('d') for _ in range(math.ceil(seconds))]
    for when, value in values:
        if began <= when < began + seconds:
            found[min(int(when - began), len(found) - 1)].append(value)
    return [mean(each) if each else None for each in found]


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


def _below_half(size: int, most: int) -> float:
    """The chance that of some coins no more than ``most`` show heads."""
    return sum(math.comb(size, k) for k in range(most + 1)) / 2**size
