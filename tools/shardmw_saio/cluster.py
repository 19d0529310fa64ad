# SPDX-License-Identifier: Apache-2.0
"""Start, stop and change the servers of a cluster.

The pure modules decide what has to run; this module acts on it.
"""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from shardmw_saio import forks, logs, processes
from shardmw_saio.commands import (
    DAEMON_CLASSES,
    LAUNCH,
    daemons_command,
    memcached_command,
    memcached_path,
    on_host,
    server_command,
)
from shardmw_saio.config import (
    CLUSTER_DAEMONS,
    RINGS_JSON,
    STORAGE_DAEMONS,
    background_daemons,
    check_settings,
    conf_name,
    config_files,
    daemon_confs,
    servers_to_restart,
    users,
)
from shardmw_saio.errors import SaioError
from shardmw_saio.folder import Folder, State
from shardmw_saio.forks import Forker, Run
from shardmw_saio.options import ClusterOptions, Host, check_same_structure
from shardmw_saio.ports import PortReservations
from shardmw_saio.probes import answers
from shardmw_saio.processes import Process
from shardmw_saio.rings import write_rings
from shardmw_saio.status import RUNNING, ServerStatus, status, statuses
from shardmw_saio.topology import (
    DAEMONS,
    LOCAL,
    MEMCACHED,
    PROXY_KIND,
    Server,
    consecutive_ports,
    devices,
    ring_devices,
    server_names,
    servers,
)

DAEMON_NAMES = sorted([*sum(STORAGE_DAEMONS.values(), ()), *CLUSTER_DAEMONS])

#: The user whose credentials :meth:`Cluster.environment` returns.
DEFAULT_USER = 'test:tester'

_READY_SECONDS = 120
_PATIENCE_SECONDS = 3
_POLL_SECONDS = 0.02


class Cluster:
    """A Swift cluster in a folder.

    As a context manager, it starts the cluster and stops it at the end.

    :param path: the folder
    :param options: the options; None for those that the cluster was made with
    """

    def __init__(
        self, path: Path | str, options: ClusterOptions | None = None
    ) -> None:
        self._folder = Folder(Path(path))
        self._wanted_options = options
        self._started: dict[str, subprocess.Popen] = {}
        self._forkers: dict[Host, Forker] = {}

    def __enter__(self) -> 'Cluster':
        self.up()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.down()

    # Properties

    @property
    def path(self) -> Path:
        return self._folder.path

    @property
    def swift_dir(self) -> Path:
        """Return the folder of the configuration and the rings."""
        return self._folder.etc

    @property
    def devices_path(self) -> Path:
        """Return the folder of the data, in ``NODE/DEVICE`` folders."""
        return self._folder.devices

    @property
    def options(self) -> ClusterOptions:
        return self._state().options

    @property
    def servers(self) -> dict[str, Server]:
        """Return all servers by name, whether they run or not."""
        state = self._state()
        return servers(state.options, state.ports)

    @property
    def proxy_urls(self) -> list[str]:
        return [
            each.url
            for each in self.servers.values()
            if each.kind == PROXY_KIND
        ]

    @property
    def auth_url(self) -> str:
        return f'{self.proxy_urls[0]}/auth/v1.0'

    @property
    def s3_url(self) -> str:
        return self.proxy_urls[0]

    @property
    def storage_url(self) -> str:
        """Return the URL of the default user's account."""
        account = DEFAULT_USER.partition(':')[0]
        return f'{self.proxy_urls[0]}/v1/AUTH_{account}'

    @property
    def users(self) -> dict[str, str]:
        """Return the keys of all users: ``{'account:user': key}``."""
        return users(self.options)

    def environment(self) -> dict[str, str]:
        """Return the environment variables of clients of Swift and S3."""
        key = self.users[DEFAULT_USER]
        return {
            'SHARDMW_SAIO_DIR': str(self.path),
            'SHARDMW_SAIO_STORAGE_URL': self.storage_url,
            'ST_AUTH': self.auth_url,
            'ST_USER': DEFAULT_USER,
            'ST_KEY': key,
            'AWS_ENDPOINT_URL': self.s3_url,
            'AWS_ACCESS_KEY_ID': DEFAULT_USER,
            'AWS_SECRET_ACCESS_KEY': key,
            'AWS_DEFAULT_REGION': 'us-east-1',
        }

    def log_path(self, name: str) -> Path:
        """Return the path of the log of a server or daemon.

        :raises SaioError: if there is no server or daemon of that name
        """
        if name not in DAEMON_NAMES:
            self._server(name)
        return self._folder.log_path(name)

    def status(self) -> list[ServerStatus]:
        """Return the state of each server."""
        return statuses(self.servers.values(), processes.find(self.path))

    def has_processes(self) -> bool:
        """Return True if any server of the cluster runs."""
        found = processes.find(self.path)
        return any(each.server != forks.NAME for each in found)

    # All servers

    def up(self) -> list[str]:
        """Start servers that do not run, and restart those that are outdated.

        A server is outdated if its configuration has changed.

        :returns: the names of the servers that were started
        :raises SaioError: if a server cannot be started. The cluster then has
                           its former options, and its servers run with them;
                           a new cluster is not made
        """
        memcached_path()
        if self._wanted_options is not None:
            check_settings(self._wanted_options)
        self._folder.claim()
        with self._folder.lock(), PortReservations() as reservations:
            stored = self._folder.load()
            options = self._agreed_options(stored)
            healthy = self._healthy_servers(stored)
            self._end(lambda each: each.server not in healthy)
            ports = _choose_ports(
                options, stored.ports if stored else {}, healthy, reservations
            )
            return self._change(
                stored,
                State(options, ports),
                alive=healthy,
                wanted=server_names(options),
                reservations=reservations,
            )

    def down(self) -> bool:
        """End every process of the cluster.

        :returns: True if there were any
        """
        with self._lock_if_there():
            ended = self.has_processes()
            self._end_all()
        return ended

    def purge(self) -> list[str]:
        """End every process of the cluster and delete all its files.

        :returns: the names of other files in the folder, which stay there
        :raises SaioError: if the folder has no cluster. Nothing is deleted
                           then
        """
        self._state()  # raises an error if there is no cluster
        with self._folder.lock():
            self._end_all()
            return self._folder.remove()

    def reconfigure(self, settings: Mapping[str, str | None]) -> list[str]:
        """Change settings, and restart the servers that read them.

        :param settings: added to the cluster's settings; None removes one
        :returns: the names of the servers that were restarted
        :raises SaioError: if a server refuses its settings. The cluster then
                           has its former settings
        """
        self._state()  # raises an error if there is no folder to lock
        with self._folder.lock(), PortReservations() as reservations:
            state = self._state()
            options = state.options.with_settings(settings)
            check_settings(options)
            alive = {each.server for each in processes.find(self.path)}
            restarted = self._change(
                state,
                State(options, state.ports),
                alive=alive,
                wanted=alive,
                reservations=reservations,
            )
            if self._wanted_options is not None:
                # Otherwise the next up would undo the change.
                self._wanted_options = options
            return restarted

    # One server

    def start(self, name: str) -> None:
        """Start a server unless it runs, and wait until it is ready."""
        server = self._server(name)
        with self._folder.lock(), PortReservations() as reservations:
            found = processes.find(self.path)
            if status(server, found).state != RUNNING:
                self._end(lambda each: each.server == name)
                _reserve([server], reservations)
                self._start([server])

    def stop(self, name: str) -> None:
        """Stop a server with its workers, and wait until they have ended."""
        self._server(name)
        with self._folder.lock():
            self._end(lambda each: each.server == name)

    def pause(self, name: str) -> None:
        """Pause a server: it accepts connections and does not answer."""
        self._server(name)
        paused = self._signal(name, signal.SIGSTOP)
        while not all(map(processes.is_paused, paused)):
            time.sleep(_POLL_SECONDS)

    def resume(self, name: str) -> None:
        """Resume a paused server."""
        self._server(name)
        self._signal(name, signal.SIGCONT)

    # Daemons

    def daemon(self, name: str) -> None:
        """Run a background daemon once, on every node that has it.

        :raises SaioError: if the daemon fails, with the reason from its log
        """
        if name not in DAEMON_NAMES:
            raise SaioError(
                f'no daemon is called {name!r}: take one of '
                + ', '.join(DAEMON_NAMES)
            )
        if not self.has_processes():
            raise SaioError(
                f'the cluster in {self.path} is down: start it: '
                'shardmw-saio up'
            )
        log = self._folder.log_path(name)
        start = logs.size(log)
        runs: list[Run] = []
        try:
            for conf in daemon_confs(name, self.servers):
                runs.append(self._start_daemon(name, conf, log))
            codes = [run.wait() for run in runs]
        finally:
            sessions = {run.pid for run in runs}
            processes.end(
                self.path,
                lambda each: each.is_daemon and each.session in sessions,
                _PATIENCE_SECONDS,
            )
            for run in runs:
                run.wait()
        if any(codes):
            raise SaioError(
                f'{name} failed: {logs.reason(logs.lines(log, start))}'
            )

    def call(
        self,
        module: str,
        arguments: Sequence[str],
        output: int,
        errors: int,
        modules: Sequence[str] = (),
        host: Host = LOCAL,
    ) -> Run:
        """Run the function ``main`` of a module in a process of its own.

        The process is forked from one that has loaded Swift already.

        :param output: the file descriptor of the standard output
        :param errors: that of the standard error
        :param modules: what else to load once
        """
        folder = self._folder
        forker = Forker(
            folder.path, folder.etc, folder.log_path('forks'), host
        )
        forker = self._forkers.setdefault(host, forker)
        return forker.run([module, *modules], arguments, output, errors)

    # Implementation

    def _start_daemon(self, name: str, conf: str, log: Path) -> Run:
        host = self.options.hosts.get(conf.removesuffix('.conf'), LOCAL)
        arguments = ['daemon', name, str(self._folder.etc / conf), str(log)]
        with log.open('ab') as file:
            output = file.fileno()
            load = [DAEMON_CLASSES[name].partition(':')[0]]
            return self.call(LAUNCH, arguments, output, output, load, host)

    def _state(self) -> State:
        state = self._folder.load()
        if state is None:
            raise SaioError(
                f'no cluster is in {self.path}: make one: shardmw-saio up'
            )
        return state

    def _server(self, name: str) -> Server:
        everyone = self.servers
        if name not in everyone:
            raise SaioError(
                f'no server is called {name!r}: take one of '
                + ', '.join(everyone)
            )
        return everyone[name]

    def _agreed_options(self, stored: State | None) -> ClusterOptions:
        wanted = self._wanted_options
        if stored is None:
            return wanted or ClusterOptions()
        if wanted is None:
            return stored.options
        check_same_structure(stored.options, wanted.as_json())
        return wanted

    def _healthy_servers(self, stored: State | None) -> set[str]:
        if stored is None or not self.has_processes():
            return set()
        return {
            each.server.name for each in self.status() if each.state == RUNNING
        }

    def _change(
        self,
        former: State | None,
        state: State,
        alive: Collection[str],
        wanted: Collection[str],
        reservations: PortReservations,
    ) -> list[str]:
        """Do what :meth:`_converge` does, or go back to the former state.

        :param former: the state before; None for a new cluster
        :raises SaioError: if a server cannot be started
        """
        try:
            return self._converge(state, alive, wanted, reservations)
        except SaioError as err:
            if former is None:
                self._folder.forget()
                raise
            if former == state:
                raise
            self._go_back(former, alive, reservations, err)
            raise SaioError(
                f'{err}: the cluster has its former options again'
            ) from err

    def _go_back(
        self,
        former: State,
        alive: Collection[str],
        reservations: PortReservations,
        reason: SaioError,
    ) -> None:
        left = {each.server for each in processes.find(self.path)}
        try:
            self._converge(former, left, alive, reservations)
        except SaioError as err:
            raise SaioError(
                f'{reason}: the former options fail, too: {err}'
            ) from err

    def _converge(
        self,
        state: State,
        alive: Collection[str],
        wanted: Collection[str],
        reservations: PortReservations,
    ) -> list[str]:
        """Write the files of a state and start the wanted servers.

        :param state: the new state of the cluster
        :param alive: the servers that run. They are restarted only if their
                      configuration changed
        :param wanted: the servers to run
        :param reservations: the ports that are reserved for the cluster
        :returns: the names of the servers that were started
        """
        options = state.options
        place = self._folder.place()
        everyone = servers(options, state.ports)
        rings = ring_devices(options, everyone)
        texts = config_files(options, everyone, place)
        texts[RINGS_JSON] = json.dumps(rings, indent=1)
        changed = self._folder.changed_confs(texts)
        stale = servers_to_restart(everyone, changed)
        keep = set(alive) & set(everyone) - stale
        starting = [
            each
            for name, each in everyone.items()
            if name in wanted and name not in keep
        ]
        self._end(lambda each: each.server not in keep)
        if changed:
            self._end_forkers()  # they have read the former configuration
        _reserve(starting, reservations)
        self._folder.save(state)
        self._folder.make_rooms(devices(options))
        if RINGS_JSON in changed:
            write_rings(self._folder.etc, options.replicas, rings)
        self._folder.write_confs({name: texts[name] for name in changed})
        self._start(starting)
        return [each.name for each in starting]

    def _start(self, starting: Sequence[Server]) -> None:
        """Start servers at the same time and wait until all are ready."""
        log_starts = {
            each.name: logs.size(self._folder.log_path(each.name))
            for each in starting
        }
        try:
            for server in starting:
                self._started[server.name] = processes.start(
                    self.path,
                    server.name,
                    on_host(server.host, self._command(server)),
                    self._folder.log_path(server.name),
                )
            self._wait_until_ready(starting, log_starts)
        except BaseException:
            self._end(lambda each: each.server in log_starts)
            raise

    def _command(self, server: Server) -> list[str]:
        if server.kind == MEMCACHED:
            user = self._folder.place().user
            return memcached_command(server.port, user, server.host.address)
        etc = self._folder.etc
        log = self._folder.log_path(server.name)
        if server.kind == DAEMONS:
            names = background_daemons(self.options, self.servers)
            return daemons_command(server.port, etc, log, names)
        return server_command(server.kind, etc / conf_name(server), log)

    def _wait_until_ready(
        self, starting: Sequence[Server], log_starts: Mapping[str, int]
    ) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        waiting = list(starting)
        while waiting:
            for server in waiting:
                ended = self._started[server.name].poll() is not None
                if ended or time.monotonic() > deadline:
                    log = self._folder.log_path(server.name)
                    written = logs.lines(log, log_starts[server.name])
                    what = 'ended' if ended else 'did not answer'
                    raise SaioError(
                        f'{server.name} {what} at its start: '
                        f'{logs.reason(written)}'
                    )
            waiting = [each for each in waiting if not answers(each, 0.5)]
            time.sleep(_POLL_SECONDS)

    def _end(self, wanted: Callable[[Process], bool]) -> None:
        """End servers, but no daemons: :meth:`daemon` waits for those."""
        processes.end(
            self.path,
            lambda each: not each.is_daemon and wanted(each),
            _PATIENCE_SECONDS,
        )
        self._reap()

    def _end_all(self) -> None:
        self._end_forkers()
        processes.end(self.path, lambda each: True, _PATIENCE_SECONDS)
        self._reap()

    def _end_forkers(self) -> None:
        for forker in self._forkers.values():
            forker.end()

    def _reap(self) -> None:
        """Wait for children that have ended, so that no zombies remain."""
        for name, process in list(self._started.items()):
            if process.poll() is not None:
                del self._started[name]

    def _signal(self, name: str, number: int) -> list[Process]:
        found = [p for p in processes.find(self.path) if p.server == name]
        if not found:
            raise SaioError(f'{name} is down: start it first')
        for process in found:
            processes.send_signal(self.path, process, number)
        return found

    @contextlib.contextmanager
    def _lock_if_there(self) -> Iterator[None]:
        """Lock the folder, unless it has no cluster.

        The folder may have been removed while its servers run. A folder with
        other files gets no lock, which would make it look like a cluster's.
        """
        if self._folder.has_lock():
            with self._folder.lock():
                yield
        else:
            yield


def _choose_ports(
    options: ClusterOptions,
    stored: Mapping[str, int],
    healthy: Collection[str],
    reservations: PortReservations,
) -> dict[str, int]:
    if options.port:
        return consecutive_ports(options)
    names = server_names(options)
    # Reserve the stored ports first, so that no other server gets one of them.
    kept = {
        name: stored[name]
        for name in names
        if name in stored
        and (name in healthy or reservations.reserve(stored[name]))
    }
    return {name: kept.get(name) or reservations.pick() for name in names}


def _reserve(
    starting: Sequence[Server], reservations: PortReservations
) -> None:
    for server in starting:
        if not reservations.reserve(server.port):
            raise SaioError(
                f'port {server.port}, for {server.name}, is taken: end what '
                'listens there, or choose other ports with --port'
            )
