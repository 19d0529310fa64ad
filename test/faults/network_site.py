# SPDX-License-Identifier: Apache-2.0
"""The cluster that the cells of `net` run on."""

import contextlib
from pathlib import Path

from shardmw_saio.options import Host

from test.faults import netrules
from test.faults.network import network
from test.faults.site import SETTINGS, Site


class NetworkSite(Site):
    """A site whose proxies and storage nodes are hosts of a network.

    Clients have a host of their own; the process that makes the site is on it.
    Each proxy has a memcached on its host.
    """

    settings = {
        **SETTINGS,
        # A host that is cut off does not refuse connections: whoever connects
        # to it waits for these timeouts.
        'proxy-server.conn_timeout': '1',
        'container-server.conn_timeout': '1',
        'object-server.conn_timeout': '1',
        'object-replicator.http_timeout': '5',
    }

    def __init__(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        super().__init__(path)
        self._network = contextlib.ExitStack()

    def _start(self) -> None:
        self._network.enter_context(network())
        super()._start()

    def __exit__(self, *exc_info: object) -> None:
        with self._network:
            super().__exit__(*exc_info)

    def host_of(self, server: str) -> Host:
        """Return the host of a server, or of a daemon of the whole cluster."""
        return netrules.host_of(server)
