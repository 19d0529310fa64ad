# SPDX-License-Identifier: Apache-2.0
"""Requests to all primary servers of a container."""

import time

import pytest
from swift.common.exceptions import ConnectionTimeout
from swift.common.header_key_dict import HeaderKeyDict

from shardmw.backend import nodes
from shardmw.backend.answers import Answer
from shardmw.backend.concurrency import sleep
from shardmw.backend.nodes import NO_ANSWER, ask_primaries, is_majority
from test.unit.fakeswift import ACCOUNT

PATH = f'/{ACCOUNT}/c'
FOREVER = 60


def statuses(answers: list[Answer]) -> list[int]:
    return sorted(answer.status for answer in answers)


class TestAskPrimaries:
    @pytest.fixture(autouse=True)
    def container(self, replicated):
        replicated.put_container(PATH)
        replicated.servers.asked.clear()

    def test_asks_every_replica(self, replicated):
        answers = ask_primaries(replicated, {}, ACCOUNT, 'c', 'HEAD')
        assert statuses(answers) == [204, 204, 204]
        assert sorted(replicated.servers.asked) == [
            (f'd{i}', 'HEAD', PATH) for i in range(3)
        ]

    @pytest.mark.parametrize('name', ['a b', '☃', 'c%41', '\0versions\0c'])
    def test_asks_for_containers_with_any_name(self, replicated, name):
        replicated.put_container(f'/{ACCOUNT}/{name}')
        answers = ask_primaries(replicated, {}, ACCOUNT, name, 'HEAD')
        assert statuses(answers) == [204, 204, 204]

    def test_gives_a_503_for_a_replica_that_is_away(self, replicated):
        replicated.servers.away = {'d1'}
        answers = ask_primaries(replicated, {}, ACCOUNT, 'c', 'HEAD')
        assert statuses(answers) == [204, 204, 503]

    def test_keeps_the_answers_of_those_that_fail(self, replicated):
        replicated.servers.broken = {PATH}
        answers = ask_primaries(replicated, {}, ACCOUNT, 'c', 'HEAD')
        assert statuses(answers) == [500, 500, 500]

    def test_sends_headers_and_a_body(self, replicated):
        headers = {
            'X-Backend-Storage-Policy-Index': '0',
            'Content-Type': 'application/json',
        }
        answers = ask_primaries(
            replicated, {}, ACCOUNT, 'c', 'UPDATE', headers, b'not JSON'
        )
        assert statuses(answers) == [400, 400, 400]
        answers = ask_primaries(
            replicated, {}, ACCOUNT, 'c', 'UPDATE', headers, b'[]'
        )
        assert statuses(answers) == [202, 202, 202]

    def test_counts_errors_against_the_server(self, replicated):
        replicated.servers.away = {'d1'}
        ask_primaries(replicated, {}, ACCOUNT, 'c', 'HEAD')
        limiter = replicated.error_limiter
        _, node, _ = replicated.container_ring.nodes
        assert limiter.stats[limiter.node_key(node)]['errors'] == 1

    def test_identifies_the_clients_request(self, replicated, monkeypatch):
        seen = []

        def ask_node(_app, _node, _part, _method, _path, headers, **_):
            seen.append(headers)
            return NO_ANSWER

        monkeypatch.setattr(nodes, 'ask_node', ask_node)
        env = {'swift.trans_id': 'tx7'}
        ask_primaries(replicated, env, ACCOUNT, 'c', 'PUT')
        assert {headers['X-Trans-Id'] for headers in seen} == {'tx7'}
        assert len({headers['X-Timestamp'] for headers in seen}) == 1


class TestSlowReplica:
    @pytest.fixture(autouse=True)
    def seconds(self, monkeypatch) -> dict[int, float]:
        """Delay the answer of each replica by a number of seconds."""
        seconds = {0: 0, 1: 0, 2: 0}

        def ask_node(_app, node, *_args, **_kwargs):
            sleep(seconds[node['id']])
            return Answer(None, '204 No Content', HeaderKeyDict(), [])

        monkeypatch.setattr(nodes, 'ask_node', ask_node)
        monkeypatch.setattr(nodes, 'SLOW_SECONDS', 0.05)
        return seconds

    def test_is_not_waited_for_by_a_read(self, replicated, seconds):
        seconds[1] = FOREVER
        started = time.monotonic()
        answers = ask_primaries(
            replicated, {}, ACCOUNT, 'c', 'HEAD', needs_all=False
        )
        assert time.monotonic() - started < FOREVER / 2
        assert statuses(answers) == [204, 204, 503]

    def test_is_waited_for_by_a_read_without_a_majority(
        self, replicated, seconds
    ):
        seconds[1] = seconds[2] = 0.1
        answers = ask_primaries(
            replicated, {}, ACCOUNT, 'c', 'HEAD', needs_all=False
        )
        assert is_majority(answers, 3)

    def test_is_waited_for_by_a_write(self, replicated, seconds):
        seconds[1] = 0.1
        answers = ask_primaries(replicated, {}, ACCOUNT, 'c', 'UPDATE')
        assert statuses(answers) == [204, 204, 204]


class TestErrorLimitedReplica:
    @pytest.fixture(autouse=True)
    def container(self, replicated):
        replicated.put_container(PATH)
        replicated.servers.asked.clear()
        replicated.error_limiter.limit(replicated.container_ring.nodes[1])

    def test_is_not_asked_by_a_read(self, replicated):
        answers = ask_primaries(
            replicated, {}, ACCOUNT, 'c', 'HEAD', needs_all=False
        )
        assert statuses(answers) == [204, 204, 503]
        asked = [device for device, _, _ in replicated.servers.asked]
        assert sorted(asked) == ['d0', 'd2']

    def test_is_asked_by_a_write(self, replicated):
        answers = ask_primaries(replicated, {}, ACCOUNT, 'c', 'PUT')
        assert len([a for a in answers if a.is_success]) == 3


@pytest.mark.parametrize(
    'told, replicas, expected',
    [
        ([204], 1, True),
        ([503], 1, False),
        ([204, 503], 2, False),
        ([204, 404], 2, True),
        ([204, 404, 503], 3, True),
        ([204, 503, 503], 3, False),
        ([204, 204, 503, 503], 4, False),
    ],
)
def test_most_replicas_are_more_than_half(told, replicas, expected):
    answers = [Answer(None, f'{status} X', {}, []) for status in told]
    assert is_majority(answers, replicas) is expected


def test_a_server_that_refuses_connections_is_no_answer(
    replicated, monkeypatch
):
    def ask_node(*_args, **_kwargs):
        raise ConnectionTimeout

    monkeypatch.setattr(nodes, 'ask_node', ask_node)
    answers = ask_primaries(replicated, {}, ACCOUNT, 'c', 'HEAD')
    assert statuses(answers) == [503, 503, 503]
