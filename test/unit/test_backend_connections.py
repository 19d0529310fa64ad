# SPDX-License-Identifier: Apache-2.0
"""Connections that stay open between requests."""

import pytest

from shardmw.backend import connections as module
from shardmw.backend.connections import MOST_REQUESTS, Connection, Connections
from shardmw.swift.concurrency import sleep

SERVER = ('127.0.0.1', 6201)
OTHER = ('127.0.0.1', 6202)
MOST_IDLE = 3
SHORT_SECONDS = 0.05


class Http:
    is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def connections() -> Connections:
    return Connections(MOST_IDLE)


def keep(connections: Connections, count: int = 1) -> list[Http]:
    kept = [Http() for _ in range(count)]
    for http in kept:
        connections.keep(*SERVER, Connection(http))
    return kept


def test_no_connection_is_open_at_first(connections):
    assert connections.take(*SERVER) is None


def test_a_connection_serves_one_request_at_a_time(connections):
    first, second = keep(connections, 2)
    assert connections.take(*SERVER).http is second
    assert connections.take(*SERVER).http is first
    assert connections.take(*SERVER) is None


def test_a_connection_is_used_for_its_server_only(connections):
    keep(connections)
    assert connections.take(*OTHER) is None


def test_an_idle_connection_is_closed(connections, monkeypatch):
    monkeypatch.setattr(module, 'IDLE_SECONDS', SHORT_SECONDS)
    (idle,) = keep(connections)
    sleep(3 * SHORT_SECONDS)
    assert not idle.is_open
    assert connections.take(*SERVER) is None


def test_connections_that_are_kept_later_are_closed_in_time_too(
    connections, monkeypatch
):
    monkeypatch.setattr(module, 'IDLE_SECONDS', SHORT_SECONDS)
    for _ in range(2):
        (idle,) = keep(connections)
        sleep(3 * SHORT_SECONDS)
        assert not idle.is_open


def test_a_connection_that_is_used_in_time_stays_open(
    connections, monkeypatch
):
    monkeypatch.setattr(module, 'IDLE_SECONDS', 10 * SHORT_SECONDS)
    (http,) = keep(connections)
    for _ in range(4):
        sleep(4 * SHORT_SECONDS)
        connections.keep(*SERVER, connections.take(*SERVER))
    assert http.is_open


def test_the_number_of_idle_connections_is_bounded(connections):
    kept = keep(connections, MOST_IDLE + 1)
    assert [http.is_open for http in kept] == [True] * MOST_IDLE + [False]


def test_a_connection_is_closed_after_many_requests(connections):
    (http,) = keep(connections)
    for _ in range(MOST_REQUESTS - 1):
        assert http.is_open
        connections.keep(*SERVER, connections.take(*SERVER))
    assert not http.is_open
    assert connections.take(*SERVER) is None


def test_the_connections_of_a_server_can_be_closed(connections):
    kept = keep(connections, 2)
    connections.close(*OTHER)
    assert all(http.is_open for http in kept)
    connections.close(*SERVER)
    assert not any(http.is_open for http in kept)
    assert connections.take(*SERVER) is None
