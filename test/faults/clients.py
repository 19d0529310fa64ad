# SPDX-License-Identifier: Apache-2.0
"""Clients that work on the containers of a cell, in separate processes."""

import json
import math
import multiprocessing
import random
import threading
import time
from typing import NamedTuple

from test.functional.client import Answer, Client
from test.functional.conftest import SHARD_COUNT_HEADER
from test.functional.history import (
    ACKNOWLEDGED,
    META,
    Worker,
    etag_of_parts,
)
from test.history import History, Read, Shown, Write

#: Objects that are written before the fault; some of them are copied.
KEPT = tuple(f'kept{number:03}' for number in range(24))
SOURCES = KEPT[:4]
#: Objects that clients write all the time.
HOT = tuple(f'o{number:02}' for number in range(12))

#: The actions of a client, with their relative frequency.
WORK = {
    'GET': 120,
    'HEAD': 40,
    'PUT': 6,
    'POST': 2,
    'DELETE': 2,
    'walk': 3,
    '_copy': 1,
    '_bulk': 0.3,
    '_parts': 0.3,
}
NAMES_WORK = {
    ('HEAD', None): 4,
    ('GET', None): 4,
    ('PUT', None): 3,
    ('DELETE', None): 3,
    ('GET', 'o'): 2,
    ('PUT', 'o'): 2,
    ('DELETE', 'o'): 3,
}
BULK_NAMES = 3

#: The share of actions that write an object under a new name.
NEW_SHARE = 0.05

#: The share of actions that write an object that expires, and after how many
#: seconds it expires. Object servers compare whole seconds.
EXPIRING_SHARE = 0.1
LIFE_SECONDS = (2, 6)
ROUNDING_SECONDS = 1.1

SEGMENTS = '{}+segments'

_context = multiprocessing.get_context('spawn')


class Job(NamedTuple):
    """The work of one client.

    :param client: the storage URL of the account at a proxy, and the token
    :param container: the container
    :param by: the client's name
    :param seed: the seed of all random choices
    :param kept: the names of the objects that are only read
    :param expires: True if some of its objects expire
    :param is_new: True if some of its objects are written only once
    :param again: containers to create and delete again and again
    :param shards: the shard count of these containers, 0 for plain ones
    :param races: True if other clients create and delete them, too
    """

    client: tuple[str, str]
    container: str
    by: str
    seed: int
    kept: tuple[str, ...] = KEPT
    expires: bool = False
    is_new: bool = False
    again: tuple[str, ...] = ()
    shards: int = 0
    races: bool = False

    def worker(self) -> Worker:
        """Return the client that does the work."""
        kind = NamesWorker if self.again else ObjectWorker
        return kind(self)


class ObjectWorker(Worker):
    """A client that writes and reads objects in all ways that Swift offers."""

    def __init__(self, job: Job) -> None:
        names = [*job.kept, *HOT]
        client = Client(*job.client)
        super().__init__(client, job.container, names, job.seed, job.by)
        self._expires = job.expires
        self._is_new = job.is_new

    def work(self) -> None:
        """Write, read or delete an object, or list all."""
        if self._expires and self._chance.random() < EXPIRING_SHARE:
            return self._expire()
        if self._is_new and self._chance.random() < NEW_SHARE:
            return self._create()
        (what,) = self._chance.choices(list(WORK), WORK.values())
        if what in ('GET', 'HEAD'):
            return self._read(what, self._chance.choice(self.names))
        if what == 'walk':
            return self.walk()
        name = self._chance.choice(HOT)
        if what in ACKNOWLEDGED:
            return self._write(what, name)
        return getattr(self, what)(name)

    def put(self, name: str, **headers: str) -> bool:
        """Write an object with its name as the body."""
        body = name.encode()
        headers = {META: name, **headers}
        began = time.monotonic()
        answer = self._request('PUT', 'PUT', name, body=body, headers=headers)
        return self._wrote('PUT', name, began, answer, body, name)

    def _text(self) -> str:
        self._number += 1
        return f'{self.by}-{self._number}'

    def _copy(self, name: str) -> None:
        source, text = self._chance.choice(SOURCES), self._text()
        headers = {
            'Destination': f'{self.container}/{name}',
            'X-Fresh-Metadata': 'true',
            META: text,
        }
        began = time.monotonic()
        answer = self._request('COPY', 'COPY', source, headers=headers)
        self._wrote('PUT', name, began, answer, source.encode(), text)

    def _bulk(self, name: str) -> None:
        """Delete some objects with one request."""
        names = {name, *self._chance.sample(HOT, BULK_NAMES)}
        began = time.monotonic()
        answer = self._send(
            'bulk-delete',
            'POST',
            query='bulk-delete',
            headers={'Accept': 'application/json'},
            body='\n'.join(f'{self.container}/{n}' for n in names).encode(),
        )
        told = answer.json() if answer and answer.status == 200 else {}
        errors = {
            path.rpartition('/')[2] for path, _ in told.get('Errors', ())
        }
        done = told.get('Number Deleted', 0) + told.get('Number Not Found', 0)
        is_told = done + len(errors) == len(names)
        for each in names:
            is_gone = is_told and each not in errors
            gone = Answer(204, {}, b'') if is_gone else None
            self._wrote('DELETE', each, began, gone)

    def _parts(self, name: str) -> None:
        """Write an object in two parts (SLO)."""
        text, segments = self._text(), SEGMENTS.format(self.container)
        manifest = []
        for number in (1, 2):
            path = f'{text}/{number}'
            answer = self._send(
                'part', 'PUT', segments, path, body=path.encode()
            )
            if not answer or answer.status != 201:
                return
            manifest.append({'path': f'/{segments}/{path}'})
        body = f'{text}/1{text}/2'.encode()
        began = time.monotonic()
        answer = self._request(
            'manifest',
            'PUT',
            name,
            query='multipart-manifest=put',
            headers={META: text},
            body=json.dumps(manifest).encode(),
        )
        etag = etag_of_parts(body)
        self._wrote('PUT', name, began, answer, body, text, etag)

    def _create(self) -> None:
        """Write an object under a unique name."""
        name = f'n-{self._text()}'
        self.names.append(name)
        self.put(name)

    def _expire(self) -> None:
        """Write an object that expires, under a unique name."""
        name = f'x-{self._text()}'
        seconds = self._chance.randint(*LIFE_SECONDS)
        began = time.monotonic()
        self.put(name, **{'X-Delete-After': str(seconds)})
        ended = time.monotonic()
        self.names.append(name)
        self.history.wrote(
            Write(
                name,
                'DELETE',
                began + seconds - ROUNDING_SECONDS,
                ended + seconds + ROUNDING_SECONDS,
                listed=math.inf,
                by='expiry',
            )
        )


class NamesWorker(Worker):
    """A client that creates and deletes containers of the same few names.

    In the history, a container is an object with its name. Unless the job
    races, no other client uses these containers, and a container is deleted
    only if its object was surely deleted: Swift revives a container whose rows
    arrive late.

    For containers that several clients use, the history only counts requests,
    since a late row makes any response possible.
    """

    def __init__(self, job: Job) -> None:
        client = Client(*job.client)
        super().__init__(client, '', list(job.again), job.seed, job.by)
        self._headers = shard_headers(job.shards)
        self._races = job.races
        self._filled: set[str] = set()

    def work(self) -> None:
        """Write, read or delete a container or the object in it."""
        self.container = self._chance.choice(self.names)
        ((method, name),) = self._chance.choices(
            list(NAMES_WORK), NAMES_WORK.values()
        )
        if method == 'DELETE' and name is None:
            name = 'o' if self.container in self._filled else None
        self._do(method, name)

    def read_all(self) -> None:
        """Read all containers."""
        for container in self.names:
            self.container = container
            self._do('HEAD', None)
            self._do('GET', None)

    def _do(self, method: str, name: str | None) -> None:
        key = '/'.join(filter(None, (self.container, name)))
        is_create = method == 'PUT' and name is None
        headers = self._headers if is_create else {}
        query = {'format': 'json'} if method == 'GET' and not name else None
        kind = 'object' if name else 'container'
        if method == 'PUT' and name:
            self._filled.add(self.container)
        began = time.monotonic()
        answer = self._request(
            f'{method} {kind}', method, name, headers=headers, query=query
        )
        ended = time.monotonic()
        if self._races:
            return
        status = answer.status if answer else 0
        if method in ('GET', 'HEAD'):
            shown = Shown() if status in (200, 204) else None
            seen = {key: shown}
            if status == 200 and query:
                is_listed = bool(answer.json())
                seen[f'{key}/o'] = Shown() if is_listed else None
            if status in (200, 204, 404):
                self.history.read(
                    Read(
                        f'{method} {kind}',
                        began,
                        ended,
                        seen,
                        not name,
                        by=self.by,
                    )
                )
            return
        # A PUT of an object gets a 404 if the container is missing. A PUT of
        # a container that gets a 404 may have created the container.
        is_lacking = status == 404 and method == 'PUT' and name
        is_refused = status == 409 or is_lacking
        if is_refused:
            return
        is_sure = status in (201, 204) or (status == 202 and is_create)
        if is_sure and method == 'DELETE' and name:
            self._filled.discard(self.container)
        self.history.wrote(
            Write(key, method, began, ended, is_sure=is_sure, by=self.by)
        )


class ClientProcess:
    """A process that does several jobs at the same time until it is ended."""

    def __init__(self, jobs: list[Job]) -> None:
        self._stop = _context.Event()
        self._answers, answers = _context.Pipe(duplex=False)
        self._process = _context.Process(
            target=_work, args=(jobs, self._stop, answers)
        )

    def __enter__(self) -> 'ClientProcess':
        self._process.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        if exc_info[0]:
            # It cannot end by itself: its histories are not received.
            self._process.terminate()
        self._process.join()

    def wait_until_at_work(self) -> None:
        """Wait until all clients have begun to work."""
        self._answers.recv()

    def finish(self) -> tuple[dict[Job, tuple[History, list[str]]], list[str]]:
        """End the work.

        :returns: the histories and names of all jobs, and the errors that
                  ended a client
        """
        self._stop.set()
        return self._answers.recv()


def _work(jobs: list[Job], stop, answers) -> None:
    workers = {job: job.worker() for job in jobs}

    errors: list[str] = []

    def run(worker: Worker) -> None:
        try:
            while not stop.is_set():
                worker.work()
        except Exception as err:
            errors.append(f'{worker.container}: {worker.by} ended: {err!r}')

    threads = [
        threading.Thread(target=run, args=(worker,))
        for worker in workers.values()
    ]
    for thread in threads:
        thread.start()
    answers.send('at work')
    for thread in threads:
        thread.join()
    found = {job: (each.history, each.names) for job, each in workers.items()}
    answers.send((found, errors))


def shard_headers(shards: int) -> dict[str, str]:
    """Return the headers that create a container with a shard count.

    :param shards: 0 for a plain container
    """
    return {SHARD_COUNT_HEADER: str(shards)} if shards else {}


def chance_of(*parts: object) -> random.Random:
    """Return a random generator with a seed made of these parts."""
    return random.Random(' '.join(map(str, parts)))
