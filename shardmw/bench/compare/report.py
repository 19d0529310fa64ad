# SPDX-License-Identifier: Apache-2.0
"""The tables of a comparison. Pure."""

from collections.abc import Mapping

from shardmw.bench.results.comparing import (
    LATENCIES,
    MEAN_RATIO,
    P99_RATIO,
    PROCESSOR,
    PROCESSOR_NOTE,
    PROCESSOR_RATIO,
    RATE_RATIO,
    WORK,
    Column,
    knows_processor,
    phases_table,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.results.runs import Run, runs_of
from shardmw.bench.tables import Table
from shardmw.bench.workloads.report import (
    failures,
    leading_columns,
    operation_tables,
    rate_columns,
    title,
)


def tables(figures: Mapping) -> list[Table]:
    """Return rates, processor time and latencies, with ratios to plain."""
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    notes = [rounds_note(runs), *warnings(runs)]
    words = title(runs)
    leading = leading_columns(runs)
    used, about_used = _processor(runs)
    return [
        table(
            words,
            rows,
            [
                *leading,
                *rate_columns(runs),
                *RATE_RATIO,
                *used,
                *failures(runs),
            ],
            [*notes, *about_used],
        ),
        table(
            f'Latency of {words}',
            rows,
            [*leading, *LATENCIES, *MEAN_RATIO, *P99_RATIO],
            notes[:1],
        ),
        *operation_tables(runs, MEAN_RATIO),
        phases_table('Where the time goes', rows, leading),
    ]


def brief(figures: Mapping) -> list[Table]:
    """Return the one table that a page for operators has.

    Those of several comparisons with the same columns can be put together.
    """
    runs = runs_of(figures)
    if not runs:
        return []
    used, about_used = _processor(runs)
    return [
        table(
            title(runs),
            rows_of(runs),
            [
                WORK,
                *leading_columns(runs),
                rate_columns(runs)[0],
                *RATE_RATIO,
                *used,
            ],
            [rounds_note(runs), *about_used, *warnings(runs)],
        )
    ]


def _processor(runs: list[Run]) -> tuple[list[Column], list[str]]:
    """Return the columns of processor time and their note, if it is known."""
    if not knows_processor(runs):
        return [], []
    return [PROCESSOR, *PROCESSOR_RATIO], [PROCESSOR_NOTE]
