# SPDX-License-Identifier: Apache-2.0
"""Tests of what object servers report about pending updates."""

import json

import pytest

from shardmw.reshard.async_pending import (
    CONCURRENCY,
    NAMED,
    STALE_SECONDS,
    backlog_text,
    problem_of,
)
from shardmw.swift.concurrency import Timeout

PROBLEM = 'object servers may have updates of containers to deliver: {}'


def counts(count: object, counted: object = 1000) -> bytes:
    values = {'async_pending': count, 'async_pending_last': counted}
    return json.dumps(values).encode()


@pytest.mark.parametrize(
    ('status', 'body', 'seconds', 'problem'),
    [
        (200, counts(0), 0, ''),
        (200, counts(0), STALE_SECONDS, ''),
        (200, counts(0), -60, ''),
        (200, counts(1234), 0, 'has 1,234'),
        (200, counts(0), STALE_SECONDS + 60, 'has counted them 16 min ago'),
        (200, counts(None, None), 0, 'has no count of them: does swift-'),
        (200, counts(None), 0, 'has no count of them: does swift-'),
        (200, counts('many'), 0, 'has no count of them: does swift-'),
        (200, b'[]', 0, 'has no count of them: does swift-'),
        (200, b'', 0, 'has no count of them: does swift-'),
        (400, b'', 0, 'has no filter recon: it answers 400'),
    ],
)
def test_only_a_recent_count_of_0_is_no_problem(
    status, body, seconds, problem
):
    found = problem_of(status, body, 1000 + seconds)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_the_servers_of_all_policies_are_asked(swift):
    assert backlog_text(swift) == PROBLEM.format(
        '127.0.0.1:3 has no count of them: does swift-recon-cron run there?'
    )
    swift.servers.count_updates(7)
    assert backlog_text(swift) == PROBLEM.format('127.0.0.1:3 has 7')
    swift.servers.count_updates(0)
    assert backlog_text(swift) == ''


def test_a_server_without_the_filter_is_named(swift):
    swift.servers.remove_recon()
    assert backlog_text(swift) == PROBLEM.format(
        '127.0.0.1:3 has no filter recon: it answers 400'
    )


def test_a_server_that_does_not_answer_is_named(swift):
    swift.servers.away.add('recon')
    assert backlog_text(swift) == PROBLEM.format('127.0.0.1:3 does not answer')


def test_few_of_many_servers_are_named(swift):
    swift.servers.count_updates(7)
    ring = swift.get_object_ring(0)
    ring.devs = [
        {'ip': f'127.0.0.{i}', 'port': 3} for i in range(1, NAMED + 3)
    ]
    assert backlog_text(swift).endswith('127.0.0.3:3 has 7; 2 more')


@pytest.mark.parametrize('count', [0, 2 * CONCURRENCY + 1])
def test_any_number_of_servers_is_asked(swift, count):
    swift.servers.count_updates(0)
    ring = swift.get_object_ring(0)
    ring.devs = [{'ip': f'127.0.0.{i}', 'port': 3} for i in range(count)]
    with Timeout(60):
        assert backlog_text(swift) == ''
