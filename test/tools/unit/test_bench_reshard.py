# SPDX-License-Identifier: Apache-2.0
"""Changes of layout: what is computed and shown, from made-up figures."""

import json
import math

import pytest
from shardmw_bench.changing import MOVING, SETTLING, Change, Phase, moments_of
from shardmw_bench.load.outcome import Sample
from shardmw_bench.report.html import alternative
from shardmw_bench.scenarios.reshard import (
    AFTER,
    BEFORE,
    BOUNDED,
    CLIENTS,
    IDLE,
    SHARDMW,
    SWIFT,
    Goal,
    Reshard,
    goals_of,
    points_of,
    runs_of_parts,
)
from shardmw_saio.config import CONTAINER_FILTER

from test.tools.unit.test_bench_load import outcome_of
from test.tools.unit.test_bench_reports import cells

PARAMETERS = Reshard(shards=(4,), rounds=3)


def moment(seconds: float, phase: str, moved: int, problem: str = '') -> dict:
    """Return a report of the progress of a change."""
    return {
        'seconds': seconds,
        'phase': phase,
        'moved': moved,
        'problem': problem,
    }


#: A load of 20 s that begins at 1,000 on the wall clock; the change begins at
#: 1,005.
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
    kind = int(status == 204)
    return Sample(kind, 0, *times, status, math.nan, 0)


def load(moving: float):
    """Return a load whose PUTs take 0.1 s, or longer while rows move."""
    outcome = outcome_of(
        request(1, 0.1),
        request(2, 0.1, 204),
        request(3, 0.1),
        request(6, 0.1),
        request(9, moving),
        request(9.5, 0.1, 503),
        request(13, 0.1),
        request(16, 0.1),
        request(17, 0.2),
        seconds=20.0,
    )
    object.__setattr__(outcome, 'kinds', ('PUT', 'DELETE'))
    return outcome


def row(case: str, turn: int = 0, mover: str = SHARDMW, **also) -> dict:
    figures = {
        'case': case,
        'replicas': 1,
        'turn': turn,
        'mover': mover,
        'former': 0,
        'shards': 4,
        'rows_moved': CHANGE.rows_moved,
        'rows_per_second': 20_000.0,
        'seconds': CHANGE.seconds,
        'waits_seconds': CHANGE.waits_seconds,
        'servers_processor': 2.5,
        'command_processor': 1.5,
        'phases': {each.name: each.seconds for each in CHANGE.phases},
        'change': CHANGE._asdict(),
    }
    return json.loads(json.dumps(figures | also))


def row_with_clients(moving: float, turn: int = 0, **also) -> dict:
    parts = runs_of_parts(load(moving), CHANGE).items()
    figures = {
        'carried_before': 200.0,
        'carried_after': 150.0,
        'rate': 90.0,
        'refused': 0,
        'errors': {},
        'seconds_before': 5.0,
        'point_seconds': 2,
        'points': points_of(load(moving), 2),
        **{part: run.as_json() for part, run in parts},
    }
    return row(CLIENTS, turn, **(figures | also))


def table(rows: list[dict], title: str) -> list[dict[str, str]]:
    """Return the cells of the table whose title begins like this."""
    tables = PARAMETERS.tables({'rows': rows})
    (found,) = (each for each in tables if each.title.startswith(title))
    return cells(found)


def test_shard_counts_go_there_and_back():
    assert Reshard(shards=(4, 32)).changes == [
        *((0, 4), (4, 32), (32, 4), (4, 0)),
    ]
    assert PARAMETERS.changes == [(0, 4), (4, 0)]


def test_swifts_sharder_splits_a_plain_container_into_each_count():
    there_and_back = (SHARDMW, Reshard().changes)
    of_swift = [(SWIFT, [(0, 4)]), (SWIFT, [(0, 32)])]
    assert [*Reshard().ways(IDLE)] == [there_and_back, *of_swift]
    assert [*Reshard().ways(BOUNDED)] == [there_and_back]


def test_container_servers_have_the_filter_only_if_that_is_asked_for():
    setting = f'{CONTAINER_FILTER}.use'
    assert setting in Reshard().replicated(1).settings
    with_filter = Reshard(container_filter=True)
    assert setting not in with_filter.replicated(1).settings


def test_each_replica_of_the_cluster_has_a_device():
    options = Reshard().replicated(3)
    assert (options.replicas, options.devices) == (3, 3)


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


def test_a_change_waits_while_it_neither_moves_rows_nor_settles():
    assert CHANGE.waits_seconds == 3.5


def test_a_change_without_rows_has_no_rate_and_no_cost_of_a_row():
    idle = Change(0.0, 2.0, (moment(1.0, 'announced', 0),))
    assert idle.rows_per_second is None
    assert idle.per_rows(1.0, 100) is None
    assert CHANGE.per_rows(2.02, 100) == pytest.approx(2.0)


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
    parts = runs_of_parts(load(0.3), CHANGE)
    admitted = {part: run.summary.admitted for part, run in parts.items()}
    assert admitted == {BEFORE: 3, MOVING: 1, SETTLING: 1, AFTER: 2}
    assert parts[MOVING].summary.errors == {'503': 1}
    assert parts[MOVING].summary.latency.p99_ms == pytest.approx(300)


def test_a_change_by_swifts_sharder_does_not_settle():
    moments = (moment(1.0, MOVING, 0), moment(10.0, MOVING, 9))
    split = Change(1005.0, 10.0, moments)
    assert [*runs_of_parts(load(0.3), split)] == [BEFORE, MOVING, AFTER]
    assert split.waits_seconds == 1.0


def test_points_have_latencies_of_writes():
    points = points_of(load(0.3), 2)
    assert [each['seconds'] for each in points] == [*range(1, 20, 2)]
    assert points[4]['writes']['p50_ms'] == pytest.approx(300)
    assert points[4]['reads']['p50_ms'] is None


def test_rounds_of_a_change_are_one_row_with_median_and_range():
    rates = (12_000.0, 15_000.0, 13_000.0)
    rows = [
        row(IDLE, turn, rows_per_second=rate)
        for turn, rate in enumerate(rates)
    ]
    rows.append(row(IDLE, mover=SWIFT, rows_per_second=44_000.0))
    shardmw, swift = table(rows, 'Changes without clients')
    assert (shardmw['change'], shardmw['by']) == ('plain to 4', SHARDMW)
    assert shardmw['rows/s'] == '13,000'
    assert shardmw['waits s'] == '3.50'
    assert (swift['by'], swift['rows/s']) == (SWIFT, '44,000')
    assert len(table(rows, 'Each round')) == 4


def test_changes_with_other_replicas_have_rows_of_their_own():
    rows = [row(IDLE, replicas=count) for count in (1, 2, 3)]
    found = table(rows, 'Changes without clients')
    assert [each['replicas'] for each in found] == ['1', '2', '3']


def test_the_overview_has_a_change_without_and_with_clients_in_one_row():
    rows = [
        *(row(IDLE), row(IDLE, replicas=2), row(IDLE, mover=SWIFT)),
        *(row_with_clients(0.1), row_with_clients(0.3, 1, refused=2)),
    ]
    with_clients, replicas, swift = table(rows, 'Overview')
    assert with_clients['rows/s'] == '20,000'
    assert with_clients['p99 PUT'] == '2.00 (1.00 to 3.00)'
    assert with_clients['p99 DELETE'] == '—'
    assert with_clients['refused or failed'] == '2'
    assert (replicas['replicas'], replicas['p99 PUT']) == ('2', '—')
    assert (swift['by'], swift['refused or failed']) == (SWIFT, '—')


def test_the_overview_without_clients_has_no_latencies():
    (only,) = table([row(IDLE)], 'Overview')
    assert 'p99 PUT' not in only


def test_each_round_with_clients_shows_what_was_sent_and_failed():
    rows = [row_with_clients(0.1), row_with_clients(0.1, 1, errors={'503': 1})]
    good, bad = table(rows, 'Changes with clients')
    assert (good['sent/s'], good['refused']) == ('90.0', '0')
    assert (good['errors'], bad['errors']) == ('0', '1 × 503')


def test_the_p99_of_each_kind_is_compared_with_before_round_by_round():
    rows = [
        row_with_clients(moving, turn)
        for turn, moving in enumerate((0.1, 0.3, 0.2))
    ]
    puts, deletes = table(rows, 'Latency')
    assert (puts['request'], deletes['request']) == ('PUT', 'DELETE')
    assert puts['moving / before'] == '2.00'
    assert puts['interval'] == '1.00 to 3.00 (75%)'
    assert puts['settling / before'] == '1.00'
    assert deletes['moving / before'] == '—'


def test_a_goal_is_judged_by_the_worst_change():
    slow = row(IDLE, rows_per_second=11_000.0, waits_seconds=9.5)
    late = row(IDLE, waits_seconds=10.5)
    rate, waits, ratio, failed = goals_of([[slow], [late]])
    assert (rate.found, rate.is_met) == (11_000.0, False)
    assert (waits.found, waits.is_met) == (10.5, False)
    assert (ratio.found, failed.found) == (None, None)


def test_goals_with_clients_are_the_highest_ratio_and_no_failure():
    quick, slow = row_with_clients(0.1), row_with_clients(0.3, refused=2)
    _, _, ratio, failed = goals_of([[quick], [slow]])
    assert (ratio.found, ratio.is_met) == (pytest.approx(3.0), False)
    assert (failed.found, failed.is_met) == (2, False)
    assert all(each.is_met for each in goals_of([[quick]])[2:])


def test_a_goal_that_was_not_measured_is_not_met():
    assert not Goal('rows/s', 12_000, None, is_least=True).is_met


def test_goals_are_those_of_shardmw_with_the_first_number_of_replicas():
    rows = [
        row(IDLE),
        row(IDLE, replicas=3, rows_per_second=1.0),
        row(IDLE, mover=SWIFT, rows_per_second=1.0),
    ]
    rate = table(rows, 'Goals')[0]
    assert (rate['worst change'], rate['met']) == ('20,000', 'yes')


def test_changes_with_clients_are_plotted_with_their_phases():
    rows = [row(IDLE), row_with_clients(0.3), row_with_clients(0.3, 1)]
    (latencies,) = PARAMETERS.plots({'rows': rows})
    assert latencies.name == f'latency-clients-{SHARDMW}-0-4'
    assert [band.label for band in latencies.bands] == [
        *('starting', 'announced', 'moving', 'settling', 'done'),
    ]
    assert (latencies.bands[2].begin, latencies.bands[2].end) == (8.0, 12.0)
    assert latencies.bands[-1].end == 19.0
    assert [each.label for each in latencies.series] == [
        *('writes p99', 'writes p50'),
    ]
    assert 'writes p99' in alternative(latencies)


def test_a_run_that_has_not_begun_has_neither_tables_nor_plots():
    assert PARAMETERS.tables({'rows': []}) == []
    assert PARAMETERS.plots({'rows': []}) == []
