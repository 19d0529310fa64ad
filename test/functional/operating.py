# SPDX-License-Identifier: Apache-2.0
"""Run the command and the daemon that change layouts, on a cluster."""

import configparser
import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from shardmw_saio import Cluster
from shardmw_saio.commands import on_host
from shardmw_saio.options import Host
from shardmw_saio.topology import LOCAL
from swift.common.direct_client import direct_delete_object
from swift.common.utils import Timestamp

from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER, USER
from test.functional.extra_proxy import running_detached_proxy

SAIO = 'from shardmw_saio.cli import main; main(prog_name="shardmw-saio")'

#: Short cache times and timeouts, for which a change has to wait. Object
#: servers wait for container servers before they acknowledge a write.
SETTINGS = {
    'proxy-server.recheck_container_existence': '1',
    'proxy-server.recheck_account_existence': '1',
    'internal-client.node_timeout': '4',
    'internal-client.conn_timeout': '1',
    'object-server.container_update_timeout': '30',
    'shardmw-resharder.settle_seconds': '1',
}

#: How long the old place has to stay empty, in seconds.
SETTLE_SECONDS = '1'

#: What shardmw-admin loads when it needs it.
LOADED = ('swift.common.internal_client', 'swift.proxy.server')

PATIENCE_SECONDS = 90
POLL_SECONDS = 0.1

#: Swift's daemons that deliver updates to container and account servers.
UPDATERS = ('object-updater', 'container-updater')
ROOT = Path(__file__).parents[2]

#: An address that refuses connections.
NOBODY = '127.0.0.1:1'
SECTION = 'shardmw-resharder'


class Admin:
    """Runs ``shardmw-admin`` on a cluster."""

    def __init__(self, cluster: Cluster, host: Host = LOCAL) -> None:
        self.cluster = cluster
        self.host = host

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            self._command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run it to its end."""
        with TemporaryFile('w+') as output, TemporaryFile('w+') as errors:
            run = self.cluster.call(
                'shardmw_saio.cli',
                ['admin', '--dir', str(self.cluster.path), *arguments],
                output.fileno(),
                errors.fileno(),
                LOADED,
                self.host,
            )
            code = run.wait(300)
            told = [each.seek(0) or each.read() for each in (output, errors)]
        return subprocess.CompletedProcess(arguments, code, *told)

    def _command(self, *arguments: str) -> list[str]:
        run = [sys.executable, '-c', SAIO, 'admin', '--dir']
        return on_host(self.host, [*run, str(self.cluster.path), *arguments])

    def reshard(self, client: Client, container: str, shards: int) -> dict:
        """Change a layout; return the printed state.

        Earlier tests may have left pending updates on object servers, so the
        change ignores the backlog.
        """
        ran = self(
            'reshard',
            f'{client.account}/{container}',
            str(shards),
            '--settle-seconds',
            SETTLE_SECONDS,
            '--despite-backlog',
            '--json',
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)[0]

    def detach(
        self, client: Client, container: str, shards: int, *options: str
    ) -> None:
        """Register a change that the daemon makes."""
        path = f'{client.account}/{container}'
        options = ('--detach', '--despite-backlog', *options)
        ran = self('reshard', path, str(shards), *options)
        assert ran.returncode == 0, ran.stderr

    def changes(self, client: Client) -> dict[str, dict]:
        """Return what ``status`` shows for an account, by container."""
        ran = self('status', '--json')
        changes = json.loads(ran.stdout)
        assert ran.returncode == (not all(each['since'] for each in changes))
        return {
            each['container']: each
            for each in changes
            if each['account'] == client.account
        }


class Resharder:
    """Runs ``shardmw-resharder`` on a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._numbers = itertools.count(1)

    def once(self, **options: object) -> str:
        """Run it once, to make all changes under way; return its log."""
        conf, log = self._write(options)
        with log.open('ab') as file:
            run = self.cluster.call(
                'shardmw_saio.launch',
                ['daemon', SECTION, str(conf), str(log)],
                file.fileno(),
                file.fileno(),
                ['shardmw.reshard.daemon'],
            )
        code = run.wait(PATIENCE_SECONDS)
        told = log.read_text()
        assert code == 0, told
        return told

    @contextlib.contextmanager
    def running(self, **options: object) -> Iterator['Daemon']:
        """Run it until the end of the block; yield a :class:`Daemon`.

        :param options: options of its configuration section
        """
        conf, log = self._write({'interval': 1, **options})
        command = [sys.executable, '-m', 'shardmw_saio.launch', 'service']
        # The daemon ends its whole process group, so it gets its own.
        process = subprocess.Popen(
            [*command, SECTION, str(conf), str(log)],
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            yield Daemon(process, log)
        finally:
            process.kill()
            process.wait()

    def _write(self, options: dict) -> tuple[Path, Path]:
        """Write a configuration; return its path, and that of a log."""
        name = f'{SECTION}-{next(self._numbers)}'
        conf = self.cluster.path / 'etc' / f'{name}.conf'
        parser = configparser.RawConfigParser()
        parser.optionxform = str
        parser.read(self.cluster.path / 'etc' / f'{SECTION}.conf')
        for option, value in options.items():
            parser[SECTION][option] = str(value)
        with conf.open('w') as text:
            parser.write(text)
        return conf, self.cluster.path / 'log' / f'{name}.log'


class Daemon:
    """A running daemon."""

    def __init__(self, process: subprocess.Popen, path: Path) -> None:
        self.process = process
        self.path = path

    def log(self) -> str:
        """Return what it has logged."""
        return self.path.read_text() if self.path.exists() else ''

    def wait_until_it_logs(self, text: str) -> None:
        wait_until(lambda: text in self.log())


def admin_of(cluster: Cluster) -> Admin:
    """Return a runner of ``shardmw-admin``, for fixtures."""
    return Admin(cluster)


def resharder_of(cluster: Cluster) -> Resharder:
    """Return a runner of ``shardmw-resharder``, for fixtures."""
    return Resharder(cluster)


def logins_at_two_proxies(
    cluster: Cluster,
) -> Iterator[list[Callable[[], Client]]]:
    """Yield functions that log in, for fixtures.

    The second one does so at a proxy with a memcached of its own.
    """
    key = cluster.users[USER]

    def first() -> Client:
        return Client.login(cluster.auth_url, USER, key)

    with running_detached_proxy(cluster) as url:

        def second() -> Client:
            client = Client.login(f'{url}/auth/v1.0', USER, key)
            return Client(url + client.account_path, client.token)

        yield [first, second]


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, 'it does not happen'
        time.sleep(POLL_SECONDS)


def wait_for_phase(started: subprocess.Popen, phase: str) -> None:
    """Wait until a running command reports a phase of its change."""
    told = []
    for line in started.stderr:
        told.append(line)
        if phase in line:
            return
    pytest.fail(f'the change has ended before {phase}: {"".join(told)}')


def delete_unheard(admin: Admin, path: str) -> None:
    """Delete an object while its container's server refuses connections.

    The update of the container stays pending on the object server.

    :param path: the object, ``account/container/object``
    """
    found = json.loads(admin('locate', path, '--json').stdout)
    (replica,) = found['object_replicas']
    ip, port = replica['server'].split(':')
    direct_delete_object(
        {'ip': ip, 'port': port, 'device': replica['device']},
        found['object_partition'],
        *path.split('/', 2),
        headers={
            'X-Timestamp': Timestamp.now().internal,
            'X-Container-Partition': str(found['row_partition']),
            'X-Container-Device': replica['device'],
            'X-Container-Host': NOBODY,
        },
    )


def update(cluster: Cluster) -> None:
    """Deliver the pending updates to container and account servers."""
    for daemon in UPDATERS:
        cluster.daemon(daemon)


def settle(cluster: Cluster) -> None:
    """Deliver pending updates, and have the daemon settle late rows."""
    update(cluster)
    cluster.daemon(SECTION)


def shards_of(client: Client, container: str) -> int:
    """Return the shard count that clients see, 0 for a plain container."""
    answer = client.head(container)
    assert answer.status == 204
    return int(answer.headers.get(SHARD_COUNT_HEADER.lower(), 0))


def fill(client: Client, container: str, count: int, **headers) -> list[str]:
    """Create a container with objects; return their names, sorted."""
    assert client.put(container, **headers).status == 201
    names = [f'o{i:03}' for i in range(count)]
    for name in names:
        assert client.put(container, name, b'body').status == 201
    return names
