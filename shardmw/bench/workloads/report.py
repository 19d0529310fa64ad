# SPDX-License-Identifier: Apache-2.0
"""What is said of workloads. Pure."""

from collections.abc import Mapping, Sequence

from shardmw.bench import runplots
from shardmw.bench.plot import Plot
from shardmw.bench.results.comparing import (
    BANDWIDTH,
    CONTAINER,
    ERRORS,
    LATENCIES,
    PROCESSOR,
    PROCESSOR_NOTE,
    RATE,
    REFUSED,
    ROWS_RATE,
    WORK,
    Column,
    bandwidth,
    condition,
    knows_processor,
    phases_table,
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
    """Rates and latencies by container, and where the time goes."""
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    leading = leading_columns(runs)
    count = len({run.turn for run in runs})
    used = knows_processor(runs)
    return [
        table(
            title(runs),
            rows,
            [
                *leading,
                *rate_columns(runs),
                *[PROCESSOR] * used,
                *LATENCIES,
                *failures(runs),
            ],
            [
                *[f'Medians of {count} rounds.'] * (count > 1),
                *[PROCESSOR_NOTE] * used,
                *warnings(runs),
            ],
        ),
        *operation_tables(runs),
        phases_table('Where the time goes', rows, leading),
    ]


def plots(name: str, figures: Mapping) -> list[Plot]:
    """All that make sense.

    :param name: what their names begin with
    """
    return runplots.all_of(runs_of(figures), name)


def title(runs: list[Run]) -> str:
    """What was done: the work, and the conditions that all runs have."""
    first = runs[0]
    common = {
        name: value
        for name, value in first.conditions.items()
        if name not in varying(runs)
    }
    return f'{first.work}: {conditions_text(common)}'


def leading_columns(runs: list[Run]) -> list[Column]:
    """What tells the rows of a table apart."""
    return [*map(condition, varying(runs)), CONTAINER]


def rate_columns(runs: list[Run]) -> list[Column]:
    """What was done a second, as fits the work."""
    columns = [RATE]
    if any(run.rows_listed for run in runs):
        columns = [ROWS_RATE, _PAGES_RATE]
    if any(map(bandwidth, runs)):
        columns.append(BANDWIDTH)
    return columns


def failures(runs: list[Run]) -> list[Column]:
    """What was not admitted; refusals if there were any."""
    is_refused = any(run.summary.refused for run in runs)
    return [REFUSED] * is_refused + [ERRORS]


def operation_tables(
    runs: list[Run], more: Sequence[Column] = ()
) -> list[Table]:
    """What a mixed load has of each operation; none for other work.

    :param more: columns behind the others
    """
    parts = [part for run in runs for part in run.by_operation()]
    if not parts:
        return []
    leading = [WORK, *leading_columns(runs)]
    return [
        table(
            'By operation',
            rows_of(parts),
            [*leading, RATE, *LATENCIES, *more, *failures(parts)],
        )
    ]
