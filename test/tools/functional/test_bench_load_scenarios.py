# SPDX-License-Identifier: Apache-2.0
"""Tiny runs of the scenarios with loads on a cluster; nothing is judged."""

import pytest

from test.tools.functional.benching import (
    csv_rows,
    own_cluster_is,
    result_of,
    run_here,
)

TINY = ('--rounds', '1', '--seconds', '0.3', '--shards', '2')
TINY += ('--processes', '1')

#: For each scenario, options that make it tiny, and its number of loads.
SCENARIOS = {
    'object-size': (
        (*TINY, '-t', '2', '-b', '4K,2M'),
        2 * 2,
    ),
    'concurrency': ((*TINY, '-t', '2', '-b', '2M'), 2 * 2),
    # a plain disk is measured, too
    'log-serving': (
        (*TINY, '-t', '2', '--objects', '1,3', '-b', '100K'),
        2 * 3,
    ),
    'listing-fairness': (
        (*TINY, '-t', '2', '--rate', '20', '--rows', '200', '--page', '50,7'),
        # for each page size: without a listing, and while each is listed
        2 * (1 + 2 * 2),
    ),
    'small-objects': ((*TINY, '-t', '2', '--objects', '20'), 2 * 2),
    # with a limit and without, on two clusters at once
    'container-sharding': ((*TINY, '-t', '4', '--limit', '50'), 2 * 2),
}


@pytest.mark.parametrize('name', SCENARIOS)
def test_a_scenario_is_measured(name, cluster, tmp_path):
    options, loads = SCENARIOS[name]
    with own_cluster_is(cluster):
        ran = run_here('scenario', name, *options, '--output', str(tmp_path))
    assert ran.exit_code == 0, ran.output
    result = result_of(tmp_path, f'scenario-{name}')
    runs = result['figures']['runs']
    assert result['complete']
    assert len(runs) == loads
    assert all(run['summary']['errors'] == {} for run in runs)
    assert len(csv_rows(tmp_path, f'scenario-{name}')) == loads
    assert 'N = 2' in ran.output


def test_changes_of_layout_are_measured_beside_swifts_sharder(
    cluster, tmp_path
):
    options = ['--client-rows', '2000', '--shards', '2', '--cases', 'clients']
    options += ['--rounds', '1', '--seconds', '1', '-t', '2']
    with own_cluster_is(cluster):
        ran = run_here(
            'scenario', 'reshard', *options, '--output', str(tmp_path)
        )
    assert ran.exit_code == 0, ran.output
    result = result_of(tmp_path, 'scenario-reshard')
    assert result['complete']
    rows = result['figures']['rows']
    assert [(row['mover'], row['shards']) for row in rows] == [
        *(('shardmw-admin', 2), ('shardmw-admin', 0)),
        ('container-sharder', 2),
    ]
    for row in rows:
        assert row['rows_moved'] >= 2000
        assert row['rows_per_second'] > 0
        assert row['servers_processor'] > 0
        assert row['command_processor'] > 0
        assert row['rate'] < row['carried_before']
        assert (row['errors'], row['refused']) == ({}, 0)
    assert len(csv_rows(tmp_path, 'scenario-reshard')) == 3
    made = run_here('report', '--output', str(tmp_path))
    assert made.exit_code == 0, made.output
    assert 'Latency over time' in (tmp_path / 'report.html').read_text()


def test_help_lists_every_scenario():
    ran = run_here('scenario', '--help')
    for name in (*SCENARIOS, 'container-growth', 'reshard', 'all'):
        assert f'\n  {name} ' in ran.output
