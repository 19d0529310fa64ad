# SPDX-License-Identifier: Apache-2.0
"""The cluster that cells run on."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from shardmw_saio import Cluster, ClusterOptions
from shardmw_saio.commands import memcached_command, on_host
from shardmw_saio.options import Host
from shardmw_saio.ports import PortReservations
from shardmw_saio.topology import LOCAL, ring_devices, server_names

from test.faults import edge
from test.faults.power import Disks
from test.faults.rings import RELOAD_SECONDS, Rings, spare_of
from test.functional.client import Client
from test.functional.operating import SECTION, Admin

ROOT = Path(__file__).parents[2]
USER = 'admin:admin'
NODES = (1, 2, 3)

#: The write rate of containers with at least this many objects.
LIMITED_FROM, WRITES_A_SECOND = 200, 40

SETTINGS = {
    **edge.SETTINGS,
    # With these, tokens do not depend on memcached.
    'tempauth.fernet_key_any': 'c2hhcmRtdy1zYWlvLXRlc3RzLW9ubHktbm8tc2VjcmU=',
    'tempauth.active_fernet_key_id': 'any',
    # Proxies cache for a short time, and have short timeouts. They wait for
    # all replicas that answer, so that an acknowledged write is read at once.
    'proxy-server.recheck_container_existence': '2',
    'proxy-server.recheck_account_existence': '2',
    'proxy-server.node_timeout': '3.5',
    'proxy-server.recoverable_node_timeout': '1',
    'proxy-server.post_quorum_timeout': '10',
    'proxy-server.error_suppression_limit': '5',
    'proxy-server.error_suppression_interval': '2',
    # An object server whose container server hangs must answer in time;
    # otherwise proxies skip it, and its objects become stale. If the object
    # expires, it waits for two rows, one after the other. Connections keep
    # saio's long timeouts: a server that hangs accepts connections, and on a
    # busy machine a short timeout would postpone rows.
    'object-server.node_timeout': '1.5',
    'object-server.container_update_timeout': '2',
    'container-server.node_timeout': '1.5',
    'shardmw-resharder.settle_seconds': '2',
    'shardmw-resharder.interval': '5',
    **{
        f'{daemon}.{name}': value
        for daemon in (
            'account-replicator',
            'container-replicator',
            'container-updater',
            'object-replicator',
            'object-updater',
            'object-expirer',
        )
        for name, value in {'interval': '5', 'node_timeout': '3'}.items()
    },
    # Each pass starts a process for each partition of each device.
    'container-updater.interval': '12',
    'object-updater.interval': '8',
    'object-expirer.concurrency': '4',
    f'shardmw.container_ratelimit_{LIMITED_FROM}': str(WRITES_A_SECOND),
    'shardmw.max_sleep_time_seconds': '2',
}

STORAGE_DAEMONS = {
    'account': ('account-replicator',),
    'container': ('container-replicator', 'container-updater'),
    'object': ('object-replicator', 'object-updater'),
}
KINDS = tuple(STORAGE_DAEMONS)
CLUSTER_DAEMONS = ('object-expirer', SECTION)

#: The most characters of a text about replicas that differ.
MOST_TEXT = 2000

#: How long a daemon has to end before it is killed.
END_SECONDS = 5


class Listing(NamedTuple):
    """The metadata and the rows of a database.

    :param is_waiting: True if the database has pending rows
    """

    metadata: dict
    is_waiting: bool
    rows: list[tuple]

    def parts(self) -> Iterator[object]:
        """Yield the parts that can differ between replicas."""
        yield from self.metadata.items()
        yield from self.rows
        if self.is_waiting:
            yield 'waiting rows'


class Site:
    """An embedded Swift with two proxies, three replicas and all daemons.

    :param path: the folder for all of its files
    """

    settings = SETTINGS

    def __init__(self, path: Path) -> None:
        self.path = path
        self._processes: dict[str, subprocess.Popen] = {}
        self._ports: list[int] = []
        self._pauses: Counter[subprocess.Popen] = Counter()
        self._pauses_lock = threading.Lock()
        self.cluster = Cluster(path / 'cluster')
        self.disks = Disks(self.cluster.devices_path, path / 'disks')

    def __enter__(self) -> 'Site':
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        os.environ['PYTHONPATH'] = str(ROOT)
        with PortReservations() as reservations:
            self._ports = [reservations.pick() for _ in range(2)]
        for number in (1, 2):
            self.start(f'memcached-{number}')
        self.cluster = Cluster(self.path / 'cluster', self._options())
        self.cluster.up()
        options, servers = self.cluster.options, self.cluster.servers
        self.rings = Rings(
            self.cluster.swift_dir, ring_devices(options, servers)
        )
        for spare in self.spares():
            spare.mkdir(exist_ok=True)
        self.admin = Admin(self.cluster, self.host_of('mover'))
        key = self.cluster.users[USER]
        self._login = Client.login(self.cluster.auth_url, USER, key)
        for node in NODES:
            self._serve_node(node)
        for daemon in CLUSTER_DAEMONS:
            self._serve(daemon, daemon)

    def host_of(self, server: str) -> Host:
        """Return the host of a server, or of a daemon of the whole cluster."""
        return LOCAL

    def _options(self) -> ClusterOptions:
        memcacheds = ','.join(
            f'{self.host_of(f"memcached-{number}").address}:{port}'
            for number, port in enumerate(self._ports, 1)
        )
        options = ClusterOptions(2, len(NODES)).with_settings(
            {**self.settings, 'memcache.memcache_servers': memcacheds}
        )
        names = server_names(options)
        return options.changed(hosts={n: self.host_of(n) for n in names})

    def __exit__(self, *exc_info: object) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
            process.kill()
            process.wait()
        self.cluster.down()
        self.disks.remove()

    def client(self, account: str, proxy: int) -> Client:
        """Return a client with all rights in an account.

        :param proxy: 0 or 1
        """
        url = f'{self.cluster.proxy_urls[proxy]}/v1/{account}'
        return Client(url, self._login.token)

    def kill(self, server: str) -> None:
        """Kill a server without warning."""
        if server in self._processes:
            self._processes[server].kill()
            self._processes.pop(server).wait()
            return
        for pid in self.pids(server):
            os.kill(pid, signal.SIGKILL)

    def start(self, server: str) -> None:
        """Start a server that was killed."""
        if server.startswith('memcached-'):
            port = self._ports[int(server[-1]) - 1]
            host = self.host_of(server)
            command = memcached_command(port, 'root', host.address)
            self._run(server, on_host(host, command))
        else:
            self.cluster.start(server)

    def cut_power(self, nodes: list[int]) -> None:
        """End nodes at one moment; what was not synced is lost."""
        servers = [f'{kind}-{node}' for kind in KINDS for node in nodes]
        daemons = [
            self._processes.pop(name)
            for name in list(self._processes)
            if name.partition('@')[2] in servers
        ]
        with self.disks.off(nodes):
            for server in servers:
                self.kill(server)
            for daemon in daemons:
                os.killpg(daemon.pid, signal.SIGKILL)
        for daemon in daemons:
            daemon.wait()

    def restore_power(self, nodes: list[int]) -> None:
        """Start nodes whose power was cut."""
        self.disks.on(nodes)
        servers = [f'{kind}-{node}' for node in nodes for kind in KINDS]
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(self.start, servers))
        for node in nodes:
            self._serve_node(node)

    def signal(self, server: str, number: int) -> None:
        """Send a signal to all processes of a server."""
        for pid in self.pids(server):
            os.kill(pid, number)

    def pids(self, server: str) -> list[int]:
        """Return the processes of a server."""
        if server in self._processes:
            return [self._processes[server].pid]
        return [
            each.pid
            for each in self.cluster.status()
            if each.server.name == server and each.pid
        ]

    def devices(self) -> list[Path]:
        """Return the folders of all devices, by node."""
        return [
            self.cluster.devices_path / str(node) / f'sdb{node}'
            for node in NODES
        ]

    def spares(self) -> list[Path]:
        """Return the folders of the spare devices, by node."""
        return [
            device.with_name(spare_of(device.name))
            for device in self.devices()
        ]

    @contextlib.contextmanager
    def daemons_stopped(self, kind: str = '') -> Iterator[None]:
        """Pause all daemons of a kind until the end of the block.

        Several threads may do so: a daemon continues after the last block.

        :param kind: the end of their names; all daemons by default
        """
        # Another thread may start a server meanwhile.
        found = list(self._processes.items())
        daemons = [process for name, process in found if f'{kind}@' in name]
        with self._pauses_lock:
            self._pauses.update(daemons)
            for process in daemons:
                os.killpg(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with self._pauses_lock:
                self._pauses.subtract(daemons)
                for process in daemons:
                    if not self._pauses[process]:
                        os.killpg(process.pid, signal.SIGCONT)

    def wipe(self) -> None:
        """Remove all data, so that daemons have little to do."""
        with self.daemons_stopped():
            if self.rings.have_changed:
                self.rings.restore()
                time.sleep(RELOAD_SECONDS)
            self.disks.remove()
            for device in (*self.devices(), *self.spares()):
                for folder in device.iterdir():
                    if folder.name != 'tmp':
                        shutil.rmtree(folder, ignore_errors=True)

    def disagreements(self) -> list[str]:
        """Return what replicas disagree about, and pending updates."""
        found = []
        states = []
        for devices in zip(self.devices(), self.spares(), strict=True):
            state, spare = map(_state_of, devices)
            both = sorted({*state} & {*spare})
            found += [f'on two devices of a node: {path}' for path in both]
            states.append({**state, **spare})
        for path in set().union(*states):
            held = [state.get(path) for state in states]
            if any(each != held[0] for each in held):
                found.append(f'replicas differ: {path}: {_difference(held)}')
        for device in (*self.devices(), *self.spares()):
            waiting = [
                path
                for path in device.glob('async_pending*/**/*')
                if path.is_file()
            ]
            if waiting:
                found.append(f'{len(waiting)} updates wait on {device.name}')
        return found

    def use_disks(self, share: float) -> None:
        """Have nodes use disks that lose power, until all is removed.

        :param share: the share of writes that are durable at once
        """
        with self.daemons_stopped():
            self.disks.use((*self.devices(), *self.spares()), share=share)

    def _serve_node(self, node: int) -> None:
        """Start the daemons of a node."""
        for kind, daemons in STORAGE_DAEMONS.items():
            for daemon in daemons:
                self._serve(daemon, f'{kind}-{node}')

    def _serve(self, daemon: str, conf: str) -> None:
        name = f'{daemon}@{conf}'
        etc = self.cluster.swift_dir
        log = self.cluster.path / 'log' / f'{name}.log'
        command = [sys.executable, '-m', 'shardmw_saio.launch', 'service']
        command += [daemon, f'{etc}/{conf}.conf', str(log)]
        self._run(name, on_host(self.host_of(conf), command))

    def _run(self, name: str, command: list[str]) -> None:
        # In a separate process group, since a daemon ends its whole group.
        with (self.path / f'{name}.out').open('ab') as output:
            self._processes[name] = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                cwd='/',
                start_new_session=True,
            )


def _state_of(device: Path) -> dict[str, object]:
    """Return the contents of a device, by paths of objects and databases."""
    state: dict[str, object] = {
        str(path.relative_to(device)): True
        for path in device.glob('objects*/*/*/*/*')
        if not _is_of_deleted_object(path)
    }
    for kind in ('accounts', 'containers'):
        for path in device.glob(f'{kind}/*/*/*/*.db'):
            name, rows = _rows_of(path, kind == 'accounts')
            if rows is not None:
                state[name] = rows
    return state


def _difference(held: list[object]) -> str:
    """Return which replicas have something, or how their listings differ."""
    listings = [each for each in held if isinstance(each, Listing)]
    if len(listings) < len(held):
        return f'there: {[each is not None for each in held]}'
    parts = [{*map(str, each.parts())} for each in listings]
    common = set.intersection(*parts)
    return '; '.join(
        f'{node}: {sorted(each - common)}'
        for node, each in zip(NODES, parts, strict=True)
    )[:MOST_TEXT]


def _is_of_deleted_object(path: Path) -> bool:
    """Return True for metadata of a POST to an object that was deleted.

    A server with old data accepts a POST to an object that is deleted on the
    others. Swift neither replicates nor reads this metadata: it is newer than
    the tombstone, but there is no data.
    """
    return path.suffix == '.meta' and not any(path.parent.glob('*.data'))


def _rows_of(path: Path, is_account: bool) -> tuple[str, object]:
    """Return the name of a database and its listing, None if deleted."""
    kind = 'account' if is_account else 'container'
    row, columns = (
        ('container', 'name, object_count, bytes_used')
        if is_account
        else ('object', 'name, created_at, size, etag')
    )
    try:
        with contextlib.closing(
            sqlite3.connect(f'file:{path}?mode=ro', uri=True)
        ) as db:
            names = "account, ''" if is_account else 'account, container'
            (account, container, put, deleted, metadata, count) = db.execute(
                f'SELECT {names}, put_timestamp, delete_timestamp, '  # noqa: S608
                f'metadata, {row}_count FROM {kind}_stat'
            ).fetchone()
            rows = db.execute(
                f'SELECT {columns} FROM {row} WHERE deleted = 0'  # noqa: S608
            )
            is_deleted = deleted >= put and not count
            waiting = Path(f'{path}.pending')
            is_waiting = waiting.exists() and waiting.stat().st_size
            kept = json.loads(metadata or '{}')
            listed = Listing(kept, bool(is_waiting), sorted(rows))
            name = f'{account}/{container}'
            return name, None if is_deleted else listed
    except (sqlite3.Error, TypeError, ValueError):
        return str(path), 'unreadable'


@contextlib.contextmanager
def temporary_folder(path: Path | None) -> Iterator[Path]:
    """Yield a folder: the given one, which is kept, or a temporary one."""
    if path:
        path.mkdir(parents=True, exist_ok=True)
        yield path
    else:
        with tempfile.TemporaryDirectory(prefix='faults-') as name:
            yield Path(name)
