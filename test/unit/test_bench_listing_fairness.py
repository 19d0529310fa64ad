# SPDX-License-Identifier: Apache-2.0
"""Writers while somebody lists: the table and the plot, from runs made up."""

from dataclasses import replace

import pytest

from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.plots.plot import BARS, REFERENCE
from shardmw.bench.runs import Run
from shardmw.bench.scenarios import listing_fairness
from shardmw.bench.scenarios.listing_fairness import LIST, NOBODY, Parameters
from test.unit.test_bench_reports import cells
from test.unit.test_bench_runs import run_of

PARAMETERS = Parameters(rate=1, shards=(4,), page=(1000, 10))
KINDS = (PLAIN, sharded(4))


def writes(p99_ms: float, turn: int, **conditions) -> Run:
    """A run whose slowest writes took so long."""
    run = run_of(0.5, 1.0, 1.5, turn=turn, **conditions)
    took = run.summary.latency._replace(p99_ms=p99_ms)
    return replace(run, summary=replace(run.summary, latency=took))


def listing(kind: Kind, page: int, turn: int) -> Run:
    run = run_of(1.0, kind=kind, turn=turn, rows=page, page=page)
    return replace(run, work=LIST)


def runs_of_rounds(*p99s: dict[tuple, float]) -> list[Run]:
    """What each round measured, by ``(kind, page)``; by None of nobody."""
    runs = []
    for turn, took in enumerate(p99s):
        for case, p99 in took.items():
            if case is None:
                runs.append(writes(p99, turn, listed=NOBODY))
                continue
            kind, page = case
            runs.append(writes(p99, turn, listed=kind.label, page=page))
            runs.append(listing(kind, page, turn))
    return runs


def figures(runs) -> dict:
    return {'runs': [run.as_json() for run in runs]}


def table_of(runs, parameters=PARAMETERS):
    (found,) = listing_fairness.tables(parameters, figures(runs))
    return found


ROUND = {
    None: 10,
    (PLAIN, 1000): 20,
    (sharded(4), 1000): 30,
    (PLAIN, 10): 40,
    (sharded(4), 10): 20,
}


def test_each_ratio_has_the_base_that_its_column_names():
    found = cells(table_of(runs_of_rounds(ROUND)))
    assert [
        (
            row['listed meanwhile'],
            row['rows a page'],
            row['p99 to nobody'],
            row['p99 to plain listed'],
        )
        for row in found
    ] == [
        (NOBODY, '—', '—', '—'),
        ('plain', '1,000', '2.00', '—'),
        ('N = 4', '1,000', '3.00', '1.50'),
        ('plain', '10', '4.00', '—'),
        ('N = 4', '10', '2.00', '0.50'),
    ]


def test_ratios_are_of_the_same_round():
    case = sharded(4), 10
    runs = runs_of_rounds({None: 10, case: 20}, {None: 40, case: 40})
    found = table_of(runs)
    where = found.columns.index('p99 to nobody')
    assert found.rows[1][where : where + 2] == ['1.50', '1.00 to 2.00 (50%)']


def test_pages_are_those_of_who_lists():
    first, *others = cells(table_of(runs_of_rounds(ROUND)))
    assert (first['pages/s'], first['its errors']) == ('—', '—')
    assert all(row['pages/s'] != '—' for row in others)


def test_errors_of_both_are_told_apart():
    runs = runs_of_rounds({None: 10, (PLAIN, 10): 20})
    failing = replace(runs[-1].summary, errors={'503': 7})
    runs[-1] = replace(runs[-1], summary=failing)
    _, row = cells(table_of(runs))
    assert (row['errors'], row['its errors']) == ('0', '7 × 503')


def test_what_has_no_base_yet_has_no_ratio():
    (row,) = cells(table_of(runs_of_rounds({(sharded(4), 10): 20})))
    assert row['p99 to nobody'] == row['p99 to plain listed'] == '—'


@pytest.mark.parametrize(('rate', 'told'), [(1, False), (9, True), (0, False)])
def test_writers_that_are_behind_are_told(rate, told):
    runs = runs_of_rounds(ROUND)
    notes = table_of(runs, replace(PARAMETERS, rate=rate)).notes
    assert any('were behind' in note for note in notes) == told


def test_the_plot_has_bars_for_each_page_beside_nobodys():
    (plot,) = listing_fairness.plots(
        PARAMETERS, figures(runs_of_rounds(ROUND))
    )
    assert plot.x.names == [kind.label for kind in KINDS]
    assert [(s.style, list(s.y)) for s in plot.series] == [
        (BARS, [20, 30]),
        (BARS, [40, 20]),
        (REFERENCE, [10, 10]),
    ]


def test_what_has_not_begun_has_neither():
    assert listing_fairness.tables(PARAMETERS, figures([])) == []
    assert listing_fairness.plots(PARAMETERS, figures([])) == []
    alone = runs_of_rounds({None: 10})
    assert listing_fairness.plots(PARAMETERS, figures(alone)) == []


@pytest.mark.parametrize(('rate', 'pause'), [(0, 0), (4, 4), (32, 0.5)])
def test_a_rate_is_shared_by_the_clients(rate, pause):
    assert Parameters(clients=16, rate=rate).pace_seconds == pause
