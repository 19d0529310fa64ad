# SPDX-License-Identifier: Apache-2.0
"""Record what concurrent clients do to one container, and check it.

Every operation is recorded with the time at which it began and ended. A name's
state is that of the last write, so at any time the possible states are those
of the writes that no later write had surely replaced: a write replaces all
that had ended before it began. A read must show one of the states that were
possible between its beginning and its end.
"""

import bisect
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from test.functional.client import Client

#: A name that does not exist.
ABSENT = None


class Write(NamedTuple):
    """A write of a name.

    :param body: what a PUT has stored, None for a DELETE
    :param is_sure: False if it was not acknowledged
    """

    began: float
    ended: float
    body: bytes | None
    is_sure: bool

    def __str__(self) -> str:
        what = 'DELETE' if self.body is None else f'PUT {len(self.body)} bytes'
        doubt = '' if self.is_sure else ' (not acknowledged)'
        return f'{what} of {self.began:.3f} to {self.ended:.3f}{doubt}'


class History:
    """The writes to a container by name, and what reads have shown wrongly."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.counts: dict[str, int] = defaultdict(int)
        self.refused: list[str] = []
        self._writes: dict[str, list[Write]] = defaultdict(list)
        self._reads: list[tuple] = []
        self._lock = threading.Lock()

    def wrote(self, name: str, write: Write) -> None:
        """Record a write."""
        with self._lock:
            self._writes[name].append(write)

    def read(self, began, ended, what: str, shown: dict) -> None:
        """Record what a read has shown: bodies or sizes by name."""
        with self._lock:
            self._reads.append((began, ended, what, shown))

    def count(self, what: str) -> None:
        """Count an operation."""
        with self._lock:
            self.counts[what] += 1

    def refuse(self, what: str) -> None:
        """Record a listing that was refused.

        Object servers refuse some writes of one object that meet.
        """
        with self._lock:
            self.refused.append(what)

    def check(self) -> list[str]:
        """Return the reads that no order of the writes explains."""
        wrong = list(self.violations)
        for began, ended, what, shown in self._reads:
            for name, state in shown.items():
                possible = self._possible(name, began, ended)
                if not _fits(state, possible):
                    wrong.append(
                        f'{what} of {began:.3f} to {ended:.3f} shows {name} '
                        f'as {_size(state)}, after '
                        + ', '.join(self._around(name, ended))
                    )
        return wrong

    def _possible(self, name: str, began: float, ended: float) -> list:
        writes = self._writes[name]
        # Of the writes that ended before the read, the latest to begin.
        last = max(
            (w.began for w in writes if w.is_sure and w.ended < began),
            default=0,
        )
        states = [
            w.body for w in writes if w.began < ended and w.ended >= last
        ]
        return states if last else [*states, ABSENT]

    def _around(self, name: str, ended: float) -> list[str]:
        """Return the writes before a time."""
        writes = sorted(self._writes[name], key=lambda write: write.began)
        end = bisect.bisect([w.began for w in writes], ended)
        return [str(write) for write in writes[max(0, end - 6) : end]]


def _size(state) -> str:
    if state is ABSENT:
        return 'missing'
    return f'{state if isinstance(state, int) else len(state)} bytes'


def _fits(state, possible: list) -> bool:
    """Return True if what a read has shown is a possible state.

    While an object is deleted, a listing may show the size that it had before
    it was last overwritten: its row in the old place goes last.

    :param state: a body, a size, or ABSENT
    """
    if isinstance(state, int):
        return any(each is ABSENT or state == len(each) for each in possible)
    return state in possible


class Clients:
    """Threads that work on a few names of one container at random.

    :param login: returns a new client of a proxy
    :param names: the names that they use
    """

    def __init__(
        self,
        login: list[Callable[[], Client]],
        container: str,
        names: list[str],
        seed: int,
    ) -> None:
        self.login = login
        self.container = container
        self.names = names
        self.seed = seed
        self.history = History()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    def __enter__(self) -> 'Clients':
        for number in range(4):
            self._start(self._write, number)
        for number in range(2):
            self._start(self._list, number)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for error in self._errors:
            raise error

    def _start(self, work: Callable, number: int) -> None:
        chance = random.Random(f'{self.seed} {work.__name__} {number}')
        client = self.login[number % len(self.login)]()

        def run() -> None:
            try:
                while not self._stop.is_set():
                    work(client, chance)
            except BaseException as error:
                self._errors.append(error)

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def _write(self, client: Client, chance: random.Random) -> None:
        name = chance.choice(self.names)
        method = chance.choice(['PUT'] * 4 + ['DELETE'] * 3 + ['POST', 'GET'])
        body = b'x' * chance.randrange(1, 1000) if method == 'PUT' else b''
        headers = {'X-Object-Meta-A': 'a'} if method == 'POST' else {}
        began = time.monotonic()
        answer = client.request(
            method, self.container, name, body=body, headers=headers
        )
        ended = time.monotonic()
        self.history.count(method)
        if method == 'GET':
            shown = answer.body if answer.status == 200 else ABSENT
            self.history.read(began, ended, 'GET', {name: shown})
        elif method != 'POST':
            if answer.status in (202, 409):
                return  # a later write was there already
            state = body if method == 'PUT' else ABSENT
            is_sure = answer.status in (201, 204, 404)
            # One that was not acknowledged may still happen.
            end = ended if is_sure else float('inf')
            self.history.wrote(name, Write(began, end, state, is_sure))

    def _list(self, client: Client, chance: random.Random) -> None:
        limit = chance.choice([3, 7, 100])
        is_reverse = chance.random() < 0.2
        query = {'format': 'json', 'limit': limit}
        if is_reverse:
            query['reverse'] = 'true'
        sizes: dict[str, int] = {}
        began = time.monotonic()
        while True:
            answer = client.get(self.container, query=query)
            self.history.count('listing')
            if answer.status != 200:
                self.history.refuse(f'listing: {answer.status}')
                return
            rows = answer.json()
            names = [row['name'] for row in rows]
            listed = [*sizes, *names]
            if listed != sorted(set(listed), reverse=is_reverse):
                self.history.violations.append(f'listed in order: {listed}')
            sizes.update((row['name'], row['bytes']) for row in rows)
            if len(rows) < limit:
                break
            query['marker'] = names[-1]
        ended = time.monotonic()
        shown = {name: sizes.get(name, ABSENT) for name in self.names}
        self.history.read(began, ended, 'listing', shown)
