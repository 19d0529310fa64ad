# SPDX-License-Identifier: Apache-2.0
"""Requests to all primary servers of a container."""

import time

import pytest
from swift.common.exceptions import ConnectionTimeout
from swift.common.header_key_dict import HeaderKeyDict

from shardmw.backend import nodes
from shardmw.backend.answers import Answer
from shardmw.backend.nodes import (
    DELETE_TIMESTAMP,
    NO_ANSWER,
    PUT_TIMESTAMP,
    ask_primaries,
    replica_of,
)
from shardmw.core.evidence import Replica, Said
from shardmw.swift.concurrency import sleep
from test.unit.fakeswift import ACCOUNT

PATH = f'/{ACCOUNT}/c'
FOREVER = 60

ALIVE = Answer(None, '204 No Content', HeaderKeyDict(), [])
MISSING = Answer(None, '404 Not Found', HeaderKeyDict(), [])
REDIRECTED = Answer(None, '301 Moved Permanently', HeaderKeyDict(), [])
DELETED = MISSING._replace(headers=HeaderKeyDict({DELETE_TIMESTAMP: '7.0'}))


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
            return self.answers[node['id']]

        monkeypatch.setattr(nodes, 'ask_node', ask_node)
        monkeypatch.setattr(nodes, 'SLOW_SECONDS', 0.05)
        return seconds

    @pytest.fixture(autouse=True)
    def answers(self) -> None:
        self.answers = [ALIVE] * 3

    def read(self, replicated, waits: bool = False) -> list[int]:
        return statuses(
            ask_primaries(
                replicated,
                {},
                ACCOUNT,
                'c',
                'HEAD',
                needs_all=False,
                waits=waits,
            )
        )

    @pytest.mark.parametrize('second', [ALIVE, DELETED, REDIRECTED])
    def test_is_not_waited_for_if_a_majority_knows(
        self, replicated, seconds, second
    ):
        self.answers[2] = second
        seconds[1] = FOREVER
        started = time.monotonic()
        assert 503 in self.read(replicated)
        assert time.monotonic() - started < FOREVER / 2

    def test_is_waited_for_by_a_read_without_a_majority(
        self, replicated, seconds
    ):
        seconds[1] = seconds[2] = 0.1
        assert self.read(replicated) == [204, 204, 204]

    def test_is_waited_for_if_fast_ones_have_no_database(
        self, replicated, seconds
    ):
        self.answers[1] = self.answers[2] = MISSING
        seconds[0] = 0.1
        assert self.read(replicated) == [204, 404, 404]

    def test_is_waited_for_by_a_read_that_waits(self, replicated, seconds):
        seconds[1] = 0.1
        assert self.read(replicated, waits=True) == [204, 204, 204]

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


class TestReplicaOf:
    """An answer of Swift's container server."""

    def head(self, swift) -> Replica:
        (answer,) = ask_primaries(swift, {}, ACCOUNT, 'c', 'HEAD')
        return replica_of(answer)

    def test_of_a_container_is_alive(self, swift):
        swift.put_container(PATH, {'X-Timestamp': '7.00000'})
        assert self.head(swift) == Replica(Said.ALIVE, put=7)

    def test_tells_how_many_rows_there_are(self, swift):
        swift.put_container(PATH)
        swift.put_row(f'{PATH}/o')
        assert self.head(swift).objects == 1

    def test_of_a_deleted_container_tells_when(self, swift):
        swift.put_container(PATH, {'X-Timestamp': '7.00000'})
        swift.direct('DELETE', PATH, {'X-Timestamp': '9.50000'})
        assert self.head(swift) == Replica(Said.DELETED, deleted=9.5)

    def test_of_a_container_that_was_put_again_tells_of_the_deletion(
        self, swift
    ):
        swift.put_container(PATH, {'X-Timestamp': '7.00000'})
        swift.direct('DELETE', PATH, {'X-Timestamp': '9.50000'})
        swift.put_container(PATH, {'X-Timestamp': '11.00000'})
        assert self.head(swift) == Replica(Said.ALIVE, put=11, deleted=9.5)

    def test_without_a_database_is_missing(self, swift):
        assert self.head(swift) == Replica(Said.MISSING)

    def test_of_a_lost_disk_is_missing_whatever_was_there(self, swift):
        swift.put_container(PATH)
        swift.lose(ACCOUNT, 'c', 0)
        assert self.head(swift) == Replica(Said.MISSING)

    def test_of_a_server_that_fails_says_nothing(self, swift):
        swift.servers.broken = {PATH}
        assert self.head(swift) == Replica(Said.SILENT)

    def test_of_a_server_that_is_away_says_nothing(self, swift):
        swift.servers.away = {'d0'}
        assert self.head(swift) == Replica(Said.SILENT)

    def test_without_times_is_alive_and_was_never_deleted(self):
        assert replica_of(ALIVE) == Replica(Said.ALIVE, put=1)

    def test_is_read_without_the_offset_of_a_time(self):
        headers = HeaderKeyDict(
            {
                PUT_TIMESTAMP: '0000000007.00000_00000000000000a1',
                DELETE_TIMESTAMP: '0000000005.00000_00000000000000a1',
            }
        )
        answer = ALIVE._replace(headers=headers)
        assert replica_of(answer) == Replica(Said.ALIVE, put=7, deleted=5)


def test_a_server_that_refuses_connections_is_no_answer(
    replicated, monkeypatch
):
    def ask_node(*_args, **_kwargs):
        raise ConnectionTimeout

    monkeypatch.setattr(nodes, 'ask_node', ask_node)
    answers = ask_primaries(replicated, {}, ACCOUNT, 'c', 'HEAD')
    assert statuses(answers) == [503, 503, 503]
