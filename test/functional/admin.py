# SPDX-License-Identifier: Apache-2.0
"""Changes of layout by ``shardmw-admin`` on an embedded Swift."""

import json
import subprocess
import sys

from shardmw.saio import Cluster
from test.functional.client import Client

SAIO = 'from shardmw.commands import saio; saio()'

#: Proxies cache little, and slow servers are given up soon. Object servers
#: wait for the databases of containers before they acknowledge a write.
SETTINGS = {
    'proxy-server.recheck_container_existence': '1',
    'proxy-server.recheck_account_existence': '1',
    'proxy-server.node_timeout': '1',
    'object-server.container_update_timeout': '30',
    'shardmw-resharder.settle_seconds': '1',
}

#: How long the old place has to stay empty.
SETTLE_SECONDS = '2'


class Admin:
    """Runs ``shardmw-admin`` on a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.command = [sys.executable, '-c', SAIO, 'admin']
        self.command += ['--dir', str(cluster.path)]

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [*self.command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*self.command, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
        )

    def reshard(self, client: Client, container: str, shards: int) -> dict:
        """Change a layout; return the printed state."""
        ran = self(
            'reshard',
            f'{client.account}/{container}',
            str(shards),
            '--settle-seconds',
            SETTLE_SECONDS,
            '--json',
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)[0]
