# SPDX-License-Identifier: Apache-2.0
"""Kinds of work and comparisons, with short loads.

Most run on the tests' cluster as if it were a user's own; their figures are
not judged.
"""

import signal
import time

import pytest
from shardmw_bench.targets.account import Account

from test.functional.conftest import USER, unique
from test.tools.functional.benching import (
    csv_rows,
    own_cluster_is,
    result_of,
    run_bench,
    run_here,
    run_on_terminal,
    start_bench,
)

SHORT = ('-t', '4', '--count', '40', '--shards', '0,2')
OBJECTS = ('--objects', '20', '-b', '1K')

#: Options that keep each kind of work short.
WORKS = {
    'write': (*SHORT, '-b', '1-4K'),
    'read': (*SHORT, *OBJECTS),
    'head': (*SHORT, *OBJECTS),
    'delete': ('-t', '4', '--shards', '0,2', *OBJECTS),
    'list': (*SHORT, '--rows', '30', '--page', '10,7', '--unordered'),
    'head-container': (*SHORT, '--rows', '30'),
    'mixed': (*SHORT, *OBJECTS, '--mix', 'write=50,delete=20,read=30'),
}


@pytest.fixture(scope='session')
def access(cluster) -> tuple[str, ...]:
    """Options that give access to the tests' cluster."""
    return (
        *('-A', cluster.auth_url),
        *('-U', USER, '-K', cluster.users[USER]),
    )


@pytest.fixture
def listed(client):
    """Return a function that lists the containers with a prefix."""

    def listed(prefix: str) -> list[str]:
        return client.listing(prefix=prefix).names()

    return listed


def wait_until(is_so, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, 'it never was'
        time.sleep(0.05)


@pytest.mark.parametrize('work', WORKS)
def test_work_is_measured_on_each_container_and_cleaned_up(
    work, access, listed, tmp_path
):
    name = unique('bench')
    ran = run_here(
        *(work, *WORKS[work], *access),
        *('--container', name, '--output', str(tmp_path)),
    )
    assert ran.exit_code == 0, ran.output
    result = result_of(tmp_path, f'workload-{work}')
    runs = result['figures']['runs']
    assert result['complete']
    assert {run['kind']['layout'] for run in runs} == {'plain', 'sharded'}
    assert all(run['summary']['admitted'] > 0 for run in runs)
    assert all(run['summary']['errors'] == {} for run in runs)
    assert len(csv_rows(tmp_path, f'workload-{work}')) == len(runs)
    assert f'{work}: clients 4' in ran.output
    # the servers of a remote cluster cannot be measured
    assert {run['processor_ms'] for run in runs} == {None}
    assert 'processor' not in ran.output
    assert listed(name) == []


def test_a_container_can_be_written_to_while_it_is_listed(
    access, client, tmp_path
):
    name = unique('bench')
    ran = run_here(
        *('list', '--seconds', '2', '--shards', '0', '--rows', '30', *access),
        *('--page', '10', '--writes-per-second', '20', '--no-cleanup'),
        *('--container', name, '--output', str(tmp_path)),
    )
    assert ran.exit_code == 0, ran.output
    (run,) = result_of(tmp_path, 'workload-list')['figures']['runs']
    assert run['summary']['errors'] == {}
    assert run['conditions']['writes/s'] == 20
    names = client.listing(name).names()
    assert len(names[:30]) == len([n for n in names if n.startswith('o')])
    assert 20 <= len(names[30:]) <= 50


def test_a_count_ends_a_load(access, tmp_path):
    run_here(
        *('write', '-t', '4', '--count', '9', '--shards', '0', *access),
        *('--output', str(tmp_path)),
    )
    (run,) = result_of(tmp_path, 'workload-write')['figures']['runs']
    assert run['summary']['offered'] == 9


def test_a_comparison_has_ratios_of_each_round(tmp_path):
    ran = run_bench(
        *('compare', 'listing', '-t', '2', '--seconds', '1'),
        *('--rows', '200', '--page', '50', '--native', '2', '--shards', '2'),
        *('--rounds', '2', '--name', 'tiny', '--output', str(tmp_path)),
    )
    assert ran.returncode == 0, ran.stderr
    runs = result_of(tmp_path, 'compare-list-tiny')['figures']['runs']
    order = [(run['turn'], run['kind']['layout']) for run in runs]
    assert order == [
        *((0, 'plain'), (0, 'native'), (0, 'sharded')),
        *((1, 'native'), (1, 'sharded'), (1, 'plain')),
    ]
    assert all(run['summary']['errors'] == {} for run in runs)
    for run in runs:
        done = run['summary']['done']
        assert run['rows_listed'] == pytest.approx(50 * done)
        # of at least a proxy and a container server
        assert 1 < run['processor_ms'] < 2000
    rows = csv_rows(tmp_path, 'compare-list-tiny')
    assert [float(row['processor_ms']) for row in rows] == [
        run['processor_ms'] for run in runs
    ]
    assert 'rate vs. plain' in ran.stdout
    assert 'CPU vs. plain' in ran.stdout
    assert 'CPU ms/request' in ran.stdout
    assert 'native, 2 ranges' in ran.stdout


def test_settings_are_applied_to_the_cluster(cluster, tmp_path):
    with own_cluster_is(cluster):
        ran = run_here(
            *('compare', 'head-container', '--seconds', '1', '--rows', '90'),
            *('--native', '0', '--shards', '2', '--rounds', '1'),
            *('--set', 'shardmw.head_cache_seconds=0'),
            *('--name', 'uncached', '--output', str(tmp_path)),
        )
    assert ran.exit_code == 0, ran.output
    result = result_of(tmp_path, 'compare-head-container-uncached')
    plain, sharded = result['figures']['runs']
    assert sharded['summary']['errors'] == {}
    # each HEAD asks all shards
    assert sharded['processor_ms'] > plain['processor_ms']


def test_no_cleanup_leaves_the_containers(access, listed, client, tmp_path):
    name = unique('left')
    ran = run_here(
        *('write', '-t', '2', '--count', '5', '--shards', '2', *access),
        *('--container', name, '--no-cleanup', '--output', str(tmp_path)),
    )
    assert ran.exit_code == 0, ran.output
    assert f'left there: {name}' in ran.output
    assert len(client.listing(name).json()) == 5


def test_an_interrupted_run_keeps_what_it_has_and_cleans_up(
    access, listed, client, tmp_path
):
    name = unique('interrupted')
    ran = start_bench(
        *('write', '-t', '4', '--seconds', '60', '--shards', '2', *access),
        *('--container', name, '--output', str(tmp_path)),
    )
    wait_until(lambda: client.get(name).status == 200)
    wait_until(lambda: client.get(name).body)
    ran.send_signal(signal.SIGINT)
    said, error = ran.communicate(timeout=120)
    assert ran.returncode == 128 + signal.SIGINT
    assert error == 'Interrupted\n'
    assert 'interrupted: ' in said
    result = result_of(tmp_path, 'workload-write')
    assert not result['complete']
    (run,) = result['figures']['runs']
    assert run['summary']['admitted'] > 0
    assert run['summary']['seconds'] < 60
    assert len(csv_rows(tmp_path, 'workload-write')) == 1
    assert listed(name) == []


def test_progress_is_shown_on_a_terminal(access, tmp_path):
    code, shown = run_on_terminal(
        *('write', '-t', '4', '--seconds', '1.2', '--shards', '2', *access),
        *('--output', str(tmp_path)),
    )
    assert code == 0
    for figure in ('ops/s', 'p50 ', 'p95 ', 'p99 ', 'errors'):
        assert shown.count(figure) > 1, shown
    assert '0:00:0' in shown


def test_variables_alone_do_not_select_a_cluster(cluster, listed, tmp_path):
    with own_cluster_is(cluster):
        ran = run_here(
            *('write', '-t', '2', '--count', '2', '--shards', '0'),
            *('--output', str(tmp_path)),
            ST_AUTH=cluster.auth_url,
            ST_USER=USER,
            ST_KEY=cluster.users[USER],
        )
    assert ran.exit_code == 0, ran.output
    assert (
        result_of(tmp_path, 'workload-write')['provenance']['cluster'] is None
    )


def assert_fails_with(ran, message: str) -> None:
    assert ran.exit_code == 1
    assert ran.stderr.count('\n') == 1, ran.stderr
    assert message in ran.stderr


def test_refused_access_is_reported_in_one_line(cluster, tmp_path):
    ran = run_here(
        *('write', '-A', cluster.auth_url, '--output', str(tmp_path)),
        ST_USER=USER,
        ST_KEY='wrong',
    )
    assert_fails_with(ran, f"refuses the user '{USER}' (401)")


def test_a_refused_token_is_reported_in_one_line(cluster, tmp_path):
    ran = run_here(
        *('write', '--os-storage-url', cluster.storage_url),
        *('--os-auth-token', 'AUTH_old', '--output', str(tmp_path)),
    )
    assert_fails_with(ran, 'refuses the token (401)')


def test_an_unreachable_cluster_is_reported_without_a_memcached(tmp_path):
    ran = run_here(
        *('write', '-A', 'http://127.0.0.1:9/auth/v1.0'),
        *('-U', USER, '-K', 'any', '--output', str(tmp_path)),
        PATH='',
    )
    assert_fails_with(ran, 'Connection refused')


def test_a_load_that_failed_entirely_is_shown_and_is_a_failure(
    access, listed, tmp_path
):
    name = unique('bench')
    ran = run_here(
        *('write', '-t', '2', '--count', '4', '-b', '6G', '--shards', '2'),
        *(*access, '--container', name, '--output', str(tmp_path)),
    )
    assert ran.exit_code == 1
    assert 'N = 2: everything failed (4 × 413)' in ran.stderr
    assert len(result_of(tmp_path, 'workload-write')['figures']['runs']) == 1
    assert listed(name) == []


def test_a_container_in_use_is_left_alone(access, client, plain, tmp_path):
    client.put(plain, 'mine', b'mine')
    ran = run_here(
        *('write', '--shards', '0', '--container', plain, *access),
        *('--output', str(tmp_path)),
    )
    assert_fails_with(ran, f'container {plain} is in use')
    assert client.get(plain, 'mine').body == b'mine'


def test_the_url_of_a_container_is_refused(cluster, client, plain, tmp_path):
    token = Account.of_cluster(cluster).token
    ran = run_here(
        *('write', '--shards', '0', '--output', str(tmp_path)),
        *('--os-storage-url', f'{cluster.storage_url}/{plain}'),
        *('--os-auth-token', token),
    )
    assert_fails_with(ran, f'/{plain} is no account')
    assert client.listing(plain).names() == []


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('--page', '10001'), 'gives up to 10000 rows a page'),
        (('--rows', '1e11'), '10,000,000,000 are the most'),
        (('--directories', '10001'), '10,000 are the most'),
        (('-K', 'a\nb'), 'no header of HTTP takes'),
    ],
)
def test_options_out_of_bounds_are_reported_in_one_line(
    access, arguments, message, tmp_path
):
    ran = run_here(
        *('list', '--shards', '0', *access, *arguments),
        *('--output', str(tmp_path)),
    )
    assert_fails_with(ran, message)
