# SPDX-License-Identifier: Apache-2.0
"""Changes of layout: what is computed and shown, from figures made up."""

import json
import math

import pytest

from shardmw.bench.changing import Change, Phase, moments_of
from shardmw.bench.load.outcome import Sample
from shardmw.bench.report.html import alternative
from shardmw.bench.scenarios.reshard import (
    AFTER,
    BEFORE,
    BOUNDED,
    DURING,
    IDLE,
    MOVING,
    Reshard,
    points_of,
    runs_of_parts,
)
from test.unit.test_bench_load import outcome_of
from test.unit.test_bench_reports import cells

PARAMETERS = Reshard(rows=100, shards=(4,), cases=(IDLE, BOUNDED))


def moment(seconds: float, phase: str, moved: int, problem: str = '') -> dict:
    """A report of the progress of a change."""
    return {
        'seconds': seconds,
        'phase': phase,
        'moved': moved,
        'problem': problem,
    }


#: A load of 20 s that begins at 1,000 on the wall; the change begins at 1,005.
CHANGE = Change(
    1005.0,
    10.0,
    (
        moment(1.0, 'announced', 0),
        moment(3.0, 'moving', 0),
        moment(4.0, 'moving', 40, 'a replica is away'),
        moment(5.0, 'moving', 60),
        moment(7.0, 'settling', 100),
        moment(9.5, 'done', 101),
    ),
)


def request(end: float, took: float, status: int = 201) -> Sample:
    start = 100 + end - took
    times = start, start, start, 100 + end
    return Sample(0, 0, *times, status, math.nan, 0)


OUTCOME = outcome_of(
    request(1, 0.1),
    request(3, 0.1),
    request(6, 0.1),
    request(9, 0.3),
    request(9.5, 0.1, 503),
    request(14, 0.1),
    request(17, 0.2),
    seconds=20.0,
)


def row(case: str, former: int, shards: int, **of_clients) -> dict:
    return {
        'case': case,
        'former': former,
        'shards': shards,
        'rows_moved': CHANGE.rows_moved,
        'rows_per_second': CHANGE.rows_per_second,
        'phases': {each.name: each.seconds for each in CHANGE.phases},
        **of_clients,
        'change': CHANGE._asdict(),
    }


@pytest.fixture
def figures() -> dict:
    parts = runs_of_parts(OUTCOME, CHANGE).items()
    of_clients = {part: run.as_json() for part, run in parts}
    of_clients['seconds_before'] = 5.0
    of_clients['point_seconds'] = 2
    of_clients['points'] = points_of(OUTCOME, 2)
    rows = [row(IDLE, 0, 4), row(BOUNDED, 0, 4, **of_clients)]
    return json.loads(json.dumps({'rows': rows}))


def test_shard_counts_go_there_and_back():
    assert Reshard(shards=(4, 32)).changes == [
        *((0, 4), (4, 32), (32, 4), (4, 0)),
    ]
    assert PARAMETERS.changes == [(0, 4), (4, 0)]


def test_a_phase_lasts_until_the_next_one():
    assert CHANGE.phases == [
        Phase('starting', 0.0, 1.0),
        Phase('announced', 1.0, 3.0),
        Phase('moving', 3.0, 7.0),
        Phase('settling', 7.0, 9.5),
        Phase('done', 9.5, 10.0),
    ]


def test_the_rate_is_that_while_rows_move():
    assert CHANGE.rows_per_second == 101 / 4
    assert CHANGE.rates(2) == [(4.0, 30.0), (6.0, 20.0)]


def test_a_change_without_rows_has_no_rate():
    idle = Change(0.0, 2.0, (moment(1.0, 'announced', 0),))
    assert idle.rows_per_second is None
    assert idle.rates(2) == []


def test_moments_are_what_the_command_prints():
    printed = {
        'time': 1001.5,
        'container': 'AUTH_test/c',
        'phase': 'moving',
        'rows_moved': 7,
        'rows': 9,
        'problem': '',
    }
    lines = ['a warning of a library', json.dumps(printed)]
    assert moments_of(lines, 1000.0) == [moment(1.5, 'moving', 7)]


def test_a_load_is_taken_apart_by_the_times_of_the_change():
    parts = runs_of_parts(OUTCOME, CHANGE)
    admitted = {part: run.summary.admitted for part, run in parts.items()}
    assert admitted == {BEFORE: 2, DURING: 3, MOVING: 1, AFTER: 1}
    assert parts[DURING].summary.errors == {'503': 1}
    assert parts[MOVING].summary.errors == {'503': 1}
    assert parts[MOVING].summary.latency.p99_ms == pytest.approx(300)


def test_points_have_rates_and_latencies_of_writes_and_reads():
    points = points_of(OUTCOME, 2)
    assert [each['seconds'] for each in points] == [*range(1, 20, 2)]
    assert points[4]['rate'] == 0.5
    assert points[4]['writes']['p50_ms'] == pytest.approx(300)
    assert points[4]['reads']['p50_ms'] is None


def test_the_summary_has_rates_ratios_and_failures(figures):
    idle, bounded = cells(PARAMETERS.tables(figures)[0])
    assert (idle['case'], idle['change']) == ('no clients', 'plain to 4')
    assert idle['rows/s'] == bounded['rows/s'] == '25.2'
    assert idle['hours for 200M rows'] == '2,200'
    assert (idle['p99 before ms'], idle['errors']) == ('—', '—')
    assert bounded['case'] == 'clients, 2,000 rows/s'
    assert float(bounded['p99 before ms']) == 100
    assert bounded['p99 moving / before'] == '3.00'
    assert (bounded['refused'], bounded['errors']) == ('0', '1 × 503')


def test_changes_with_clients_are_plotted_with_their_phases(figures):
    rates, latencies = PARAMETERS.plots(figures)
    assert rates.name == 'rates-bounded-0-4'
    requests, moved = rates.series
    assert list(moved.x) == [9.0, 11.0]
    assert list(moved.y) == [30.0, 20.0]
    assert [band.label for band in rates.bands] == [
        *('starting', 'announced', 'moving', 'settling', 'done'),
    ]
    assert (rates.bands[2].begin, rates.bands[2].end) == (8.0, 12.0)
    assert rates.bands[-1].end == 19.0
    assert list(requests.x) == [1, 3, 7, 9, 15, 17]
    assert latencies.bands == rates.bands
    assert [each.label for each in latencies.series] == [
        *('writes p99', 'writes p50'),
    ]
    assert 'requests of clients' in alternative(rates)
    assert 'writes p99' in alternative(latencies)


def test_what_has_not_begun_has_neither_tables_nor_plots():
    assert PARAMETERS.tables({'rows': []}) == []
    assert PARAMETERS.plots({'rows': []}) == []
