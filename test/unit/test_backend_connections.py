# SPDX-License-Identifier: Apache-2.0
"""Connections that stay open between requests."""

import pytest

from shardmw.backend import connections as module
from shardmw.backend.connections import (
    IDLE_SECONDS,
    MOST_IDLE,
    MOST_REQUESTS,
    Connection,
    Connections,
)
from test.unit.clocks import Clock

SERVER = ('127.0.0.1', 6201)
OTHER = ('127.0.0.1', 6202)


class Wire:
    is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, 'time', clock)
    return clock


@pytest.fixture
def connections(clock) -> Connections:
    return Connections()


def keep(connections: Connections, count: int = 1) -> list[Wire]:
    wires = [Wire() for _ in range(count)]
    for wire in wires:
        connections.keep(*SERVER, Connection(wire))
    return wires


def test_there_is_none_at_first(connections):
    assert connections.take(*SERVER) is None


def test_each_is_given_to_one_request_in_turns(connections):
    first, second = keep(connections, 2)
    assert connections.take(*SERVER).wire is first
    assert connections.take(*SERVER).wire is second
    assert connections.take(*SERVER) is None


def test_they_are_those_of_the_server(connections):
    keep(connections)
    assert connections.take(*OTHER) is None


def test_one_that_was_idle_for_too_long_is_closed(connections, clock):
    (old,) = keep(connections)
    clock.now += IDLE_SECONDS + 1
    (new,) = keep(connections)
    assert connections.take(*SERVER).wire is new
    assert not old.is_open


def test_no_more_than_some_are_kept(connections):
    wires = keep(connections, MOST_IDLE + 1)
    assert [wire.is_open for wire in wires] == [True] * MOST_IDLE + [False]


def test_one_that_was_used_often_is_closed(connections):
    (wire,) = keep(connections)
    for _ in range(MOST_REQUESTS - 1):
        assert wire.is_open
        connections.keep(*SERVER, connections.take(*SERVER))
    assert not wire.is_open
    assert connections.take(*SERVER) is None


def test_those_of_a_server_can_be_closed(connections):
    wires = keep(connections, 2)
    connections.close(*OTHER)
    assert all(wire.is_open for wire in wires)
    connections.close(*SERVER)
    assert not any(wire.is_open for wire in wires)
    assert connections.take(*SERVER) is None
