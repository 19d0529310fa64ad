# SPDX-License-Identifier: Apache-2.0
"""The tables of workloads and of comparisons. Pure."""

from collections.abc import Mapping

from shardmw_bench import templates
from shardmw_bench.results import comparing as c
from shardmw_bench.results.runs import runs_of
from shardmw_bench.results.summary import PHASES
from shardmw_bench.tables import Table
from shardmw_bench.templates import conditions_text, varying

_MEANS = {'{} ms': 'mean_ms', 'trimmed': 'trimmed_mean_ms'}


def tables(figures: Mapping, is_brief: bool = False) -> list[Table]:
    """Return the tables of runs, with ratios if there is a plain container.

    :param is_brief: True for the only table of a page for operators
    """
    runs = runs_of(figures)
    if not runs:
        return []
    rows = c.rows_of(runs)
    conditions = varying(runs)
    first = runs[0].conditions.items()
    common = {name: value for name, value in first if name not in conditions}
    phases = [(name, *mean) for name in PHASES for mean in _MEANS.items()]
    return templates.tables(
        'work',
        is_brief=is_brief,
        title=f'{runs[0].work}: {conditions_text(common)}',
        runs=runs,
        rows=rows,
        operations=c.rows_of(
            part for run in runs for part in run.by_operation()
        ),
        conditions=conditions,
        is_compared=is_brief or any(row.base for row in rows),
        has_rows=any(run.rows_listed for run in runs),
        has_bytes=any(run.bandwidth for run in runs),
        has_processor=any(run.processor_ms is not None for run in runs),
        has_refused=any(run.summary.refused for run in runs),
        phase_heads=[head.format(name) for name, head, _ in phases],
        phases=[c.phase(name, what) for name, _, what in phases],
    )
