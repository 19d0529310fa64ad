# SPDX-License-Identifier: Apache-2.0
"""Plots that any list of runs can have. Pure.

Each function takes runs of any kinds, rounds and conditions, and gives the
plots that make sense of them: none, if there is too little to compare. What
differs beside what a plot is about, such as a limit, is told apart by series
where they are rates, and by a plot for each where they are latencies.

A scenario takes :func:`all_of`, or the single ones, with names of its own::

    runplots.rates_by_shards(runs, 'container-sharding')

Names of plots begin with the prefix, as they are names of files.
"""

from collections.abc import Sequence

from shardmw.bench.plot import Plot
from shardmw.bench.runs import Run


def all_of(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """All plots below that make sense of these runs, in their order.

    :param prefix: what the names of the plots begin with: a word of lower
                   case, digits and hyphens, such as ``compare-write``
    """
    return []


def rates_by_shards(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Throughput by what the container is: plain, native, N = 1, 8, …

    If there are two kinds at least.
    """
    return []


def rates_by_condition(
    runs: Sequence[Run], prefix: str, condition: str
) -> list[Plot]:
    """Throughput by a condition that has numbers, a line for each kind.

    If there are two values of it at least.

    :param condition: ``size``, ``clients``, ``page``, ``rows`` or the like
    """
    return []


def bandwidth_by_size(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Megabytes of bodies a second by object size, a line for each kind."""
    return []


def latency_by_rows(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Mean latency as the container grows, a line for each kind.

    If there are two values of ``conditions['rows']`` at least.
    """
    return []


def latency_over_time(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Mean latency of each second, and a rolling average, by kind."""
    return []


def latency_histograms(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """How many operations took how long, by kind."""
    return []


def phases(runs: Sequence[Run], prefix: str) -> list[Plot]:
    """Request, response and transfer times apart, by kind."""
    return []
