# SPDX-License-Identifier: Apache-2.0
"""One client process: many clients in one event loop.

A process receives a load and its share of it through a pipe, and sends
:data:`CONNECTED`. It receives :class:`Begin`, sends samples from time to time
if they are wanted, and ends with an :class:`Answer` or a BenchError. A
:class:`Stop` may come at any time.
"""

import asyncio
import contextlib
import math
import time
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import NamedTuple

from shardmw.bench import signals
from shardmw.bench.errors import BenchError
from shardmw.bench.load.connection import Connection
from shardmw.bench.load.definition import AT_ONCE, RETRY_AFTER, Load, Share
from shardmw.bench.load.outcome import Usage
from shardmw.bench.load.samples import LOST, UNANSWERED, Sample, Samples
from shardmw.bench.load.sources import Request
from shardmw.bench.load.urls import tls_context

CONNECTED = 'connected'

# The time between two messages with samples.
_PROGRESS_SECONDS = 0.2

# The time that a client waits after its connection failed.
_LOST_SECONDS = 0.5

_SCHEDULE = Path('/proc/self/schedstat')


class Begin(NamedTuple):
    """Begin the load at a time on the monotonic clock.

    :param is_watched: True to send samples while the load runs. The pipe has
                       to be read then, or it becomes full and the load stops.
    """

    when: float
    is_watched: bool


class Stop(NamedTuple):
    """End the load, and wait so long for the last responses."""

    drain_seconds: float


class Answer(NamedTuple):
    """The result of a process's share of a load.

    :param samples: those that were not sent before
    :param is_exhausted: True if there were no more requests
    """

    samples: Samples
    usage: Usage
    is_exhausted: bool


def serve(pipe: Pipe) -> None:
    """Run the loads that come through a pipe, until it is closed."""
    signals.ignore()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            word = pipe.recv()
            # a Stop may come after the end of a load
            if not isinstance(word, Stop):
                pipe.send(asyncio.run(_answer(pipe, *word)))


async def _answer(pipe: Pipe, load: Load, share: Share) -> object:
    try:
        clients = _Clients(pipe, load, share)
        await clients.connect()
    except BenchError as err:
        return err
    pipe.send(CONNECTED)
    word = pipe.recv()
    return None if isinstance(word, Stop) else await clients.run(*word)


class _Clients:
    """The clients of a process."""

    def __init__(self, pipe: Pipe, load: Load, share: Share) -> None:
        self._pipe = pipe
        self._load = load
        self._source = load.source.requests(share.index, share.processes)
        self._note_answer = getattr(
            self._source, 'answered', lambda request, status: None
        )
        self._left = math.inf
        if load.count is not None:
            self._left = len(share.of(load.count))
        self._samples = Samples()
        #: when to send no more requests, on the monotonic clock
        self._stop = math.inf
        #: set at the last request, and at the last response
        self._over, self._drained = asyncio.Event(), asyncio.Event()
        self._unanswered = 0
        self._failure: BaseException | None = None
        self._drain_seconds = load.drain_seconds
        tls = None
        if any(url.startswith('https:') for url in load.urls):
            tls = tls_context(load.insecure)
        self._connections = {
            number: Connection(
                load.urls[number % len(load.urls)],
                *(load.token, load.timeout_seconds, tls, self._ended),
            )
            for number in share.of(load.clients)
        }

    async def connect(self) -> None:
        """Connect all clients; raise BenchError if that fails."""
        for connection in self._connections.values():
            await connection.connect()

    async def run(self, begin: float, is_watched: bool) -> Answer:
        """Run the load; the parameters are those of :class:`Begin`."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pipe.fileno(), self._hear)
        time.sleep(max(0, begin - time.monotonic()))
        cpu, queued = time.process_time(), _queued_seconds()
        if self._load.seconds is not None:
            self._stop = begin + self._load.seconds
            loop.call_later(self._stop - time.monotonic(), self._over.set)
        loop.set_exception_handler(self._fail)
        watcher = loop.create_task(self._tell_progress(is_watched))
        step = self._load.pace_seconds / self._load.clients
        for number, connection in self._connections.items():
            self._ask_at(begin + number * step, connection)
        await self._over.wait()
        self._stop = -math.inf
        if self._unanswered:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(
                    self._drained.wait(), self._drain_seconds
                )
        for connection in self._connections.values():
            connection.abort(UNANSWERED)
        if self._failure is not None:
            raise self._failure
        watcher.cancel()
        loop.remove_reader(self._pipe.fileno())
        usage = Usage(
            time.process_time() - cpu,
            _queued_seconds() - queued,
            time.monotonic() - begin,
        )
        return Answer(self._samples, usage, self._left <= 0)

    def _ask_at(self, moment: float, connection: Connection) -> None:
        pause = moment - time.monotonic()
        if pause > 0:
            loop = asyncio.get_running_loop()
            loop.call_later(pause, self._ask, connection)
        else:
            self._ask(connection)

    def _ask(self, connection: Connection) -> None:
        """Send the next request of a client, if there is one."""
        now = time.monotonic()
        if now < self._stop and self._left > 0:
            request = next(self._source, None)
            self._left = 0 if request is None else self._left - 1
            if request is not None:
                self._unanswered += 1
                connection.send(request, now)
        if self._left <= 0:
            self._over.set()

    def _ended(
        self, connection: Connection, request: Request, sample: Sample
    ) -> None:
        """Record a request, and let the client continue."""
        self._unanswered -= 1
        self._samples.append(*sample)
        self._note_answer(request, sample.status)
        if not self._over.is_set():
            ready = max(
                sample.end + self._pause_after(sample),
                sample.start + self._load.pace_seconds,
            )
            self._ask_at(ready, connection)
        elif not self._unanswered:
            self._drained.set()

    def _pause_after(self, sample: Sample) -> float:
        load = self._load
        if sample.status == LOST:
            return _LOST_SECONDS
        if not sample.is_refused or load.on_refusal == AT_ONCE:
            return 0.0
        told = not math.isnan(sample.retry_after)
        if load.on_refusal == RETRY_AFTER and told:
            return sample.retry_after
        return load.backoff_seconds

    def _hear(self) -> None:
        """Stop when told to, or when the other end of the pipe is gone."""
        try:
            self._drain_seconds = self._pipe.recv().drain_seconds
        except EOFError:
            self._drain_seconds = 0
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        self._over.set()

    def _fail(self, _loop: object, context: dict) -> None:
        """End the load, since a request could not be made."""
        message = context['message']
        self._failure = context.get('exception') or BenchError(message)
        self._over.set()

    async def _tell_progress(self, is_watched: bool) -> None:
        while is_watched:
            await asyncio.sleep(_PROGRESS_SECONDS)
            part, self._samples = self._samples, Samples()
            self._pipe.send(part)


def _queued_seconds() -> float:
    """Return how long this process waited for a processor."""
    try:
        return int(_SCHEDULE.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
