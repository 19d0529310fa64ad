# SPDX-License-Identifier: Apache-2.0
"""Scenarios that are loads on a cluster, in tiny; nothing is judged."""

import pytest

from test.functional.benching import (
    csv_rows,
    own_cluster_is,
    result_of,
    run_here,
)

TINY = ('--rounds', '1', '--seconds', '0.3', '--shards', '2')
TINY += ('--processes', '1')

#: Of each: what makes it tiny, and how many loads that are.
SCENARIOS = {
    'object-size': (
        (*TINY, '-t', '2', '-b', '4K,2M'),
        2 * 2,
    ),
    'concurrency': ((*TINY, '-t', '2', '-b', '2M'), 2 * 2),
    # from a plain disk, too
    'log-serving': (
        (*TINY, '-t', '2', '--objects', '1,3', '-b', '100K'),
        2 * 3,
    ),
    'listing-fairness': (
        (*TINY, '-t', '2', '--rate', '20', '--rows', '200', '--page', '50,7'),
        # for each page: while nobody lists, while each container is listed
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


def test_changes_of_layout_are_measured(cluster, tmp_path):
    options = ['--rows', '3000', '--shards', '2', '-t', '2', '--seconds', '1']
    options += ['--rows-per-second', '1000', '--cases', 'bounded']
    options += ['--settle-seconds', '0.5', '--info-cache-seconds', '1']
    options += ['--set', 'internal-client.node_timeout=3']
    options += ['--set', 'internal-client.conn_timeout=1']
    with own_cluster_is(cluster):
        ran = run_here(
            'scenario', 'reshard', *options, '--output', str(tmp_path)
        )
    assert ran.exit_code == 0, ran.output
    result = result_of(tmp_path, 'scenario-reshard')
    assert result['complete']
    rows = result['figures']['rows']
    assert [row['shards'] for row in rows] == [2, 0]
    for row in rows:
        assert row['rows_moved'] >= 3000
        assert row['rows_per_second'] > 0
        assert row['during']['summary']['errors'] == {}
        assert row['during']['summary']['refused'] == 0
    assert len(csv_rows(tmp_path, 'scenario-reshard')) == 2
    made = run_here('report', '--output', str(tmp_path))
    assert made.exit_code == 0, made.output
    assert 'Rates over time' in (tmp_path / 'report.html').read_text()


def test_all_scenarios_are_listed_with_a_line_each():
    ran = run_here('scenario', '--help')
    for name in (*SCENARIOS, 'container-growth', 'reshard', 'all'):
        assert f'\n  {name} ' in ran.output
