# SPDX-License-Identifier: Apache-2.0
"""The network of the cells of `net`, and its faults."""

import contextlib
import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from test.faults import network
from test.faults.netrules import CLIENT, NODES, PROXIES, Sides, address_of

PORT = 6200
#: Less than a retransmission of the beginning of a connection takes.
LOST_SECONDS = 0.5
END_SECONDS = 5
SIDES = Sides(PROXIES, NODES)
FIRST, SECOND, THIRD = NODES
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    bool(network.why_not()), reason='no network can be made'
)


class Hosts(contextlib.ExitStack):
    """Connections between the hosts; each host has a server."""

    def __enter__(self) -> 'Hosts':
        super().__enter__()
        self.enter_context(network.network())
        self._servers = {}
        for host in (*PROXIES, *NODES):
            with network.joined(host):
                address = (address_of(host), PORT)
                server = self.enter_context(socket.create_server(address))
                self._servers[host] = server
        return self

    def connect(self, host: str, other: str) -> tuple:
        """Return both ends of a new connection.

        :raises OSError: if there is none
        """
        with network.joined(host):
            begun = socket.create_connection(
                self._servers[other].getsockname(), LOST_SECONDS
            )
        accepted, _ = self._servers[other].accept()
        accepted.settimeout(LOST_SECONDS)
        return self.enter_context(begun), self.enter_context(accepted)

    def reaches(self, host: str, other: str) -> bool:
        """Return True if a new connection passes bytes both ways."""
        try:
            begun, accepted = self.connect(host, other)
        except TimeoutError:
            return False
        return passes(begun, accepted) and passes(accepted, begun)

    def reached(self, host: str) -> set[str]:
        """Return the other hosts that a host reaches."""
        others = {*self._servers} - {host}
        return {other for other in others if self.reaches(host, other)}


def passes(sender: socket.socket, receiver: socket.socket) -> bool:
    """Return True if bytes pass in a direction of a connection."""
    sender.sendall(b'bytes')
    try:
        return receiver.recv(5) == b'bytes'
    except TimeoutError:
        return False


@pytest.fixture
def hosts():
    with Hosts() as hosts:
        yield hosts


def test_all_hosts_reach_each_other(hosts):
    for host in (*PROXIES, *NODES):
        assert hosts.reached(host) == {*PROXIES, *NODES} - {host}


def test_a_half_is_cut_off_from_all_but_clients(hosts):
    network.fail('halved', SIDES)
    assert hosts.reached(PROXIES[0]) == {FIRST}
    assert hosts.reached(FIRST) == {PROXIES[0]}
    assert hosts.reached(PROXIES[1]) == {SECOND, THIRD}
    assert hosts.reached(CLIENT) == {*PROXIES, *NODES}
    network.heal()
    assert hosts.reaches(PROXIES[0], SECOND)


def test_what_a_node_sends_to_proxies_is_lost_in_one_direction(hosts):
    begun, accepted = hosts.connect(PROXIES[0], FIRST)
    network.fail('oneway', SIDES)
    assert passes(begun, accepted)
    assert not passes(accepted, begun)
    begun, accepted = hosts.connect(PROXIES[0], FIRST)
    assert passes(begun, accepted)
    assert not passes(accepted, begun)
    assert hosts.reached(PROXIES[1]) == {PROXIES[0], SECOND, THIRD}
    assert hosts.reached(FIRST) == {SECOND, THIRD}


def test_nodes_are_cut_off_from_each_other(hosts):
    network.fail('replication', SIDES)
    assert hosts.reached(FIRST) == {*PROXIES}
    assert hosts.reached(PROXIES[0]) == {PROXIES[1], *NODES}


def test_proxies_reach_one_node(hosts):
    network.fail('one', SIDES)
    assert hosts.reached(PROXIES[0]) == {PROXIES[1], FIRST}
    assert hosts.reached(SECOND) == {FIRST, THIRD}


def test_connections_become_half_open(hosts):
    begun, accepted = hosts.connect(PROXIES[0], FIRST)
    network.fail('halfopen', SIDES)
    assert not passes(begun, accepted)
    assert not passes(accepted, begun)
    assert hosts.reaches(PROXIES[0], FIRST)


def test_connections_that_are_new_become_half_open_the_next_time(hosts):
    network.fail('halfopen', SIDES)
    begun, accepted = hosts.connect(PROXIES[0], FIRST)
    network.fail('halfopen', SIDES)
    assert not passes(begun, accepted)
    assert hosts.reaches(PROXIES[0], FIRST)


def test_connections_are_reset_at_random(hosts):
    begun, accepted = hosts.connect(PROXIES[0], FIRST)
    network.fail('reset', SIDES)
    with pytest.raises(ConnectionError):
        while passes(begun, accepted):
            assert passes(accepted, begun)


KILLED = """
import signal, subprocess, os
from test.faults.network import network
with network():
    print(subprocess.Popen(['sleep', '60']).pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_left_is_removed():
    with subprocess.Popen(
        (sys.executable, '-c', KILLED), cwd=ROOT, stdout=subprocess.PIPE
    ) as killed:
        killed.wait()
        os.kill(int(killed.stdout.readline()), 0)  # its child runs
        assert network.why_not() == ''
        ended, _, _ = select.select([killed.stdout], [], [], END_SECONDS)
        assert ended
    names = subprocess.check_output(('ip', 'netns'), text=True)
    assert 'shardmw-faults-' not in names


def test_there_is_one_network_at_a_time(hosts):
    assert network.why_not() == 'another process has made one'
