# SPDX-License-Identifier: Apache-2.0
"""Scenarios of what the filter itself costs, in tiny; nothing is judged."""

import functools

import pytest

from test.functional.benching import csv_rows, result_of, run_bench

#: Of each: what makes it tiny, and how many rows that are.
SCENARIOS = {
    'filter-cost': (
        ('--shards', '2,4', '--requests', '20', '--rounds', '1')
        + ('-t', '2', '--objects', '10', '--cluster-shards', '2'),
        # the app alone; 3 containers with 4, 4 and 2 requests; Swift's limit
        4 + 3 * (4 + 4 + 2) + 2,
    ),
    'listing-cost': (
        ('--rows', '400', '--page', '100,20', '--shards', '2,3')
        + ('--pages', '2', '--rounds', '1'),
        3 * 2,
    ),
    'listing-memory': (
        ('--listings', '6', '--every', '2', '--page', '50')
        + ('--rows', '300', '--shards', '2'),
        1 + 3,
    ),
}


@pytest.fixture(scope='module')
def measured(tmp_path_factory):
    """Runs a scenario, once: ``(what it printed, its figures, its CSV)``."""

    @functools.cache
    def measured(name):
        folder = tmp_path_factory.mktemp(name)
        options, _ = SCENARIOS[name]
        ran = run_bench('scenario', name, *options, '--output', str(folder))
        assert ran.returncode == 0, ran.stderr
        result = result_of(folder, f'scenario-{name}')
        assert result['complete']
        rows = csv_rows(folder, f'scenario-{name}')
        return ran.stdout, result['figures'], rows

    return measured


@pytest.mark.parametrize('name', SCENARIOS)
def test_a_scenario_is_measured(name, measured):
    printed, figures, rows = measured(name)
    _, count = SCENARIOS[name]
    assert len(figures['rows']) == len(rows) == count
    assert 'N = 2' in printed


def test_servers_are_seen_to_answer_for_each_page(measured):
    _, figures, _ = measured('listing-cost')
    databases = {('plain', 1): 1, ('sharded', 2): 3, ('sharded', 3): 4}
    for row in figures['rows']:
        kind = row['kind']['layout'], row['kind']['parts']
        assert row['requests'] >= databases[kind] * row['pages']
        assert row['rows_given'] >= row['rows']
        assert row['proxy_us'] > 0
        assert row['container_us'] > 0


def test_memcached_is_counted_for_each_request(measured):
    _, figures, _ = measured('filter-cost')
    counted = figures['operations']
    # no limit and shardmw's on both containers, Swift's on the plain one
    assert len(counted) == 5 * 4
    assert all(sum(each['operations'].values()) > 0 for each in counted)
