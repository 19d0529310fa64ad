# SPDX-License-Identifier: Apache-2.0
"""Adapt the rows that are under way at each container server to its load.

Rows that move must not keep clients waiting. A container server does not tell
its load, but the time that it takes for a request does: if a request takes
longer than requests of its size have taken at best, it has waited for others.
So there is a window for each server, the number of rows that may be under way
there. It grows by a constant while few requests wait, and is halved when some
do: additive increase and multiplicative decrease. It is as small as a fraction
of a request if all of them wait: then there are pauses between requests. So
the mover takes what clients leave, as LEDBAT does on a network.

Sources: D. Chiu and R. Jain, Analysis of the Increase and Decrease Algorithms
for Congestion Avoidance, 1989; L. Brakmo and L. Peterson, TCP Vegas, 1995;
RFC 6817, LEDBAT, 2012.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from shardmw.backend.batch import Address
from shardmw.backend.concurrency import Event, sleep

#: The window at first, at least and at most, in rows. The least is a fifth of
#: the smallest request: four fifths of the time are pauses.
FIRST_ROWS = 50
LEAST_ROWS = 10
MOST_ROWS = 2000

#: The rows of a request, at least if there are as many, and at most. The
#: server does nothing else while it merges them, some 10 ms for the most.
LEAST_IN_REQUEST = 50
MOST_IN_REQUEST = 250

#: After how many answers the window grows, and by how many rows. It doubles
#: until a request waits for the first time.
ROUND_ANSWERS = 8
STEP_ROWS = 50

#: The window is halved if more answers of a round than these are late.
MOST_LATE = 1

#: An answer is late if it takes longer than expected by this share of the
#: expected time, and these seconds.
SLACK_SHARE = 0.25
SLACK_SECONDS = 0.004

#: How long to leave a server alone that has not answered well, in seconds.
FAILED_SECONDS = 1

#: Up to how many rows a request tells what any request takes, and from how
#: many on it tells what a row takes.
FEW_ROWS = 100
MANY_ROWS = 200

#: How many times are looked at for the shortest one, at least. The older of
#: twice as many are forgotten, as a database that grows becomes slower.
KEPT_TIMES = 64


class _Shortest:
    """The shortest of the last times, at least KEPT_TIMES of them."""

    def __init__(self) -> None:
        self._former = self._present = math.inf
        self._count = 0

    def add(self, seconds: float) -> None:
        self._present = min(self._present, seconds)
        self._count += 1
        if self._count == KEPT_TIMES:
            self._former, self._present = self._present, math.inf
            self._count = 0

    @property
    def seconds(self) -> float:
        """Return the shortest time, infinity before the first one."""
        return min(self._former, self._present)


class _Expected:
    """Expects how long requests take that wait for no others."""

    def __init__(self) -> None:
        self._request = _Shortest()
        self._row = _Shortest()

    def add(self, rows: int, seconds: float) -> None:
        """Add the time that a request took."""
        if rows <= FEW_ROWS:
            self._request.add(seconds)
        elif rows >= MANY_ROWS:
            self._row.add(seconds / rows)

    def seconds(self, rows: int) -> float:
        """Return the time for a request, infinity if that is not known."""
        request, row = self._request.seconds, self._row.seconds
        if row == math.inf:
            return request * max(1, rows / FEW_ROWS)
        return (request if request < math.inf else 0) + row * rows


class Sent(NamedTuple):
    """A request that a server has got.

    :param kind: of the request, as some kinds take longer than others
    :param rows: those of the request
    :param ahead: the rows that were under way when it was sent
    :param at: when it was sent
    """

    kind: str
    rows: int
    ahead: int
    at: float


class Window:
    """How much may be under way at one server. Pure.

    Times are in seconds, by any clock that does not go back.

    :ivar rows: the rows that may be under way; if less than those of a
                request, the part of the time that requests may take
    """

    def __init__(self) -> None:
        self.rows: float = FIRST_ROWS
        self._under_way = 0
        self._rests_until = -math.inf
        self._halved = -math.inf
        self._is_starting = True
        self._answers = self._late = 0
        self._expected: defaultdict[str, _Expected] = defaultdict(_Expected)

    @property
    def in_request(self) -> int:
        """Return how many rows to send with one request."""
        return int(min(max(self.rows, LEAST_IN_REQUEST), MOST_IN_REQUEST))

    def pause(self, rows: int, now: float) -> float:
        """Return how long a request must wait; infinity: for an answer."""
        if self._under_way and self._under_way + rows > self.rows:
            return math.inf
        return max(0, self._rests_until - now)

    def send(self, kind: str, rows: int, now: float) -> Sent:
        """Note that a request is sent, and return it."""
        sent = Sent(kind, rows, self._under_way, now)
        self._under_way += rows
        return sent

    def answer(self, sent: Sent, now: float, is_good: bool) -> None:
        """Note that a request has been answered, or has failed."""
        self._under_way -= sent.rows
        seconds = now - sent.at
        expected = self._expected[sent.kind]
        best = expected.seconds(sent.rows)
        if sent.ahead:
            # One process may get them all, and is half done on average.
            best += expected.seconds(sent.ahead) / 2
        is_late = seconds > best * (1 + SLACK_SHARE) + SLACK_SECONDS
        if is_good:
            expected.add(sent.rows, seconds)
        # A window is halved once for the requests that were under way.
        if sent.at >= self._halved:
            self._count(is_late or not is_good, now)
        rest = seconds * max(0, sent.rows / self.rows - 1)
        if not is_good:
            rest = max(rest, FAILED_SECONDS)
        self._rests_until = max(self._rests_until, now + rest)

    def _count(self, is_late: bool, now: float) -> None:
        self._answers += 1
        self._late += is_late
        if self._late > MOST_LATE:
            self.rows = max(LEAST_ROWS, self.rows / 2)
            self._halved = now
            self._is_starting = False
        elif self._answers == ROUND_ANSWERS:
            more = self.rows if self._is_starting else STEP_ROWS
            self.rows = min(MOST_ROWS, self.rows + more)
        else:
            return
        self._answers = self._late = 0


class Throttle:
    """Makes requests to servers wait until their windows have room.

    All changes of a process share it.
    """

    def __init__(self) -> None:
        self._windows: defaultdict[Address, Window] = defaultdict(Window)
        self._change = Event()

    def in_request(self, addresses: Iterable[Address]) -> int:
        """Return how many rows to send with one request to some servers."""
        return min(self._windows[each].in_request for each in addresses)

    @contextmanager
    def sending(
        self, kind: str, addresses: Iterable[Address], rows: int
    ) -> Iterator[Callable[[Address, bool], None]]:
        """Send one request to each of some servers in a block.

        It begins when all of them have room.

        :param kind: as of :class:`Sent`
        :param addresses: one for each request: a server may have several
                          replicas
        :param rows: the rows of a request
        :returns: a function to be called when a server has answered, with its
                  address, and False if it failed
        """
        addresses = list(addresses)
        self._wait_for_room(addresses, rows)
        now = time.monotonic()
        under_way = [
            (each, self._windows[each].send(kind, rows, now))
            for each in addresses
        ]

        def answered(address: Address, is_good: bool) -> None:
            one = next(each for each in under_way if each[0] == address)
            under_way.remove(one)
            window = self._windows[address]
            window.answer(one[1], time.monotonic(), is_good)
            change, self._change = self._change, Event()
            change.send()

        try:
            yield answered
        finally:
            for address, _ in list(under_way):
                answered(address, False)

    def _wait_for_room(self, addresses: list[Address], rows: int) -> None:
        while True:
            now = time.monotonic()
            pause = max(
                self._windows[each].pause(rows, now) for each in addresses
            )
            if pause == math.inf:
                self._change.wait()
            elif pause > 0:
                sleep(pause)
            else:
                return
