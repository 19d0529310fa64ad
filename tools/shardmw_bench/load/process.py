# SPDX-License-Identifier: Apache-2.0
"""One client process: many clients in one event loop."""

import asyncio
import math
import multiprocessing
import os
import threading
import time
from multiprocessing.context import BaseContext
from pathlib import Path

from shardmw_bench import signals
from shardmw_bench.load.connection import Connection, tls_context
from shardmw_bench.load.outcome import LOST, UNANSWERED, Sample, packed
from shardmw_bench.load.sources import AT_ONCE, RETRY_AFTER, Load

# How often a process checks whether its load begins or ends.
_BEGIN_POLL_SECONDS = 0.002
_END_POLL_SECONDS = 0.05

# The time between two reports of the progress.
_PROGRESS_SECONDS = 0.2

# The time that a client waits after its connection failed.
_LOST_SECONDS = 0.5


class Control:
    """The memory that client processes share with their parent.

    :ivar connected: how many processes are ready to begin
    :ivar begin: when the load begins (monotonic); 0 until that is known
    :ivar end: when to stop sending requests (monotonic)
    :ivar drain_seconds: how long to wait for the last responses
    :ivar progress: takes packed samples of a watched load. The parent has to
                    read them, or the pipe becomes full and the load stops.
    """

    def __init__(self, context: BaseContext) -> None:
        self.connected = context.Value('i')
        self.begin = context.RawValue('d')
        self.end = context.RawValue('d')
        self.drain_seconds = context.RawValue('d')
        self.is_watched = context.RawValue('b')
        self.progress = context.SimpleQueue()


#: The result of a process: packed samples, the share of the time in which it
#: ran or waited for a processor, and True if there were no more requests.
Answer = tuple[bytes, float, bool]


def start(control: Control) -> None:
    """Prepare a new client process."""
    global _control
    _control = control
    signals.ignore()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def run_share(load: Load, index: int, processes: int) -> Answer | None:
    """Run the share of one of several processes in a load.

    :returns: None if the load was ended before it began
    :raises BenchError: if the clients cannot connect
    """
    return asyncio.run(_Share(load, index, processes).run())


class _Share:
    def __init__(self, load: Load, index: int, processes: int) -> None:
        self._load = load
        self._source = load.source.requests(index, processes)
        self._note_answer = getattr(
            self._source, 'answered', lambda request, status: None
        )
        self._left = math.inf
        if load.count is not None:
            self._left = len(range(index, load.count, processes))
        self._samples = bytearray()
        #: how many bytes of samples the parent has already got
        self._told = 0
        is_tls = any(url.startswith('https:') for url in load.urls)
        tls = tls_context(load.insecure) if is_tls else None
        self._connections = {
            number: Connection(
                load.urls[number % len(load.urls)], load.token, tls
            )
            for number in range(index, load.clients, processes)
        }

    async def run(self) -> Answer | None:
        for connection in self._connections.values():
            await connection.connect()
        with _control.connected:
            _control.connected.value += 1
        while not (begin := _control.begin.value):
            if _control.end.value < time.monotonic():
                return None
            await asyncio.sleep(_BEGIN_POLL_SECONDS)
        time.sleep(max(0, begin - time.monotonic()))
        cpu, queued = time.process_time(), _queued_seconds()
        #: is set when no more requests are sent
        self._over = asyncio.get_running_loop().create_future()
        step = self._load.pace_seconds / self._load.clients
        clients = {
            asyncio.create_task(self._be_client(connection, begin + i * step))
            for i, connection in self._connections.items()
        }
        for client in clients:
            client.add_done_callback(self._stop_sending)
        await self._watch()
        over_at = time.monotonic()
        _, late = await asyncio.wait(clients, timeout=0)
        # an interrupted load shortens the drain
        while late and time.monotonic() < (
            over_at + _control.drain_seconds.value
        ):
            _, late = await asyncio.wait(late, timeout=_END_POLL_SECONDS)
        for client in late:
            client.cancel(UNANSWERED)
        await asyncio.wait(clients)
        for client in clients:
            if not client.cancelled():
                client.result()
        for connection in self._connections.values():
            connection.close()
        if _control.is_watched.value:
            await self._tell_progress()
        used = time.process_time() - cpu + _queued_seconds() - queued
        busy_share = used / max(time.monotonic() - begin, 1e-9)
        return bytes(self._samples), busy_share, self._left <= 0

    async def _be_client(self, connection: Connection, ready: float) -> None:
        """Send one request after the other, the first one at a time."""
        load = self._load
        while (start := await self._start_at(ready)) is not None:
            request = next(self._source, None)
            self._left = 0 if request is None else self._left - 1
            if request is None:
                return
            if self._left <= 0:
                self._stop_sending()
            sample = await connection.send(
                request, start, load.timeout_seconds
            )
            self._samples += packed(*sample)
            self._note_answer(request, sample.status)
            ready = max(
                sample.end + self._pause_after(sample),
                sample.start + load.pace_seconds,
            )

    async def _start_at(self, moment: float) -> float | None:
        """Wait until then; return the time, or None if the load is over."""
        pause = moment - time.monotonic()
        if pause > 0 and not self._over.done():
            await asyncio.wait([self._over], timeout=pause)
        now = time.monotonic()
        is_late = now >= _control.end.value
        is_over = self._over.done() or is_late or self._left <= 0
        return None if is_over else now

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

    async def _watch(self) -> None:
        due = time.monotonic()
        while not self._over.done():
            left = _control.end.value - time.monotonic()
            if left <= 0:
                self._stop_sending()
            elif _control.is_watched.value and time.monotonic() >= due:
                await self._tell_progress()
                due += _PROGRESS_SECONDS
            await asyncio.wait(
                [self._over], timeout=min(left, _END_POLL_SECONDS)
            )

    async def _tell_progress(self) -> None:
        news = bytes(self._samples[self._told :])
        self._told = len(self._samples)
        # a thread waits until the parent has room for them
        await asyncio.to_thread(_control.progress.put, news)

    def _stop_sending(self, *_: object) -> None:
        if not self._over.done():
            self._over.set_result(None)


def _queued_seconds() -> float:
    try:
        schedule = Path('/proc/self/schedstat').read_text()
        return int(schedule.split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
