# SPDX-License-Identifier: Apache-2.0
"""Servers that are killed or paused, and come back."""

import random
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext

from shardmw.saio import Cluster, processes
from test.history import History

KINDS = ('proxy', 'container', 'object')

#: How long a server is away, and how long all are there.
AWAY_SECONDS = (0.2, 3)
CALM_SECONDS = (1, 6)


class ServerFaults:
    """Kills and pauses servers at random.

    :param kinds: the servers, proxy, container and object
    :param quiet: held while the server of containers is away
    :ivar windows: from when until when servers were away, by their kind
    """

    def __init__(
        self,
        cluster: Cluster,
        chance: random.Random,
        kinds: Sequence[str],
        quiet: threading.Lock,
    ) -> None:
        self.cluster = cluster
        self.history = History()
        self.windows: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.count = 0
        self.error: BaseException | None = None
        self._kinds = [kind for kind in KINDS if kind in kinds]
        options = cluster.options
        self._numbers = {
            'proxy': options.proxies,
            'container': options.replicas,
            'object': options.replicas,
        }
        self._chance = random.Random(chance.random())
        self._quiet = quiet
        # When runs of the object updater began and ended.
        self._updates: list[tuple[float, float]] = []

    def run(self, stop: threading.Event) -> None:
        """Let servers fail until the event."""
        try:
            while not stop.wait(self._chance.uniform(*CALM_SECONDS)):
                if self._kinds:
                    self._fail(self._chance.choice(self._kinds))
        except BaseException as error:
            self.error = error

    def updated_after(self, at: float) -> float:
        """Return when all rows of before a time were delivered."""
        ends = [ended for began, ended in self._updates if began >= at]
        return min(ends, default=float('inf'))

    def update_rows(self) -> None:
        """Have Swift's daemons bring all rows to all databases."""
        began = time.monotonic()
        self.cluster.daemon('object-updater')
        if self.cluster.options.replicas > 1:
            self.cluster.daemon('container-replicator')
        self._updates.append((began, time.monotonic()))

    def _fail(self, kind: str) -> None:
        fail = self._chance.choice((self._kill, self._pause))
        seconds = self._chance.uniform(*AWAY_SECONDS)
        name = f'{kind}-{self._chance.randint(1, self._numbers[kind])}'
        with self._quiet if kind == 'container' else nullcontext():
            began = time.monotonic()
            fail(name, seconds)
            self.windows[kind].append((began, time.monotonic()))
            self.count += 1
            if kind == 'container':
                self.update_rows()

    def _kill(self, name: str, seconds: float) -> None:
        self._note(f'{name} is killed')
        folder = self.cluster.path
        for process in processes.find(folder):
            if process.server == name:
                processes.send_signal(folder, process, signal.SIGKILL)
        time.sleep(seconds)
        self.cluster.start(name)
        self._note(f'{name} is started')

    def _pause(self, name: str, seconds: float) -> None:
        self._note(f'{name} is paused')
        self.cluster.pause(name)
        time.sleep(seconds)
        self.cluster.resume(name)
        self._note(f'{name} goes on')

    def _note(self, text: str) -> None:
        self.history.note(time.monotonic(), text)
