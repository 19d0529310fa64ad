# SPDX-License-Identifier: Apache-2.0
"""One client process: many connections in one loop."""

import heapq
import math
import select
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import NamedTuple

from shardmw.bench.connection import Connection, ConnectionLost
from shardmw.bench.errors import BenchError
from shardmw.bench.load import AT_ONCE, RETRY_AFTER, Load, Share, Usage
from shardmw.bench.progress import Progress, progress_of
from shardmw.bench.samples import (
    LOST,
    REFUSALS,
    TIMED_OUT,
    UNANSWERED,
    Samples,
)
from shardmw.bench.tls import tls_context
from shardmw.bench.wire import Reply, address_of

#: How long a client waits after its connection failed.
LOST_SECONDS = 0.5

# How often to look for answers that take too long, and to tell how it goes.
_LOOK_SECONDS = 0.5

_SCHEDULE = Path('/proc/self/schedstat')
_NANOSECONDS = 1_000_000_000


class Stop(NamedTuple):
    """The word that ends a load.

    :param drain_seconds: how long to wait for the last answers
    """

    drain_seconds: float


class Answer(NamedTuple):
    """What came of a process's share of a load.

    :param is_exhausted: whether there were no more requests, so that it ended
    """

    samples: Samples
    usage: Usage
    is_exhausted: bool


class ClientLoop:
    """A process's share of a load.

    :param words: where a :class:`Stop` may come from
    :raises BenchError: if a proxy doesn't accept connections
    """

    def __init__(self, load: Load, share: Share, words: Pipe) -> None:
        self._load = load
        self._samples = Samples()
        self._epoll = select.epoll()
        self._by_descriptor: dict[int, Connection] = {}
        self._source = load.source.requests(share.index, share.processes)
        self._answered = getattr(self._source, 'answered', None)
        self._left = math.inf
        if load.count is not None:
            self._left = len(share.of(load.count))
        #: ``(when, client's number)`` of those that wait to send
        self._waiting: list[tuple[float, int]] = []
        addresses = [address_of(url) for url in load.urls]
        is_tls = any(address.is_tls for address in addresses)
        tls = tls_context(load.insecure) if is_tls else None
        self._connections = {
            number: Connection(
                addresses[number % len(addresses)],
                load.token,
                self._epoll,
                self._by_descriptor,
                tls,
            )
            for number in share.of(load.clients)
        }
        self._numbers = {
            connection: number
            for number, connection in self._connections.items()
        }
        self._unanswered = 0
        self._words = words
        #: tells how it goes on, and how many operations it has told of
        self._tell: Callable[[Progress], None] | None = None
        self._told = 0
        self._drain_seconds = load.drain_seconds
        #: from when on nothing more is sent, on the monotonic clock
        self._stop = math.inf
        self._epoll.register(words.fileno(), select.EPOLLIN)
        try:
            for connection in self._connections.values():
                connection.connect()
        except BenchError:
            self.close()
            raise

    def run(
        self, begin: float, tell: Callable[[Progress], None] | None = None
    ) -> Answer:
        """Do it.

        :param begin: when, on the monotonic clock
        :param tell: is told now and then what was done since the last time
        """
        load = self._load
        self._tell = tell
        time.sleep(max(0, begin - time.monotonic()))
        cpu, queued = time.process_time(), _queued_seconds()
        if load.seconds is not None:
            self._stop = begin + load.seconds
        self._schedule_first(begin)
        try:
            self._send_requests()
            self._stop = -math.inf
            self._receive_the_last()
        finally:
            self.close()
        self._tell_progress()
        usage = Usage(
            time.process_time() - cpu,
            _queued_seconds() - queued,
            time.monotonic() - begin,
        )
        return Answer(self._samples, usage, self._left <= 0)

    def close(self) -> None:
        """Close all connections; what has no answer gets none."""
        now = time.monotonic()
        for connection in self._connections.values():
            if connection.request is not None:
                self._record(connection, now, UNANSWERED)
            connection.close()
        self._epoll.close()

    def _schedule_first(self, begin: float) -> None:
        step = self._load.pace_seconds / self._load.clients
        self._waiting = [
            (begin + number * step, number) for number in self._connections
        ]
        heapq.heapify(self._waiting)

    def _send_requests(self) -> None:
        look = 0.0
        while (now := time.monotonic()) < self._stop:
            if self._left <= 0 and not self._load.ends_when_told:
                return
            while self._waiting and self._waiting[0][0] <= now:
                _, number = heapq.heappop(self._waiting)
                self._send_next(self._connections[number], now)
            if now > look:
                look = now + _LOOK_SECONDS
                self._look(now)
            following = self._waiting[0][0] if self._waiting else math.inf
            self._handle_events(min(following, look, self._stop) - now)

    def _receive_the_last(self) -> None:
        """Wait for the last answers, and send nothing more."""
        over = time.monotonic()
        while self._unanswered:
            now = time.monotonic()
            rest = over + self._drain_seconds - now
            if rest <= 0:
                return
            self._look(now)
            self._handle_events(min(_LOOK_SECONDS, rest))

    def _look(self, now: float) -> None:
        self._give_up_before(now - self._load.timeout_seconds)
        self._tell_progress()

    def _tell_progress(self) -> None:
        if self._tell is not None and len(self._samples) > self._told:
            self._tell(progress_of(self._samples.since(self._told)))
            self._told = len(self._samples)

    def _handle_events(self, seconds: float) -> None:
        for descriptor, event in self._epoll.poll(max(0, seconds)):
            connection = self._by_descriptor.get(descriptor)
            if connection is not None:
                self._handle(connection, event)
            elif descriptor == self._words.fileno():
                self._stop = -math.inf
                self._drain_seconds = self._words.recv().drain_seconds

    def _handle(self, connection: Connection, event: int) -> None:
        try:
            reply = connection.handle(event)
        except ConnectionLost:
            self._lose(connection)
        else:
            if reply is not None:
                self._finish(connection, reply)

    def _send_next(self, connection: Connection, now: float) -> None:
        if self._left <= 0:
            return
        request = next(self._source, None)
        if request is None:
            self._left = 0
            return
        self._left -= 1
        self._unanswered += 1
        try:
            connection.send(request, now)
        except ConnectionLost:
            self._lose(connection)

    def _finish(self, connection: Connection, reply: Reply) -> None:
        now = time.monotonic()
        self._record(connection, now, *reply[:3])
        ready = max(
            now + self._pause_after(reply),
            connection.started + self._load.pace_seconds,
        )
        if ready > now:
            self._wait(connection, ready)
        elif now < self._stop:
            self._send_next(connection, now)

    def _pause_after(self, reply: Reply) -> float:
        load = self._load
        if reply.status not in REFUSALS or load.on_refusal == AT_ONCE:
            return 0.0
        told = not math.isnan(reply.retry_after)
        if load.on_refusal == RETRY_AFTER and told:
            return reply.retry_after
        return load.backoff_seconds

    def _lose(self, connection: Connection) -> None:
        now = time.monotonic()
        connection.close()
        if connection.request is not None:
            self._record(connection, now, LOST)
            self._wait(connection, now + LOST_SECONDS)

    def _give_up_before(self, started: float) -> None:
        """Give up what was sent too long ago."""
        for connection in self._connections.values():
            is_late = connection.started <= started
            if connection.request is not None and is_late:
                connection.close()
                now = time.monotonic()
                self._record(connection, now, TIMED_OUT)
                self._wait(connection, now)

    def _wait(self, connection: Connection, until: float) -> None:
        heapq.heappush(self._waiting, (until, self._numbers[connection]))

    def _record(
        self,
        connection: Connection,
        end: float,
        status: int,
        retry_after: float = math.nan,
        body_bytes: int = 0,
    ) -> None:
        request, connection.request = connection.request, None
        self._unanswered -= 1
        self._samples.append(
            request.kind,
            request.number,
            connection.started,
            connection.sent,
            connection.first_byte,
            end,
            status,
            retry_after,
            body_bytes,
            request.body_bytes or 0,
        )
        if self._answered is not None:
            self._answered(request, status)


def _queued_seconds() -> float:
    """How long this process could have run and did not."""
    try:
        return int(_SCHEDULE.read_text().split()[1]) / _NANOSECONDS
    except (OSError, ValueError, IndexError):
        return 0.0
