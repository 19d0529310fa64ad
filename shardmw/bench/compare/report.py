# SPDX-License-Identifier: Apache-2.0
"""What is said of a comparison. Pure."""

from collections.abc import Mapping

from shardmw.bench.comparing import (
    LATENCIES,
    MEAN_RATIO,
    P99_RATIO,
    RATE_RATIO,
    phases_table,
    rounds_note,
    rows_of,
    table,
    warnings,
)
from shardmw.bench.runs import runs_of
from shardmw.bench.tables import Table
from shardmw.bench.workloads.report import (
    failures,
    leading_columns,
    operation_tables,
    rate_columns,
    title,
)


def tables(figures: Mapping) -> list[Table]:
    """Rates and latencies by container, each by that of the plain one."""
    runs = runs_of(figures)
    if not runs:
        return []
    rows = rows_of(runs)
    notes = [rounds_note(runs), *warnings(runs)]
    words = title(runs)
    leading = leading_columns(runs)
    return [
        table(
            words,
            rows,
            [*leading, *rate_columns(runs), *RATE_RATIO, *failures(runs)],
            notes,
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
