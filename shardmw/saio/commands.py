# SPDX-License-Identifier: Apache-2.0
"""The command lines that servers and daemons are started with."""

import shutil
import sys
from pathlib import Path

from shardmw.saio.errors import SaioError
from shardmw.saio.topology import HOST

MEMCACHED_MEGABYTES = 64


def server_command(kind: str, conf: Path, log: Path) -> list[str]:
    """Run one of Swift's servers."""
    return _launch('server', kind, conf, log)


def daemon_command(name: str, conf: Path, log: Path) -> list[str]:
    """Run one of Swift's daemons once."""
    return _launch('daemon', name, conf, log)


def memcached_command(port: int, user: str) -> list[str]:
    """Run memcached.

    :raises SaioError: if it's not there
    """
    # -u because memcached refuses to run as root without being told
    return [
        *(memcached_path(), '-v', '-u', user),
        *('-l', HOST, '-p', str(port), '-U', '0'),
        *('-m', str(MEMCACHED_MEGABYTES)),
    ]


def memcached_path() -> str:
    """Where memcached is.

    :raises SaioError: if it's not there
    """
    path = shutil.which('memcached')
    if path is None:
        raise SaioError(
            'memcached is not on the PATH: install it, such as with '
            'apt install memcached'
        )
    return path


def _launch(what: str, name: str, conf: Path, log: Path) -> list[str]:
    module = 'shardmw.saio.launch'
    return [sys.executable, '-m', module, what, name, str(conf), str(log)]
