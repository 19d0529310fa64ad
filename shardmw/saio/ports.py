# SPDX-License-Identifier: Apache-2.0
"""Ports that nobody else has, nor is about to take."""

import contextlib
import errno
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from shardmw.saio.errors import SaioError
from shardmw.saio.topology import HOST

# Below the ports that the kernel gives to outgoing connections, so that a
# server that was stopped finds its port free when it's started again.
_LOWEST = 10_000
_EPHEMERAL = Path('/proc/sys/net/ipv4/ip_local_port_range')
_ATTEMPTS = 200

_SETTLE_SECONDS = 0.5
_POLL_SECONDS = 0.01


class PortReservations(contextlib.ExitStack):
    """Ports that clusters starting at the same time leave to each other.

    Swift's servers set SO_REUSEPORT: two of them on one port would share its
    connections and notice nothing. So look before, and hold the port's name
    (an abstract socket's, gone with the process) until the server listens.
    """

    def __init__(self) -> None:
        super().__init__()
        self._held: set[int] = set()

    def reserve(self, port: int) -> bool:
        """Hold a port, or say that it's taken.

        A server that has just died takes a moment to let go of its port.
        """
        deadline = time.monotonic() + _SETTLE_SECONDS
        while not self._hold(port):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def pick(self) -> int:
        """Hold some free port.

        :raises SaioError: if none was found
        """
        for port in _candidates():
            if self._hold(port):
                return port
        raise SaioError(
            f'found no free port in {_ATTEMPTS} attempts: end some of the '
            'servers on this machine'
        )

    def _hold(self, port: int) -> bool:
        if port in self._held:
            return True
        holder = socket.socket(socket.AF_UNIX)
        try:
            holder.bind(f'\0shardmw-saio-port-{port}')
        except OSError as err:
            holder.close()
            if err.errno != errno.EADDRINUSE:
                raise
            return False
        if not _nobody_listens(port):
            holder.close()
            return False
        self._held.add(port)
        self.enter_context(holder)
        return True


def _candidates() -> Iterator[int]:
    highest = int(_EPHEMERAL.read_text().split()[0]) - 1
    # a kernel set to hand out nearly all ports leaves none to ourselves
    if highest < _LOWEST + _ATTEMPTS:
        highest = 65535
    return iter(random.sample(range(_LOWEST, highest), _ATTEMPTS))


def _nobody_listens(port: int) -> bool:
    with socket.socket() as probe:
        # connections that have just ended don't matter, listeners do
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as err:
            if err.errno == errno.EACCES:
                raise SaioError(
                    f'port {port} is not for this user: choose one above 1023'
                ) from None
            return False
    return True
