# SPDX-License-Identifier: Apache-2.0
"""The client processes: started once, then given one load after another."""

import contextlib
import math
import multiprocessing
import signal
import time
from multiprocessing.connection import Connection as Pipe

from shardmw.bench.errors import BenchError
from shardmw.bench.load import Load, Outcome, Share
from shardmw.bench.loop import ClientLoop
from shardmw.bench.samples import Samples

# Between saying when to begin and that moment.
_LEAD_SECONDS = 0.05

_CONNECT_SECONDS = 60
_END_SECONDS = 2

_STOP = 'stop'

# So that the time of a counted load has its last answer in it.
_AFTER_LAST_SECONDS = 1e-6


class RunningLoad:
    """A load under way.

    ``began`` is when, on the monotonic clock.
    """

    def __init__(self, load: Load, pipes: list[Pipe]) -> None:
        self._load = load
        self._pipes = pipes
        for index, pipe in enumerate(pipes):
            pipe.send((load, Share(index, len(pipes))))
        for pipe in pipes:
            _answer_of(pipe, _CONNECT_SECONDS)
        self.began = time.monotonic() + _LEAD_SECONDS
        self._began_at = time.time() + _LEAD_SECONDS
        for pipe in pipes:
            pipe.send(self.began)

    def sleep_until(self, seconds: float) -> None:
        """Wait until so many seconds after its begin."""
        time.sleep(max(0, self.began + seconds - time.monotonic()))

    def stop(self) -> Outcome:
        """End a load that has no end of its own, and wait for that.

        :raises BenchError: if a client process failed
        """
        if not self._load.ends_when_told:
            raise ValueError('this load ends by itself')
        for pipe in self._pipes:
            pipe.send(_STOP)
        return self._outcome(time.monotonic() - self.began)

    def wait(self) -> Outcome:
        """Wait for its end.

        :raises BenchError: if a client process failed
        """
        return self._outcome(self._load.seconds)

    def _outcome(self, seconds: float | None) -> Outcome:
        answers = [_answer_of(pipe, math.inf) for pipe in self._pipes]
        samples = Samples()
        for own, _ in answers:
            samples.extend(own)
        if self._load.count is not None:
            last = max((each.end for each in samples), default=self.began)
            elapsed = last - self.began + _AFTER_LAST_SECONDS
            seconds = min(seconds or math.inf, elapsed)
        return Outcome(
            self._load.source.kinds,
            samples,
            self.began,
            self._began_at,
            seconds,
            tuple(usage for _, usage in answers),
        )


class Clients:
    """Client processes, for a ``with`` block.

    :param processes: how many, so that none is at its limit
    """

    def __init__(self, processes: int) -> None:
        self._count = processes
        self._processes = []
        self._pipes: list[Pipe] = []

    def __enter__(self) -> 'Clients':
        # not forked, for nothing of this process is theirs
        context = multiprocessing.get_context('spawn')
        for _ in range(self._count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs,), daemon=True
            )
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(0 if exc_info[0] else _END_SECONDS)
            process.kill()
            process.join()
        self._processes, self._pipes = [], []

    def begin(self, load: Load) -> RunningLoad:
        """Begin a load, when all its clients are connected.

        :raises BenchError: if they can't be
        """
        return RunningLoad(load, self._pipes[: load.clients])

    def run(self, load: Load) -> Outcome:
        """Begin a load and wait for its end.

        :raises BenchError: if a client process failed
        """
        if load.ends_when_told:
            raise ValueError('this load ends when it is told to')
        return self.begin(load).wait()


def _answer_of(pipe: Pipe, patience_seconds: float) -> object:
    try:
        patience = None if patience_seconds == math.inf else patience_seconds
        answer = pipe.recv() if pipe.poll(patience) else None
    except EOFError:
        answer = None
    if answer is None:
        raise BenchError('a client process ended, or hangs: look above')
    if isinstance(answer, BenchError):
        raise answer
    return answer


def _serve(pipe: Pipe) -> None:
    """Be a client process: run loads until nobody sends any."""
    # Ctrl-C is for the process that started this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            load, share = pipe.recv()
            try:
                loop = ClientLoop(load, share, pipe.fileno())
            except BenchError as err:
                pipe.send(err)
                continue
            pipe.send('connected')
            answer = loop.run(pipe.recv())
            if load.ends_when_told:
                pipe.recv()
            pipe.send(answer)
