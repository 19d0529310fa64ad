# SPDX-License-Identifier: Apache-2.0
"""Client processes."""

import multiprocessing
import random

from test.functional.client import Client
from test.functional.history import Worker
from test.history import History

#: How often a client lists the container.
WALK_SHARE = 0.2

_context = multiprocessing.get_context('spawn')


class ClientProcess:
    """A process that works on the names of a container until it is told.

    :ivar done: how many operations it has done
    """

    def __init__(
        self,
        client: Client,
        container: str,
        names: list[str],
        seed: int,
        by: str,
    ) -> None:
        self.done = _context.Value('q', 0)
        self._stop = _context.Event()
        self._answers, answers = _context.Pipe(duplex=False)
        self._process = _context.Process(
            target=_work,
            args=(
                client.storage_url,
                client.token,
                (container, names, seed, by),
                self._stop,
                self.done,
                answers,
            ),
        )

    def start(self) -> None:
        """Start to work."""
        self._process.start()

    def finish(self) -> History:
        """End the work and return what the client has recorded."""
        self._stop.set()
        history = self._answers.recv()
        self._process.join()
        return history


def _work(url, token, about, stop, done, answers) -> None:
    worker = Worker(Client(url, token), *about)
    chance = random.Random(f'{worker.by} {about[2]}')
    while not stop.is_set():
        if chance.random() < WALK_SHARE:
            worker.walk()
        else:
            worker.work()
        done.value = worker.history.counts.total()
    answers.send(worker.history)
