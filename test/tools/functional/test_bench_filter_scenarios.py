# SPDX-License-Identifier: Apache-2.0
"""Tiny runs of the scenarios of the filter's own cost; nothing is judged."""

import functools

import pytest

from test.tools.functional.benching import (
    csv_rows,
    own_cluster_is,
    result_of,
    run_here,
)

#: For each scenario, options that make it tiny, and its number of rows.
SCENARIOS = {
    'filter-cost': (
        ('--shards', '2', '--requests', '200', '--rounds', '1'),
        # the app alone; 2 containers with 5, 2 and 2 kinds of requests;
        # Swift's own limit
        5 + 2 * (5 + 2 + 2) + 2,
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
def measured(cluster, tmp_path_factory):
    """Return a function that runs a scenario, once for each name.

    It returns the scenario's output, its figures and the rows of its CSV.
    """

    @functools.cache
    def measured(name):
        folder = tmp_path_factory.mktemp(name)
        options, _ = SCENARIOS[name]
        with own_cluster_is(cluster):
            ran = run_here('scenario', name, *options, '--output', str(folder))
        assert ran.exit_code == 0, ran.output
        result = result_of(folder, f'scenario-{name}')
        assert result['complete']
        rows = csv_rows(folder, f'scenario-{name}')
        return ran.output, result['figures'], rows

    return measured


@pytest.mark.parametrize('name', SCENARIOS)
def test_a_scenario_is_measured(name, measured):
    printed, figures, rows = measured(name)
    _, count = SCENARIOS[name]
    assert len(figures['rows']) == len(rows) == count
    assert 'N = 2' in printed


def test_a_page_takes_processor_time_on_both_servers(measured):
    _, figures, _ = measured('listing-cost')
    for row in figures['rows']:
        assert row['proxy_us'] > 0
        assert row['container_us'] > 0


def test_each_counted_write_asks_memcached(measured):
    _, figures, _ = measured('filter-cost')
    asked = [
        sum(each['operations'].values()) / each['requests']
        for each in figures['rows']
        if each['limits'] == 'on, each write counted'
    ]
    assert asked
    assert min(asked) >= 1


def test_only_listings_read_the_shards(measured):
    _, figures, _ = measured('filter-cost')
    plain, sharded = (
        {
            each['method']: each['us']
            for each in figures['rows']
            if each['limits'] == 'off'
            and each['filters']
            and each['kind']['layout'] == layout
        }
        for layout in ('plain', 'sharded')
    )
    assert sharded['listing'] > 5 * plain['listing']
    assert sharded['listing'] > 10 * sharded['PUT'] > 10 * sharded['GET']
