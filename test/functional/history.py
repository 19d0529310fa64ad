# SPDX-License-Identifier: Apache-2.0
"""Clients of one container that work at random and record what they see.

:mod:`test.history` checks the records.
"""

import hashlib
import http.client
import random
import threading
import time
from collections.abc import Callable, Iterable

from test.functional.client import Answer, Client
from test.history import History, Read, Shown, Write

#: The methods of a client's requests, with their weights.
WORK = {
    'PUT': 8,
    'DELETE': 5,
    'POST': 3,
    'GET': 2,
    'HEAD': 2,
}
PAGE_LIMITS = (3, 7, 100)
MOST_BYTES = 1000

#: How long a client of :class:`Clients` thinks between two requests.
THINK_SECONDS = 0.1

#: How long to wait for a proxy that does not answer.
AWAY_SECONDS = 0.2

META = 'X-Object-Meta-A'

#: The answers to requests that exceed a limit.
RATE_LIMITED = (429, 498)

#: The answers that acknowledge a write. A DELETE of an object that does not
#: exist leaves a tombstone.
ACKNOWLEDGED = {'PUT': {201}, 'DELETE': {204, 404}, 'POST': {202}}

#: The answers to writes that had no effect: a later write was already there,
#: or there was no object.
WITHOUT_EFFECT = {'PUT': {409}, 'DELETE': {409}, 'POST': {404, 409}}


class Worker:
    """A client that works on a few names of one container at random.

    :param names: the names of its objects
    :param by: the client's own name
    :param max_age: how many seconds old the pages of its walks may be
    :param headers: sent with its requests for pages
    """

    def __init__(
        self,
        client: Client,
        container: str,
        names: list[str],
        seed: int,
        by: str,
        max_age: float = 0,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.client = client
        self.container = container
        self.names = names
        self.by = by
        self.max_age = max_age
        self.headers = headers or {}
        self.history = History()
        self._chance = random.Random(f'{seed} {by}')
        self._number = 0

    def work(self) -> None:
        """Write or read an object."""
        name = self._chance.choice(self.names)
        (method,) = self._chance.choices(list(WORK), WORK.values())
        if method in ('GET', 'HEAD'):
            self._read(method, name)
        else:
            self._write(method, name)

    def walk(self) -> None:
        """List the container, page by page."""
        limit = self._chance.choice(PAGE_LIMITS)
        is_reverse = self._chance.random() < 0.2
        query = {'format': 'json', 'limit': limit}
        if is_reverse:
            query['reverse'] = 'true'
        listed: list[str] = []
        first = time.monotonic() - self.max_age
        is_last = False
        while not is_last:
            marker = query['marker'] = listed[-1] if listed else ''
            began = time.monotonic() - self.max_age
            answer = self._request(
                'page', 'GET', query=query, headers=self.headers
            )
            ended = time.monotonic()
            if answer is None or answer.status >= 500:
                return
            if answer.status != 200:
                self._not_listed(answer.status, began, ended)
                return
            rows = [(row['name'], row['bytes']) for row in answer.json()]
            is_last = len(rows) < limit
            page = Read('page', began, ended, {}, by=self.by)
            self.history.page(
                page, rows, self.names, marker, is_last, is_reverse
            )
            listed += [name for name, _ in rows]
        walk = Read('walk', first, ended, {}, by=self.by)
        self.history.walked(walk, listed, self.names)

    def _not_listed(self, status: int, began: float, ended: float) -> None:
        """Record that a container seems to be missing, or to be hidden."""
        if status not in RATE_LIMITED:
            shown = dict.fromkeys(self.names)
            read = Read(f'listing: {status}', began, ended, shown, by=self.by)
            self.history.read(read)

    def read_all(self) -> None:
        """Walk, and read all objects."""
        self.walk()
        for name in self.names:
            self._read('HEAD', name)

    def _request(self, what: str, method: str, *args, **kwargs):
        """Send a request for the container or an object in it."""
        return self._send(what, method, self.container, *args, **kwargs)

    def _send(self, what: str, method: str, *args, **kwargs) -> Answer | None:
        """Send a request; return None if the proxy does not answer it."""
        self.history.counts[what] += 1
        status: object = 'no answer'
        answer: Answer | None = None
        try:
            answer = self.client.request(method, *args, **kwargs)
            status = answer.status
        except (OSError, http.client.HTTPException):
            self.client.close()
            time.sleep(AWAY_SECONDS)
        if answer is None or answer.status >= 500:
            self.history.refused[f'{what}: {status}'] += 1
        return answer

    def _read(self, method: str, name: str) -> None:
        began = time.monotonic()
        answer = self._request(method, method, name)
        ended = time.monotonic()
        if answer is None or answer.status not in (200, 404):
            return
        shown = None
        if answer.status == 200:
            etag = answer.headers['etag'].strip('"')
            is_whole = method == 'HEAD' or etag == etag_of(answer)
            meta = answer.headers.get(META.lower(), '')
            shown = Shown(etag if is_whole else 'another body', meta)
        self.history.read(
            Read(method, began, ended, {name: shown}, by=self.by)
        )

    def _write(self, method: str, name: str) -> None:
        self._number += 1
        value = f'{self.by} {self._number}'
        body, headers = b'', {}
        if method == 'PUT':
            length = self._chance.randrange(MOST_BYTES)
            body = value.encode() + b'.' * length
        if method != 'DELETE':
            headers[META] = value
        began = time.monotonic()
        answer = self._request(
            method, method, name, body=body, headers=headers
        )
        self._wrote(method, name, began, answer, body, headers.get(META, ''))

    def _wrote(
        self,
        method: str,
        name: str,
        began: float,
        answer: Answer | None,
        body: bytes = b'',
        meta: str = '',
        value: str | None = None,
    ) -> bool:
        """Record a write; return True if it was acknowledged.

        :param value: the ETag, if it is not that of the body
        """
        status = answer and answer.status
        if status in WITHOUT_EFFECT[method]:
            return False
        is_sure = status in ACKNOWLEDGED[method]
        if value is None:
            value = etag_of_body(body) if method == 'PUT' else ''
        self.history.wrote(
            Write(
                name,
                method,
                began,
                time.monotonic(),
                value,
                len(body),
                meta,
                is_sure,
                by=self.by,
            )
        )
        return is_sure


def etag_of(answer: Answer) -> str:
    """Return the ETag that belongs to an answer's body."""
    if 'x-static-large-object' in answer.headers:
        return etag_of_parts(answer.body)
    return etag_of_body(answer.body)


def etag_of_parts(body: bytes) -> str:
    """Return the ETag of an object that was uploaded in two halves."""
    half = len(body) // 2
    etags = map(etag_of_body, (body[:half], body[half:]))
    return etag_of_body(''.join(etags).encode())


def etag_of_body(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def merged(workers: Iterable[Worker]) -> History:
    """Return what several clients have recorded."""
    history = History()
    for worker in workers:
        history.add(worker.history)
    return history


class Clients:
    """Threads that work on a few names of one container at random.

    :param login: functions that return a new client, one for each proxy
    :param names: the names of their objects
    """

    def __init__(
        self,
        login: list[Callable[[], Client]],
        container: str,
        names: list[str],
        seed: int,
    ) -> None:
        self.workers = [
            Worker(
                login[number % len(login)](),
                container,
                names,
                seed,
                f'{kind}{number}',
            )
            for kind, count in (('writer', 4), ('lister', 2))
            for number in range(count)
        ]
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    @property
    def history(self) -> History:
        """Return what all clients have recorded."""
        return merged(self.workers)

    def __enter__(self) -> 'Clients':
        for worker in self.workers:
            is_lister = worker.by.startswith('lister')
            work = worker.walk if is_lister else worker.work
            thread = threading.Thread(target=self._run, args=(work,))
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for error in self._errors:
            raise error

    def _run(self, work: Callable[[], None]) -> None:
        try:
            while not self._stop.is_set():
                work()
                time.sleep(THINK_SECONDS)
        except BaseException as error:
            self._errors.append(error)
