# SPDX-License-Identifier: Apache-2.0
"""What is said of a result, whichever command it is of. Pure."""

from dataclasses import dataclass

from shardmw.bench.plot import Plot
from shardmw.bench.results import Result
from shardmw.bench.tables import Table


@dataclass(frozen=True)
class Description:
    """A result, for people.

    :param title: such as ``compare write``
    :param summary: what was done, in a line
    :param published: what others published of it; may be empty
    :param parameters: what it was made with, as ``(name, value)`` for people
    """

    title: str
    summary: str
    published: str
    parameters: list[tuple[str, str]]
    tables: list[Table]
    plots: list[Plot]


def describe(result: Result) -> Description:
    """Tables, plots and words of a result.

    :raises BenchError: if this version knows no such command or experiment
    """
    raise NotImplementedError


def in_order(results: list[Result]) -> list[Result]:
    """Results in the order in which a report has them."""
    raise NotImplementedError
