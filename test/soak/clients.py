# SPDX-License-Identifier: Apache-2.0
"""Client processes that run for a long time and check what they read.

Each process has its own containers. It works in windows: between two windows,
its clients pause and all of their reads are checked. Only writes that a later
read may still show are carried over to the next window, so the memory of a
process does not grow with time.
"""

import itertools
import json
import multiprocessing
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER
from test.functional.history import Worker, merged
from test.history import History, Read, Write, possible

WINDOW_SECONDS = 30
NAMES = [f'o{number}' for number in range(8)]

#: The shares of actions other than reading and writing an object.
WALK_SHARE = 0.1
OTHER_SHARE = 0.1

#: Statuses that are right for any request: the client sent too many requests,
#: or a server is too busy.
LATER = (498, 503)

#: The share of containers for a moment whose names are new.
NEW_SHARE = 0.2

#: For how long a listing may show the former size of an overwritten object.
KEPT_SECONDS = 60

_context = multiprocessing.get_context('spawn')


class Part(NamedTuple):
    """The work of one process.

    :param shards: the shard counts of its containers, by their names
    :param changing: the containers whose layout changes
    """

    number: int
    storage_url: str
    token: str
    clients: int
    seed: int
    shards: dict[str, int]
    changing: frozenset[str] = frozenset()


class ClientProcess:
    """A process of clients.

    :ivar done: the number of operations so far
    """

    def __init__(self, part: Part) -> None:
        self.done = _context.Value('q', 0)
        self._stop = _context.Event()
        self._results, results = _context.Pipe(duplex=False)
        self._process = _context.Process(
            target=_run, args=(part, self._stop, self.done, results)
        )
        self._process.start()

    def finish(self) -> dict[str, object]:
        """End the work and return its figures."""
        self._stop.set()
        results = self._results.recv()
        self._process.join()
        return results


def _run(part: Part, stop, done, results) -> None:
    work = _Work(part)
    while not stop.is_set():
        work.window(stop)
        done.value = work.counts.total()
    results.send(
        {
            'counts': dict(work.counts),
            'refused': dict(work.refused),
            'wrong': work.wrong,
        }
    )


class _Work:
    """The work of one process.

    :ivar wrong: the wrong responses, as text
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._earlier = {name: History() for name in part.shards}
        self._clients = [
            _Client(part, number, self) for number in range(part.clients)
        ]

    def window(self, stop) -> None:
        """Work for one window, and check it."""
        until = time.monotonic() + WINDOW_SECONDS
        threads = [
            threading.Thread(target=each.run, args=(until, stop))
            for each in self._clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for container in self.part.shards:
            self._check(container)

    def _check(self, container: str) -> None:
        workers = [each.workers[container] for each in self._clients]
        history = merged(workers)
        self.counts += history.counts
        self.refused += history.refused
        for name, writes in self._earlier[container].writes.items():
            history.writes[name] = writes + history.writes[name]
        self.wrong += [
            f'{container}:\n{history.text(each)}'
            for each in history.violations()
        ]
        later = History()
        for name, writes in history.writes.items():
            later.writes[name] = still_shown(writes, time.monotonic())
        self._earlier[container] = later
        for worker in workers:
            worker.history = History()


def still_shown(writes: Sequence[Write], now: float) -> list[Write]:
    """Return the writes that a later read may show."""
    at = Read('later', now, now, {})
    bodies = [each for each in writes if each.method != 'POST']
    shown = {*possible(writes, at), *possible(bodies, at)}
    return [
        each
        for each in writes
        if each in shown or each.ended > now - KEPT_SECONDS
    ]


class _Client:
    """A client of all containers of a process."""

    def __init__(self, part: Part, number: int, work: _Work) -> None:
        self.client = Client(part.storage_url, part.token)
        by = f'client{part.number}-{number}'
        self.workers = {
            container: Worker(self.client, container, NAMES, part.seed, by)
            for container in part.shards
        }
        self._work = work
        self._changing = part.changing
        self._chance = random.Random(f'{part.seed} {by}')
        self._others = (
            self._head,
            self._list_account,
            self._list_unordered,
            self._create_and_delete,
            self._list_abroad,
        )
        self._own = f'own-{by}'
        self._numbers = itertools.count()
        self._left: list[str] = []
        # Containers with many shards are used less often.
        self._weights = [8 / (8 + n) for n in part.shards.values()]

    def run(self, until: float, stop) -> None:
        """Work until a time, or until the event is set."""
        try:
            self._run(until, stop)
        except Exception:
            self._work.wrong.append(traceback.format_exc())

    def _run(self, until: float, stop) -> None:
        while time.monotonic() < until and not stop.is_set():
            (container,) = self._chance.choices(
                list(self.workers), self._weights
            )
            worker = self.workers[container]
            chance = self._chance.random()
            if chance < WALK_SHARE:
                worker.walk()
            elif chance < WALK_SHARE + OTHER_SHARE:
                with suppress(OSError):
                    self._chance.choice(self._others)(container)
            else:
                worker.work()

    def _expect(self, answer, *statuses: int):
        if answer.status not in (*statuses, *LATER):
            self._work.wrong.append(f'{answer.status} for other work')
        if answer.status == 503:
            self._work.refused['other work: 503'] += 1
        return answer

    def _head(self, container: str) -> None:
        answer = self._expect(self.client.head(container), 204)
        if answer.status == 204:
            count = int(answer.headers['x-container-object-count'])
            # While a row moves, a HEAD may count it twice.
            most = len(NAMES) * (2 if container in self._changing else 1)
            if not 0 <= count <= most:
                self._work.wrong.append(f'{container} has {count} objects')

    def _list_account(self, _container: str) -> None:
        self._expect(self.client.listing(), 200)

    def _list_unordered(self, container: str) -> None:
        answer = self.client.listing(container, allow_unordered='true')
        self._expect(answer, 200)
        if answer.status == 200:
            names = [row['name'] for row in json.loads(answer.body)]
            if len(names) != len(set(names)) or set(names) - set(NAMES):
                self._work.wrong.append(f'{container} unordered: {names}')

    def _create_and_delete(self, _container: str) -> None:
        """Create a container for a moment, whose name is sometimes new."""
        own = self._own
        if self._left:
            own = self._left.pop()
        elif self._chance.random() < NEW_SHARE:
            own = f'{own}-{next(self._numbers)}'
        headers = {SHARD_COUNT_HEADER: '4'}
        self._expect(self.client.put(own, headers=headers), 201, 202, 409)
        self._expect(self.client.put(own, own, b'x'), 201, 404)
        self._expect(self.client.delete(own, own), 204, 404)
        gone = self._expect(self.client.delete(own), 204, 404, 409)
        if gone.status not in (204, 404):
            self._left.append(own)

    def _list_abroad(self, container: str) -> None:
        """List without a token, which is denied."""
        stranger = self.client.anonymous()
        self._expect(stranger.listing(container), 401)
        stranger.close()
