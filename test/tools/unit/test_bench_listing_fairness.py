# SPDX-License-Identifier: Apache-2.0
"""Writes while a client lists: the table and the plot, of made-up runs."""

from dataclasses import replace

import pytest
from shardmw_bench.kinds import PLAIN, Kind, sharded
from shardmw_bench.plots.plot import BARS, REFERENCE
from shardmw_bench.results.runs import Run
from shardmw_bench.scenarios.listings import (
    LIST,
    NOBODY,
    WRITE,
    ListingFairness,
)

from test.tools.unit.test_bench_reports import cells
from test.tools.unit.test_bench_runs import run_of

MANY = sharded(4)
PARAMETERS = ListingFairness(rate=1, shards=(4,), page=(1000, 10))


def runs_of_rounds(*p99s: dict[tuple, float]) -> list[Run]:
    """Return runs with the p99 (ms) of each round by ``(kind, page)``."""
    return [
        run
        for turn, took in enumerate(p99s)
        for (kind, page), p99 in took.items()
        for run in runs_of(kind, page, p99, turn)
    ]


def runs_of(kind: Kind, page: int, p99_ms: float, turn: int) -> list[Run]:
    run = run_of(0.5, 1.0, 1.5, kind=kind, turn=turn, page=page)
    took = run.summary.latency._replace(p99_ms=p99_ms)
    writes = replace(
        run, work=WRITE, summary=replace(run.summary, latency=took)
    )
    listing = run_of(1.0, kind=kind, turn=turn, rows=page, page=page)
    return [writes, *[replace(listing, work=LIST)] * (kind != NOBODY)]


def figures(runs) -> dict:
    return {'runs': [run.as_json() for run in runs]}


def table_of(runs, parameters=PARAMETERS):
    (found,) = parameters.tables(figures(runs))
    return found


ROUND = {
    (NOBODY, 1000): 10,
    (PLAIN, 1000): 20,
    (MANY, 1000): 30,
    (NOBODY, 10): 20,
    (PLAIN, 10): 40,
    (MANY, 10): 20,
}


def test_each_ratio_has_the_base_that_its_column_names():
    found = {
        (row['listed container'], row['page size']): (
            row['p99 vs. no listing'],
            row['p99 vs. plain listed'],
        )
        for row in cells(table_of(runs_of_rounds(ROUND)))
    }
    assert found['plain', '1,000'] == ('2.00', '—')
    assert found['N = 4', '1,000'] == ('3.00', '1.50')
    assert found['plain', '10'] == ('2.00', '—')
    assert found['N = 4', '10'] == ('1.00', '0.50')
    assert found['none', '10'][0] == '—'


def test_ratios_are_of_the_same_round():
    case, base = (MANY, 10), (NOBODY, 10)
    runs = runs_of_rounds({base: 10, case: 20}, {base: 40, case: 40})
    rows = {row['listed container']: row for row in cells(table_of(runs))}
    assert rows['N = 4']['p99 vs. no listing'] == '1.50'


def test_pages_and_errors_of_writers_and_listers_are_separate():
    runs = runs_of_rounds({(NOBODY, 10): 10, (PLAIN, 10): 20})
    failing = replace(runs[-1].summary, errors={'503': 7})
    runs[-1] = replace(runs[-1], summary=failing)
    rows = {row['listed container']: row for row in cells(table_of(runs))}
    nobody, plain = rows['none'], rows['plain']
    assert (nobody['pages/s'], nobody['listing errors']) == ('—', '—')
    assert plain['pages/s'] != '—'
    assert (plain['errors'], plain['listing errors']) == ('0', '7 × 503')


def test_a_row_without_a_base_has_no_ratio():
    (row,) = cells(table_of(runs_of_rounds({(MANY, 10): 20})))
    assert row['p99 vs. no listing'] == row['p99 vs. plain listed'] == '—'


@pytest.mark.parametrize(('rate', 'told'), [(1, False), (9, True), (0, False)])
def test_writers_that_are_behind_are_reported(rate, told):
    runs = runs_of_rounds(ROUND)
    notes = table_of(runs, replace(PARAMETERS, rate=rate)).notes
    assert any('were behind' in note for note in notes) == told


def test_the_plot_has_bars_for_each_page_and_a_line_without_listings():
    (plot,) = PARAMETERS.plots(figures(runs_of_rounds(ROUND)))
    assert plot.x.names == ['plain', 'N = 4']
    assert [(s.style, list(s.y)) for s in plot.series] == [
        (BARS, [20, 30]),
        (BARS, [40, 20]),
        (REFERENCE, [15, 15]),
    ]


def test_a_run_that_has_not_begun_has_neither_tables_nor_plots():
    assert PARAMETERS.tables(figures([])) == []
    assert PARAMETERS.plots(figures([])) == []
    alone = runs_of_rounds({(NOBODY, 10): 10})
    assert PARAMETERS.plots(figures(alone)) == []


@pytest.mark.parametrize(('rate', 'pause'), [(0, 0), (4, 4), (32, 0.5)])
def test_a_rate_is_shared_by_the_clients(rate, pause):
    assert ListingFairness(clients=16, rate=rate).pace_seconds == pause
