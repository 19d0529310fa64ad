# SPDX-License-Identifier: Apache-2.0
"""One run: a cluster, its clients, changes of its layout and faults."""

import argparse
import random
import threading
import time
from contextlib import ExitStack

from shardmw.saio import Cluster, ClusterOptions
from test.faults.changes import Changes
from test.faults.processes import ClientProcess
from test.faults.servers import ServerFaults
from test.functional.client import Client
from test.functional.extra_proxy import running_detached_proxy
from test.functional.history import Worker
from test.functional.operating import SETTINGS, Admin
from test.history import History, Write

USER = 'test:tester'
CONTAINER = 'faults'

#: An object server that waits for the database of a container must not save
#: the update of a row before it has to.
SERVER_SETTINGS = {
    **SETTINGS,
    'proxy-server.node_timeout': '3',
    'object-server.node_timeout': '30',
    'object-server.conn_timeout': '5',
}

PROGRESS_SECONDS = 10

#: The most seconds between an acknowledged write and the update of its row
#: that a killed object server may have lost.
LOST_SECONDS = 5


class Run:
    """A run of clients and faults.

    :param options: of the command line
    :ivar history: what clients have done and seen
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.history = History()
        self.changes = self.faults = 0

    def work(self) -> None:
        """Let clients work while things go wrong; then check what is left."""
        options = ClusterOptions(
            replicas=self.options.replicas, settings=SERVER_SETTINGS
        )
        with ExitStack() as stack:
            cluster = stack.enter_context(Cluster(self.options.dir, options))
            url = stack.enter_context(running_detached_proxy(cluster))
            clients = self._log_in(cluster, url)
            assert clients[0].put(CONTAINER).status == 201
            self._work(cluster, clients)

    def _log_in(self, cluster: Cluster, url: str) -> list[Client]:
        key = cluster.users[USER]
        first = Client.login(cluster.auth_url, USER, key)
        second = Client.login(f'{url}/auth/v1.0', USER, key).on(url)
        return [first, second]

    def _work(self, cluster: Cluster, clients: list[Client]) -> None:
        options = self.options
        names = [f'o{number}' for number in range(options.names)]
        processes = [
            ClientProcess(
                clients[number % len(clients)],
                CONTAINER,
                names,
                options.seed,
                f'client{number}',
            )
            for number in range(options.clients)
        ]
        # Servers of containers must not fail while a change begins.
        quiet = threading.Lock()
        chance = random.Random(options.seed)
        path = f'{clients[0].account}/{CONTAINER}'
        changes = Changes(
            cluster, Admin(cluster), path, chance, options.faults, quiet
        )
        faults = ServerFaults(cluster, chance, options.faults, quiet)
        stop = threading.Event()
        threads = [
            threading.Thread(target=each.run, args=(stop,))
            for each in (changes, faults)
        ]
        for each in (*processes, *threads):
            each.start()
        try:
            self._show_progress(processes, changes, faults)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            histories = [process.finish() for process in processes]
        for each in (changes, faults):
            if each.error:
                raise each.error
        for each in (*histories, changes.history, faults.history):
            self.history.add(each)
        self.changes, self.faults = changes.count, faults.count
        self._check_at_last(cluster, clients, names, faults)

    def _show_progress(self, processes, changes, faults) -> None:
        end = time.monotonic() + self.options.seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, PROGRESS_SECONDS))
            done = sum(process.done.value for process in processes)
            print(
                f'{max(0, left - PROGRESS_SECONDS):5.0f} s left: '
                f'{done:,} operations, {changes.count} changes of layout '
                f'({changes.state}), {faults.count} faults',
                flush=True,
            )
            if changes.error or faults.error:
                return

    def _check_at_last(self, cluster, clients, names, faults) -> None:
        """Deliver all rows, and read everything by both proxies."""
        faults.update_rows()
        for name, writes in self.history.writes.items():
            self.history.writes[name] = [
                _listed(write, faults) for write in writes
            ]
        for number, client in enumerate(clients):
            by = f'at last proxy {number}'
            worker = Worker(client, CONTAINER, names, 0, by)
            worker.read_all()
            self.history.add(worker.history)


def _listed(write: Write, faults: ServerFaults) -> Write:
    """Return a write with when all databases had its row."""
    for began, ended in faults.windows['object']:
        if write.began <= ended and write.ended >= began - LOST_SECONDS:
            return write._replace(listed=float('inf'))
    for began, ended in faults.windows['container']:
        if write.began <= ended and write.ended >= began:
            return write._replace(listed=faults.updated_after(ended))
    return write
