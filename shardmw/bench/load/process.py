# SPDX-License-Identifier: Apache-2.0
"""One client process: many clients in one event loop.

What goes through a process's pipe: a load and the process's share of it; back
:data:`CONNECTED`; when to begin; back samples now and then, if they are
wanted; back an :class:`Answer`, or a BenchError, which is the last. A
:class:`Stop` may come at any time, and leads to that.
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
from shardmw.bench.load.connection import Connection, Exchange
from shardmw.bench.load.definition import AT_ONCE, RETRY_AFTER, Load, Share
from shardmw.bench.load.outcome import Usage
from shardmw.bench.load.samples import LOST, REFUSALS, UNANSWERED, Samples
from shardmw.bench.load.sources import Request
from shardmw.bench.load.urls import tls_context

CONNECTED = 'connected'

# How often a process tells what was done.
_PROGRESS_SECONDS = 0.2

# How long a client waits after its connection failed.
_LOST_SECONDS = 0.5

_SCHEDULE = Path('/proc/self/schedstat')
_NANOSECONDS = 1_000_000_000


class Begin(NamedTuple):
    """When to begin, on the monotonic clock.

    :param is_watched: whether to tell what was done until the end
    """

    when: float
    is_watched: bool


class Stop(NamedTuple):
    """The word that ends a load.

    :param drain_seconds: how long to wait for the last answers
    """

    drain_seconds: float


class Answer(NamedTuple):
    """What came of a process's share of a load.

    :param samples: those that were not told before
    :param is_exhausted: whether it ended since there were no more requests
    """

    samples: Samples
    usage: Usage
    is_exhausted: bool


def serve(pipe: Pipe) -> None:
    """Run loads until nobody sends any."""
    signals.ignore()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            word = pipe.recv()
            # a load may have ended before it was told to
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
    # a load that did not begin has no answer
    return None if isinstance(word, Stop) else await clients.run(*word)


class _Clients:
    """A process's share of a load.

    :raises BenchError: if the URL of a proxy is none
    """

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
        #: from when on nothing more is sent, on the monotonic clock
        self._stop = math.inf
        #: set when no more requests are sent, and when all have answers
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
        """Connect all clients.

        :raises BenchError: if a proxy does not accept a connection
        """
        for connection in self._connections.values():
            await connection.connect()

    async def run(self, begin: float, is_watched: bool) -> Answer:
        """Do it; the parameters are those of :class:`Begin`."""
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
        """Send a client's next request, if there is one."""
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
        self, connection: Connection, request: Request, exchange: Exchange
    ) -> None:
        """Record what came of a request, and have the client go on."""
        self._unanswered -= 1
        self._samples.append(
            *(request.kind, request.number),
            *exchange,
            request.body_bytes or 0,
        )
        self._note_answer(request, exchange.status)
        if not self._over.is_set():
            ready = max(
                exchange.end + self._pause_after(exchange),
                exchange.start + self._load.pace_seconds,
            )
            self._ask_at(ready, connection)
        elif not self._unanswered:
            self._drained.set()

    def _pause_after(self, exchange: Exchange) -> float:
        load = self._load
        if exchange.status == LOST:
            return _LOST_SECONDS
        if exchange.status not in REFUSALS or load.on_refusal == AT_ONCE:
            return 0.0
        told = not math.isnan(exchange.retry_after)
        if load.on_refusal == RETRY_AFTER and told:
            return exchange.retry_after
        return load.backoff_seconds

    def _hear(self) -> None:
        """Stop, as the pipe says; at once if nobody waits for an answer."""
        try:
            self._drain_seconds = self._pipe.recv().drain_seconds
        except EOFError:
            self._drain_seconds = 0
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        self._over.set()

    def _fail(self, _loop: object, context: dict) -> None:
        """End, since a request could not be made."""
        self._failure = context.get('exception') or BenchError(
            context['message']
        )
        self._over.set()

    async def _tell_progress(self, is_watched: bool) -> None:
        while is_watched:
            await asyncio.sleep(_PROGRESS_SECONDS)
            part, self._samples = self._samples, Samples()
            self._pipe.send(part)


def _queued_seconds() -> float:
    """Return how long this process could have run and did not."""
    try:
        return int(_SCHEDULE.read_text().split()[1]) / _NANOSECONDS
    except (OSError, ValueError, IndexError):
        return 0.0
