# SPDX-License-Identifier: Apache-2.0
"""Client processes, which run one load after the other."""

import contextlib
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

import numpy as np

from shardmw_bench import signals
from shardmw_bench.errors import BenchError, Interrupted
from shardmw_bench.load import process
from shardmw_bench.load.outcome import Outcome, table_of
from shardmw_bench.load.sources import Load

#: Takes the table of the samples since the last call.
OnProgress = Callable[[np.ndarray], None]

# The time between the decision to begin and the start of the load.
_LEAD_SECONDS = 0.05

_CONNECT_SECONDS = 60
_CONNECT_POLL_SECONDS = 0.01
_POLL_SECONDS = 0.1
_PROGRESS_SECONDS = 0.5

# How long an interrupted load waits for its last responses.
_INTERRUPTED_DRAIN_SECONDS = 3.0

# How long a process has, after the drain, to return its result.
_END_SECONDS = 5

# The last response of a load that ends by itself lies within its time.
_AFTER_LAST_SECONDS = 1e-6

_INTERRUPTIONS = (KeyboardInterrupt, Interrupted)


class Clients:
    """Client processes that run one load at a time, for a ``with`` block.

    ``began`` is the start of the last load on the monotonic clock.
    """

    def __init__(self, processes: int) -> None:
        self.began = math.inf
        self._processes = processes
        # not forked, so that they share nothing else with this process
        context = multiprocessing.get_context('spawn')
        self._control = process.Control(context)
        self._pool = ProcessPoolExecutor(
            processes, context, process.start, (self._control,)
        )
        self._shares: list[Future] = []

    def __enter__(self) -> 'Clients':
        return self

    def __exit__(self, *exc_info: object) -> None:
        # the pool forgets its processes when it is broken
        processes = list((self._pool._processes or {}).values())  # noqa: SLF001
        try:
            self._end()
        finally:
            if self._is_running:
                for each in processes:
                    each.kill()
            self._pool.shutdown()

    def begin(
        self, load: Load, on_progress: OnProgress | None = None
    ) -> 'Clients':
        """Begin a load once all its clients are connected; return this.

        :param on_progress: called twice a second during the wait for its end
        :raises BenchError: if they cannot connect
        :raises Interrupted: if a signal came
        """
        # an interrupted caller did not end the last one
        self._end()
        self.began = self._began_at = math.inf
        self._load = load
        self._seconds = load.seconds
        self._on_progress = on_progress
        self._shares = []
        control = self._control
        control.connected.value = 0
        control.begin.value = 0
        control.end.value = math.inf
        control.drain_seconds.value = load.drain_seconds
        control.is_watched.value = on_progress is not None
        processes = min(self._processes, load.clients)
        with self._interruptible():
            # a process cannot start from an incomplete message
            with signals.kept_from_children(), _told_if_ended():
                self._shares = [
                    self._pool.submit(process.run_share, load, i, processes)
                    for i in range(processes)
                ]
            self._await_connections()
            self._began_at = time.time() + _LEAD_SECONDS
            self.began = time.monotonic() + _LEAD_SECONDS
            if load.seconds is not None:
                control.end.value = self.began + load.seconds
            control.begin.value = self.began
        return self

    def run(
        self, load: Load, on_progress: OnProgress | None = None
    ) -> Outcome:
        """Begin a load and wait for its end: see both methods."""
        if load.ends_when_told:
            raise ValueError('this load ends when it is told to')
        return self.begin(load, on_progress).wait()

    def sleep_until(self, seconds: float) -> None:
        """Sleep until so many seconds after the start of the load."""
        time.sleep(max(0, self.began + seconds - time.monotonic()))

    def stop(self) -> Outcome:
        """End a load that has no end of its own; exceptions as in wait."""
        self._control.end.value = time.monotonic()
        self._seconds = self._control.end.value - self.began
        return self.wait()

    def wait(self) -> Outcome:
        """Wait for the end of the load.

        :raises BenchError: if a client process failed
        :raises Interrupted: with the outcome so far, if a signal came
        """
        with self._interruptible():
            self._gather()
        return self._outcome(self._seconds)

    @property
    def _is_running(self) -> bool:
        return not all(share.done() for share in self._shares)

    def _end(self, drain_seconds: float = 0) -> None:
        """End the load if there is one, but leave a process that hangs."""
        self._on_progress = None
        end = self._control.end
        end.value = min(end.value, time.monotonic())
        self._control.drain_seconds.value = drain_seconds
        self._gather(drain_seconds + _END_SECONDS)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """End the load if the block is interrupted; raise Interrupted."""
        try:
            yield
        except _INTERRUPTIONS as err:
            seconds = max(_AFTER_LAST_SECONDS, time.monotonic() - self.began)
            # a second signal does not wait for the last responses
            try:
                self._end(_INTERRUPTED_DRAIN_SECONDS)
            except _INTERRUPTIONS:
                self._end()
            outcome = None
            if self.began < math.inf:
                outcome = self._outcome(min(seconds, self._seconds or seconds))
            number = getattr(err, 'signal_number', None)
            raise Interrupted(number, outcome) from None

    def _await_connections(self) -> None:
        deadline = time.monotonic() + _CONNECT_SECONDS
        while self._control.connected.value < len(self._shares):
            ended, _ = wait(self._shares, _CONNECT_POLL_SECONDS)
            if ended or time.monotonic() > deadline:
                self._end()
                self._answers()
                raise BenchError('a client process hangs: see above')

    def _gather(self, limit_seconds: float = math.inf) -> None:
        given_up_at = time.monotonic() + limit_seconds
        due = time.monotonic() + _PROGRESS_SECONDS
        news = b''
        running = self._shares
        while running and time.monotonic() < given_up_at:
            _, running = wait(running, _POLL_SECONDS)
            with signals.held_back():
                while not self._control.progress.empty():
                    news += self._control.progress.get()
            is_due = time.monotonic() >= due or not running
            if is_due and self._on_progress is not None:
                due += _PROGRESS_SECONDS
                told, news = news, b''
                self._on_progress(table_of(told))

    def _answers(self) -> list[process.Answer]:
        if self._is_running:
            raise BenchError('a client process hangs: see above')
        with _told_if_ended():
            answers = [share.result() for share in self._shares]
        return [answer for answer in answers if answer is not None]

    def _outcome(self, seconds: float | None) -> Outcome:
        answers = self._answers()
        table = table_of(b''.join(part for part, _, _ in answers))
        is_exhausted = all(ended for _, _, ended in answers)
        if is_exhausted:
            last = float(table['end'].max(initial=self.began))
            elapsed = last - self.began + _AFTER_LAST_SECONDS
            seconds = min(seconds or math.inf, elapsed)
        busy = max((share for _, share, _ in answers), default=0.0)
        return Outcome(
            *(self._load.source.kinds, table, self.began, self._began_at),
            *(seconds, busy, self._load.clients, is_exhausted),
        )


@contextlib.contextmanager
def _told_if_ended() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as err:
        raise BenchError('a client process ended: see above') from err
