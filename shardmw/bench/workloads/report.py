# SPDX-License-Identifier: Apache-2.0
"""The tables of workloads and of comparisons. Pure."""

from collections.abc import Mapping

from shardmw.bench.results import comparing as c
from shardmw.bench.results.comparing import Column
from shardmw.bench.results.runs import Run, runs_of
from shardmw.bench.tables import Table
from shardmw.bench.words import conditions_text, varying

_PAGES_RATE = c.median_of('pages/s', lambda run: run.operations_rate)


def tables(figures: Mapping) -> list[Table]:
    """Return rates, processor time, latencies, and the phases of requests.

    Ratios to the plain container are shown if there is one.
    """
    runs = runs_of(figures)
    if not runs:
        return []
    rows = c.rows_of(runs)
    title = _title(runs)
    leading = _leading(runs)
    is_compared = any(row.base for row in rows)
    note = c.rounds_note(runs)
    rates = [*_rates(runs), *(c.RATE_RATIO if is_compared else ())]
    processor, about_processor = _processor(runs, is_compared)
    latencies = list(c.LATENCIES)
    if is_compared:
        latencies += [*c.MEAN_RATIO, *c.P99_RATIO]
    return [
        c.table(
            title,
            rows,
            [*leading, *rates, *processor, *_failures(runs)],
            [note, *c.warnings(runs), *about_processor],
        ),
        c.table(f'Latency of {title}', rows, [*leading, *latencies], [note]),
        *_operation_tables(runs, is_compared),
        c.phases_table('Where the time goes', rows, leading),
    ]


def brief(figures: Mapping) -> list[Table]:
    """Return the table of a comparison in a page for operators."""
    runs = runs_of(figures)
    if not runs:
        return []
    processor, about_processor = _processor(runs, is_compared=True)
    rates = [_rates(runs)[0], *c.RATE_RATIO]
    return [
        c.table(
            _title(runs),
            c.rows_of(runs),
            [c.WORK, *_leading(runs), *rates, *processor],
            [c.rounds_note(runs), *about_processor, *c.warnings(runs)],
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
    return [*map(c.condition, varying(runs)), c.CONTAINER]


def _rates(runs: list[Run]) -> list[Column]:
    columns = [c.RATE]
    if any(run.rows_listed for run in runs):
        columns = [c.ROWS_RATE, _PAGES_RATE]
    return [*columns, *[c.BANDWIDTH] * any(run.bandwidth for run in runs)]


def _processor(
    runs: list[Run], is_compared: bool
) -> tuple[list[Column], list[str]]:
    """Return the columns of processor time and their note, if it is known."""
    if not c.knows_processor(runs):
        return [], []
    ratio = c.PROCESSOR_RATIO if is_compared else ()
    return [c.PROCESSOR, *ratio], [c.PROCESSOR_NOTE]


def _failures(runs: list[Run]) -> list[Column]:
    is_refused = any(run.summary.refused for run in runs)
    return [*[c.REFUSED] * is_refused, c.ERRORS]


def _operation_tables(runs: list[Run], is_compared: bool) -> list[Table]:
    """Return a table of the operations of a mix, if it is one."""
    parts = [part for run in runs for part in run.by_operation()]
    if not parts:
        return []
    columns = [c.WORK, *_leading(runs), c.RATE, *c.LATENCIES]
    columns += [*(c.MEAN_RATIO if is_compared else ()), *_failures(parts)]
    return [c.table('By operation', c.rows_of(parts), columns)]
