# SPDX-License-Identifier: Apache-2.0
"""A network of hosts in namespaces of their own, and its faults.

It needs root, iproute2 and nftables.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from test.faults import netrules
from test.faults.netrules import CLIENT, HOSTS, ROUTER, RULES, namespace_of

#: Two networks on a machine would have the same names.
_LOCK = Path('/run/shardmw-faults.lock')

_NAMESPACES = Path('/run/netns')
_OWN = '/proc/thread-self/ns/net'
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

#: By default, a router that has not seen a connection begin takes it for new.
_ROUTER_SETTINGS = (
    'echo 1 >/proc/sys/net/ipv4/ip_forward && '
    'echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose'
)


@contextlib.contextmanager
def network() -> Iterator[None]:
    """Make the hosts and their links, and remove them at the end of the block.

    The block runs in the namespace of the clients. What a killed process has
    left is removed first.

    :raises OSError: if the network cannot be made
    """
    with _LOCK.open('w') as lock:
        _lock(lock)
        _remove()
        try:
            _make()
            with joined(CLIENT):
                yield
        finally:
            _remove()


def why_not() -> str:
    """Return why no network can be made, '' if it can."""
    try:
        with network():
            return ''
    except OSError as err:
        return str(err)


def fail(how: str, sides: netrules.Sides) -> None:
    """Make the network fail in a way that :data:`RULES` has."""
    mark = time.monotonic_ns() % 2**32  # no former rules had it
    rules = RULES[how](sides, mark)
    _on_router('nft', '-f', '-', text=netrules.table(rules))


def heal() -> None:
    """End the failure of the network."""
    _on_router('nft', '-f', '-', text=netrules.no_table())


@contextlib.contextmanager
def joined(host: str) -> Iterator[None]:
    """Run this thread, and what it starts, on a host."""
    path = _NAMESPACES / namespace_of(host)
    with open(_OWN) as own, path.open() as other:
        _join(other.fileno())
        try:
            yield
        finally:
            _join(own.fileno())


def _lock(file: IO) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OSError('another process has made one') from None


def _make() -> None:
    _run('ip', '-batch', '-', text=netrules.links())
    for host in HOSTS:
        _batch(host, netrules.addresses(host))
    _batch(ROUTER, netrules.router_addresses())
    heal()  # which shows that nftables is there
    _on_router('sh', '-c', _ROUTER_SETTINGS)


def _on_router(*command: str, text: str = '') -> None:
    router = namespace_of(ROUTER)
    _run('ip', 'netns', 'exec', router, *command, text=text)


def _batch(host: str, text: str) -> None:
    _run('ip', '-n', namespace_of(host), '-batch', '-', text=text)


def _remove() -> None:
    """Remove all namespaces of a network, with the processes in them."""
    for path in _NAMESPACES.glob(f'{netrules.PREFIX}*'):
        while pids := _run('ip', 'netns', 'pids', path.name).split():
            for pid in map(int, pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        _run('ip', 'netns', 'del', path.name)


def _join(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _run(*command: str, text: str = '') -> str:
    """Run a command and return its output.

    :raises OSError: if it fails, with the first line that it writes
    """
    ran = subprocess.run(command, input=text, capture_output=True, text=True)
    if ran.returncode:
        reason = (ran.stderr.splitlines() or ['no reason given'])[0]
        raise OSError(f'{" ".join(command)} fails: {reason}')
    return ran.stdout
