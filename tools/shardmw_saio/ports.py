# SPDX-License-Identifier: Apache-2.0
"""Reserve ports that are free and that no other cluster will take."""

import contextlib
import errno
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from shardmw_saio.errors import SaioError
from shardmw_saio.topology import HOST

# Below the ports that the kernel gives to outgoing connections, so that the
# port of a stopped server is still free when the server is started again.
_LOWEST = 10_000
_EPHEMERAL = Path('/proc/sys/net/ipv4/ip_local_port_range')
_ATTEMPTS = 200

_SETTLE_SECONDS = 0.5
_POLL_SECONDS = 0.01


class PortReservations(contextlib.ExitStack):
    """Ports that are reserved until the servers listen on them.

    Swift's servers set SO_REUSEPORT: two servers on one port would share its
    connections without an error. So each port is checked first, and reserved
    with an abstract socket of the port's name, which ends with the process.
    Clusters that start at the same time respect each other's reservations.
    """

    def __init__(self) -> None:
        super().__init__()
        self._held: set[int] = set()

    def reserve(self, port: int) -> bool:
        """Reserve a port.

        The port of a server that has just died is free after a moment.

        :returns: False if the port is taken
        """
        deadline = time.monotonic() + _SETTLE_SECONDS
        while not self._hold(port):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def pick(self) -> int:
        """Reserve a free port that is not reserved yet, and return it.

        :raises SaioError: if no free port was found
        """
        for port in _candidates():
            if port not in self._held and self._hold(port):
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
        if not _is_free(port):
            holder.close()
            return False
        self._held.add(port)
        self.enter_context(holder)
        return True


def _candidates() -> Iterator[int]:
    highest = int(_EPHEMERAL.read_text().split()[0]) - 1
    # Some kernels are configured to use nearly all ports for connections.
    if highest < _LOWEST + _ATTEMPTS:
        highest = 65535
    return iter(random.sample(range(_LOWEST, highest), _ATTEMPTS))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Ignore connections that have just ended: only listeners matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as err:
            if err.errno == errno.EACCES:
                raise SaioError(
                    f'port {port} needs root: choose one above 1023'
                ) from None
            return False
    return True
