# SPDX-License-Identifier: Apache-2.0
"""Client processes, which run one load after the other.

:mod:`shardmw.bench.load.process` has their messages.
"""

import contextlib
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait

from shardmw.bench import signals
from shardmw.bench.errors import BenchError, Interrupted
from shardmw.bench.load.definition import Load, Share
from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.process import CONNECTED, Answer, Begin, Stop, serve
from shardmw.bench.load.samples import Samples

#: Takes the samples since the last call.
OnProgress = Callable[[Samples], None]

# The time between the message to begin and the begin.
_LEAD_SECONDS = 0.05

_PROGRESS_SECONDS = 0.5
_CONNECT_SECONDS = 60
_END_SECONDS = 2

# How long an interrupted load waits for its last responses.
_INTERRUPTED_DRAIN_SECONDS = 3.0

# The last response of a load that ends by itself lies within its time.
_AFTER_LAST_SECONDS = 1e-6

_INTERRUPTIONS = (KeyboardInterrupt, Interrupted)


class RunningLoad:
    """A running load: see :meth:`Clients.begin`.

    ``began`` is the time of its begin on the monotonic clock.
    """

    def __init__(
        self, load: Load, pipes: list[Pipe], on_progress: OnProgress | None
    ) -> None:
        self.began = self._began_at = math.inf
        self._load = load
        self._pipes = pipes
        self._on_progress = on_progress
        self._connected: set[Pipe] = set()
        #: the last message of each process
        self._answers: dict[Pipe, object] = {}
        self._samples = Samples()
        #: samples that ``on_progress`` has not been told yet
        self._news = Samples()

    def sleep_until(self, seconds: float) -> None:
        """Sleep until so many seconds after the begin."""
        time.sleep(max(0, self.began + seconds - time.monotonic()))

    def stop(self) -> Outcome:
        """End a load that has no end of its own; exceptions as in wait."""
        if not self._load.ends_when_told:
            raise ValueError('this load ends by itself')
        with self._interruptible():
            seconds = time.monotonic() - self.began
            self._say(Stop(self._load.drain_seconds))
            self._gather()
        return self._outcome(seconds)

    def wait(self) -> Outcome:
        """Wait for the end of the load.

        :raises BenchError: if a client process failed
        :raises Interrupted: with the outcome so far, if a signal came
        """
        with self._interruptible():
            self._gather()
        return self._outcome(self._load.seconds)

    def end(self) -> None:
        """End the load at once if it is running, and drop its outcome."""
        self._on_progress = None
        self._say(Stop(0))
        self._gather()

    def connect_and_begin(self) -> None:
        """Connect all clients, then begin; exceptions as in :meth:`wait`."""
        with self._interruptible():
            for index, pipe in enumerate(self._pipes):
                share = Share(index, len(self._pipes))
                self._send(pipe, (self._load, share))
            try:
                self._await_connections()
            except BenchError:
                self.end()
                raise
            self.began = time.monotonic() + _LEAD_SECONDS
            self._began_at = time.time() + _LEAD_SECONDS
            self._say(Begin(self.began, self._on_progress is not None))

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        """End the load if the block is interrupted; raise Interrupted."""
        try:
            yield
        except _INTERRUPTIONS as err:
            seconds = max(_AFTER_LAST_SECONDS, time.monotonic() - self.began)
            self._on_progress = None
            # a second signal does not wait for the last responses
            with contextlib.suppress(*_INTERRUPTIONS):
                self._say(Stop(_INTERRUPTED_DRAIN_SECONDS))
                self._gather()
            outcome = None
            if self.began < math.inf:
                outcome = self._outcome(
                    min(seconds, self._load.seconds or seconds)
                )
            number = getattr(err, 'signal_number', None)
            raise Interrupted(number, outcome) from None

    def _await_connections(self) -> None:
        deadline = time.monotonic() + _CONNECT_SECONDS
        while missing := self._silent() - self._connected:
            ready = wait(missing, deadline - time.monotonic())
            if not ready:
                raise BenchError('a client process hangs: see above')
            for pipe in ready:
                self._hear(pipe)
            self._raise_errors()

    def _gather(self) -> None:
        """Receive messages until each process has answered."""
        due = time.monotonic() + _PROGRESS_SECONDS
        while silent := self._silent():
            for pipe in wait(silent, max(0, due - time.monotonic())):
                self._hear(pipe)
            if time.monotonic() >= due:
                due += _PROGRESS_SECONDS
                self._tell_progress()
        if len(self._news):
            self._tell_progress()

    def _tell_progress(self) -> None:
        news, self._news = self._news, Samples()
        self._samples.extend(news)
        if self._on_progress is not None:
            self._on_progress(news)

    def _outcome(self, seconds: float | None) -> Outcome:
        self._raise_errors()
        self._samples.extend(self._news)
        answers = [
            self._answers[pipe]
            for pipe in self._pipes
            if isinstance(self._answers.get(pipe), Answer)
        ]
        is_exhausted = all(answer.is_exhausted for answer in answers)
        if is_exhausted:
            ends = self._samples.table()['end']
            last = float(ends.max(initial=self.began))
            elapsed = last - self.began + _AFTER_LAST_SECONDS
            seconds = min(seconds or math.inf, elapsed)
        return Outcome(
            *(self._load.source.kinds, self._samples),
            *(self.began, self._began_at, seconds),
            tuple(answer.usage for answer in answers),
            self._load.clients,
            is_exhausted,
        )

    def _raise_errors(self) -> None:
        for answer in self._answers.values():
            if isinstance(answer, BenchError):
                raise answer

    def _silent(self) -> set[Pipe]:
        """Return the pipes of processes that have not answered."""
        return set(self._pipes) - self._answers.keys()

    def _say(self, word: object) -> None:
        for pipe in self._silent():
            self._send(pipe, word)

    def _send(self, pipe: Pipe, word: object) -> None:
        with signals.held_back():
            try:
                pipe.send(word)
            except OSError:
                self._answers[pipe] = _ended()

    def _hear(self, pipe: Pipe) -> None:
        with signals.held_back():
            try:
                said = pipe.recv()
            except (EOFError, OSError):
                said = _ended()
            if said == CONNECTED:
                self._connected.add(pipe)
            elif isinstance(said, Samples):
                self._news.extend(said)
            else:
                self._answers[pipe] = said
                if isinstance(said, Answer):
                    self._news.extend(said.samples)


class Clients:
    """Client processes, for a ``with`` block."""

    def __init__(self, processes: int) -> None:
        self._count = processes
        self._processes = []
        self._pipes: list[Pipe] = []
        self._last: RunningLoad | None = None

    def __enter__(self) -> 'Clients':
        try:
            self._start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(0 if exc_info[0] else _END_SECONDS)
            process.kill()
            process.join()
        self._processes, self._pipes = [], []

    def begin(
        self, load: Load, on_progress: OnProgress | None = None
    ) -> RunningLoad:
        """Begin a load once all its clients are connected.

        :param on_progress: called twice a second during the wait for its end
        :raises BenchError: if they cannot connect
        :raises Interrupted: if a signal came
        """
        if self._last is not None:
            # an interrupted caller may not have ended it
            self._last.end()
        pipes = self._pipes[: load.clients]
        self._last = RunningLoad(load, pipes, on_progress)
        self._last.connect_and_begin()
        return self._last

    def run(
        self, load: Load, on_progress: OnProgress | None = None
    ) -> Outcome:
        """Begin a load and wait for its end: see both methods."""
        if load.ends_when_told:
            raise ValueError('this load ends when it is told to')
        return self.begin(load, on_progress).wait()

    def _start(self) -> None:
        # not forked, so that they share nothing with this process
        context = multiprocessing.get_context('spawn')
        for _ in range(self._count):
            ours, theirs = context.Pipe()
            self._pipes.append(ours)
            process = context.Process(
                target=serve, args=(theirs,), daemon=True
            )
            # a process cannot start from an incomplete message
            with signals.kept_from_children():
                process.start()
                self._processes.append(process)
            theirs.close()


def _ended() -> BenchError:
    return BenchError('a client process ended: see above')
