# SPDX-License-Identifier: Apache-2.0
"""The tables and plots of workloads and of comparisons. Pure."""

from collections.abc import Mapping

from shardmw.bench.results.comparing import (
    BANDWIDTH,
    CONTAINER,
    ERRORS,
    LATENCIES,
    MEAN_RATIO,
    P99_RATIO,
    PROCESSOR,
    PROCESSOR_NOTE,
    PROCESSOR_RATIO,
    RATE,
    RATE_RATIO,
    REFUSED,
    ROWS_RATE,
    WORK,
    Column,
    condition,
    knows_processor,
    phases_table,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.results.runs import Run, runs_of
from shardmw.bench.tables import Table, figure
from shardmw.bench.words import conditions_text, varying

_PAGES_RATE = Column(
    'pages/s',
    lambda row: figure(row.median(lambda run: run.operations_rate)),
)


def tables(figures: Mapping) -> list[Table]:
    """Return rates, processor time and latencies, and where the time goes.

    Ratios to the plain container are shown if there is one.
    """
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    title = _title(runs)
    leading = _leading(runs)
    is_compared = any(row.base for row in rows)
    note = rounds_note(runs)
    rates = [*_rates(runs), *(RATE_RATIO if is_compared else ())]
    processor, about_processor = _processor(runs, is_compared)
    latencies = list(LATENCIES)
    if is_compared:
        latencies += [*MEAN_RATIO, *P99_RATIO]
    return [
        table(
            title,
            rows,
            [*leading, *rates, *processor, *_failures(runs)],
            [note, *warnings(runs), *about_processor],
        ),
        table(f'Latency of {title}', rows, [*leading, *latencies], [note]),
        *_operation_tables(runs, is_compared),
        phases_table('Where the time goes', rows, leading),
    ]


def brief(figures: Mapping) -> list[Table]:
    """Return the one table that a page for operators has of a comparison.

    Those of several comparisons with the same columns can be put together.
    """
    runs = runs_of(figures)
    if not runs:
        return []
    processor, about_processor = _processor(runs, is_compared=True)
    rates = [_rates(runs)[0], *RATE_RATIO]
    return [
        table(
            _title(runs),
            rows_of(runs),
            [WORK, *_leading(runs), *rates, *processor],
            [rounds_note(runs), *about_processor, *warnings(runs)],
        )
    ]


def _title(runs: list[Run]) -> str:
    """Return the work, and the conditions that all runs have."""
    first = runs[0]
    common = {
        name: value
        for name, value in first.conditions.items()
        if name not in varying(runs)
    }
    return f'{first.work}: {conditions_text(common)}'


def _leading(runs: list[Run]) -> list[Column]:
    """Return the columns that tell the rows of a table apart."""
    return [*map(condition, varying(runs)), CONTAINER]


def _rates(runs: list[Run]) -> list[Column]:
    columns = [RATE]
    if any(run.rows_listed for run in runs):
        columns = [ROWS_RATE, _PAGES_RATE]
    return [*columns, *[BANDWIDTH] * any(run.bandwidth for run in runs)]


def _processor(
    runs: list[Run], is_compared: bool
) -> tuple[list[Column], list[str]]:
    """Return the columns of processor time and their note, if it is known."""
    if not knows_processor(runs):
        return [], []
    ratio = PROCESSOR_RATIO if is_compared else ()
    return [PROCESSOR, *ratio], [PROCESSOR_NOTE]


def _failures(runs: list[Run]) -> list[Column]:
    is_refused = any(run.summary.refused for run in runs)
    return [*[REFUSED] * is_refused, ERRORS]


def _operation_tables(runs: list[Run], is_compared: bool) -> list[Table]:
    """Return a table of each operation of a mixed load, if it is one."""
    parts = [part for run in runs for part in run.by_operation()]
    if not parts:
        return []
    columns = [WORK, *_leading(runs), RATE, *LATENCIES]
    columns += [*(MEAN_RATIO if is_compared else ()), *_failures(parts)]
    return [table('By operation', rows_of(parts), columns)]
