# SPDX-License-Identifier: Apache-2.0
"""A queue model of a container server, on which rows are merged.

A server has several processes. Each request goes to one of them at random, and
a process serves its requests in the order of their arrival. Clients' requests
arrive at random times (Poisson) and take a random time (exponential). A merge
takes a random time for the disk and a constant time for each row.
"""

import heapq
import random
from collections.abc import Callable, Sequence

from shardmw.backend.move_throttle import Sent, Window

#: How long a client's request takes on average, a merge takes on the disk at
#: least and at most, and each row of a merge takes.
CLIENT_SECONDS = 0.004
MERGE_SECONDS = 0.003, 0.004
ROW_SECONDS = 0.00004

#: How long a probe takes.
PROBE_SECONDS = 0.0008


class Server:
    """A container server that clients and the mover use.

    :param seed: the seed of all random numbers
    :param processes: the number of processes of the server
    :param load: returns the share of the processes' time that clients need at
                 a time in seconds
    :param merge_seconds: the least and the most time that a merge takes on the
                          disk, for each device
    :param senders: how many requests the mover has to send at any time
    :param replicas: how many replicas of a place the server has
    :ivar now: the time in seconds
    :ivar waits: the arrival and the waiting time of clients' requests
    :ivar merges: when each merge ended, and how many rows it had
    """

    def __init__(
        self,
        seed: int,
        load: Callable[[float], float],
        processes: int = 2,
        merge_seconds: Sequence[tuple[float, float]] = (MERGE_SECONDS,),
        senders: int = 4,
        replicas: int = 1,
    ) -> None:
        self.now = 0.0
        self.waits: list[tuple[float, float]] = []
        self.merges: list[tuple[float, int]] = []
        self.window = Window()
        self._random = random.Random(seed)
        self._load = load
        self._free = [0.0] * processes
        self._merge_seconds = merge_seconds
        self._senders = senders
        self._replicas = replicas
        self._events: list = []
        self._count = 0

    def run(self, seconds: float) -> None:
        """Run the model up to a time."""
        self._later(0, self._client_comes)
        for _ in range(self._senders):
            self._later(0, self._send)
        while self._events and self._events[0][0] <= seconds:
            self.now, _, act = heapq.heappop(self._events)
            act()

    def rate(self, begin: float, end: float) -> float:
        """Return how many rows were merged per second in an interval."""
        rows = (rows for at, rows in self.merges if begin <= at < end)
        return sum(rows) / (end - begin)

    def wait(self, share: float, begin: float, end: float) -> float:
        """Return the quantile of the waiting times of clients' requests."""
        waits = sorted(w for at, w in self.waits if begin <= at < end)
        return waits[int(share * len(waits))]

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, act))

    def _serve(self, seconds: float) -> float:
        """Give a request to a process; return when it is answered."""
        process = self._random.randrange(len(self._free))
        start = max(self.now, self._free[process])
        self._free[process] = start + seconds
        return start + seconds

    def _client_comes(self) -> None:
        load = self._load(self.now)
        if load:
            seconds = self._random.expovariate(1 / CLIENT_SECONDS)
            end = self._serve(seconds)
            self.waits.append((self.now, end - seconds - self.now))
        rate = max(load, 0.01) * len(self._free) / CLIENT_SECONDS
        self._later(self._random.expovariate(rate), self._client_comes)

    def _send(self, is_probed: bool = False) -> None:
        window = self.window
        rows = window.in_request
        pause = window.pause(rows, self.now)
        if pause:
            self._later(min(pause, 0.001), self._send)
            return
        if not is_probed and window.begin_probe():
            seconds = self._serve(PROBE_SECONDS) - self.now

            def answer_probe() -> None:
                window.end_probe(seconds, self.now)
                self._send(is_probed=True)

            self._later(seconds, answer_probe)
            return
        device = self._random.randrange(len(self._merge_seconds))
        left = self._replicas
        for replica in range(self._replicas):
            sent = window.send(
                str(device), rows, self.now, replica * rows, is_probed
            )
            disk = self._random.uniform(*self._merge_seconds[device])
            end = self._serve(disk + rows * ROW_SECONDS)

            def answer(sent: Sent = sent) -> None:
                nonlocal left
                left -= 1
                window.answer(sent, self.now, True)
                if not left:
                    self.merges.append((self.now, rows))
                    self._later(0, self._send)

            self._later(end - self.now, answer)
