# SPDX-License-Identifier: Apache-2.0
"""What the report says of each result. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from shardmw.bench.plot import Plot
from shardmw.bench.results import Result
from shardmw.bench.tables import Table


@dataclass(frozen=True)
class Section:
    """A result, for people.

    :param title: such as ``Container sharding``
    :param summary: a sentence: what was measured
    :param notes: paragraphs below the tables and plots
    """

    result: Result
    title: str
    summary: str
    tables: Sequence[Table]
    plots: Sequence[Plot]
    notes: Sequence[str] = ()


def section(result: Result) -> Section:
    """What is to be said of a result, complete or not."""
    raise NotImplementedError
