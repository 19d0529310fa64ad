# SPDX-License-Identifier: Apache-2.0
"""Adapt the rows that are under way at each container server to its load.

Rows that move must not delay clients. A container server does not report its
load, but its response times show it: a request that takes longer than usual
for its size has waited for others. So each server has a window, the number of
rows that may be under way there. The window grows by a constant while few
requests wait, and is halved when more do: additive increase and multiplicative
decrease. If it is smaller than a request, there are pauses between requests.
So the mover uses the capacity that clients leave, as LEDBAT does on a network.

The times of merges depend on the disk, too. So when nothing of the mover is
under way at a server, it sends a probe before a request: one that needs
neither the disk nor a database. If a probe takes long, it has waited for
clients.

Sources: D. Chiu and R. Jain, Analysis of the Increase and Decrease Algorithms
for Congestion Avoidance, 1989; L. Brakmo and L. Peterson, TCP Vegas, 1995;
RFC 6817, LEDBAT, 2012.
"""

import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from swift.common.utils import GreenAsyncPile

from shardmw.core.batch import Address
from shardmw.swift.concurrency import Event, Timeout, sleep

#: The first, smallest and largest window, in rows. With the smallest one, the
#: smallest request takes a twenty-fifth of the time: the rest are pauses.
FIRST_ROWS = 10
LEAST_ROWS = 2
MOST_ROWS = 2000

#: The fewest rows of a request, if there are that many, and the most. The
#: server does nothing else while it merges them, about 10 ms for the most.
LEAST_IN_REQUEST = 50
MOST_IN_REQUEST = 250

#: How many rows take as long to merge as a page of rows takes to read.
ROWS_WORTH_A_PAGE = 250

#: After how many answers the window grows, and by how many rows. A smaller
#: window doubles.
ROUND_ANSWERS = 8
STEP_ROWS = 50

#: The window is halved if more answers than this are late in a round.
MOST_LATE = 1

#: An answer is late if it exceeds the expected time by more than this share of
#: it plus this many seconds.
SLACK_SHARE = 0.25
SLACK_SECONDS = 0.003

#: A probe is late if it takes longer than this many times the fastest of the
#: last ones, and SLACK_SECONDS.
LATE_PROBE = 2

#: How long to wait for the answer to a probe, in seconds.
PROBE_SECONDS = 1

#: How long to send nothing to a server after a failed request, in seconds.
FAILED_SECONDS = 1

#: Requests with at most FEW_ROWS rows show the time of a request, those with
#: at least MANY_ROWS rows the time of a row.
FEW_ROWS = 100
MANY_ROWS = 200

#: How many of the last times determine the usual time.
KEPT_TIMES = 64

#: The longest pause after a request, in seconds.
MOST_REST_SECONDS = 5


class _Usual:
    """The usual time of requests that do not wait for others.

    On a busy server, a fifth of the requests still wait for no others. On an
    idle one none wait, but disks are uneven: if their times are distributed
    uniformly, two fifths are at most this long.
    """

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=KEPT_TIMES)
        self.seconds = math.inf  #: infinity before the first time

    def add(self, seconds: float) -> None:
        self._times.append(seconds)
        ordered = sorted(self._times)
        self.seconds = 2 * ordered[len(ordered) // 5] - ordered[0]


class _Expected:
    """The expected time of requests that do not wait for others."""

    def __init__(self) -> None:
        self._request = _Usual()
        self._row = _Usual()

    def add(self, rows: int, seconds: float) -> None:
        """Add the time that a request took."""
        if rows <= FEW_ROWS:
            self._request.add(seconds)
        elif rows >= MANY_ROWS:
            self._row.add(seconds / rows)

    def seconds(self, rows: int) -> float:
        """Return the time of a request, infinity if it is not known."""
        request, row = self._request.seconds, self._row.seconds
        if row == math.inf:
            return request * max(1, rows / FEW_ROWS)
        return (request if request < math.inf else 0) + row * rows


class Sent(NamedTuple):
    """A request that was sent to a server.

    :param kind: the kind of the request and its device: some take longer
    :param rows: its number of rows
    :param ahead: the rows that were under way, or being read, when it was sent
    :param same: the rows of the same request to other replicas on the server
    :param at: when it was sent
    :param is_probed: True if a probe was sent before it
    """

    kind: str
    rows: int
    ahead: int
    same: int
    at: float
    is_probed: bool


class Window:
    """The limit of what may be under way at one server. Pure.

    Times are in seconds, by any clock that does not go back.

    :ivar rows: the rows that may be under way; if a request has more, requests
                take only the corresponding part of the time
    """

    def __init__(self) -> None:
        self.rows: float = FIRST_ROWS
        self._under_way = 0
        self._reading = 0
        self._rests_until = -math.inf
        self._halved = -math.inf
        self._probes: deque[float] = deque(maxlen=KEPT_TIMES)
        self._is_probing = False
        self._answers = self._late = 0
        self._expected: defaultdict[str, _Expected] = defaultdict(_Expected)

    @property
    def in_request(self) -> int:
        """Return how many rows to send with one request."""
        return int(min(max(self.rows, LEAST_IN_REQUEST), MOST_IN_REQUEST))

    def pause(self, rows: int, now: float) -> float:
        """Return how long a request must wait; infinity: until an answer."""
        if self._under_way and self._under_way + rows > self.rows:
            return math.inf
        if self._is_probing:
            return math.inf
        return max(0, self._rests_until - now)

    def begin_probe(self) -> bool:
        """Return True if a probe is to be sent now: it waits for clients only.

        Its end must be recorded with :meth:`end_probe`.
        """
        is_free = not (self._under_way or self._reading or self._is_probing)
        self._is_probing = self._is_probing or is_free
        return is_free

    def end_probe(self, seconds: float, now: float) -> None:
        """Record how long a probe took; infinity if it failed."""
        self._is_probing = False
        self._probes.append(seconds)
        latest = LATE_PROBE * min(self._probes) + SLACK_SECONDS
        self._count(seconds == math.inf or seconds > latest, now)

    def send(
        self,
        kind: str,
        rows: int,
        now: float,
        same: int = 0,
        is_probed: bool = False,
    ) -> Sent:
        """Record that a request is sent, and return it.

        :param kind: as in :class:`Sent`, like `same` and `is_probed`
        """
        ahead = self._under_way - same + self._reading
        sent = Sent(kind, rows, ahead, same, now, is_probed)
        self._under_way += rows
        return sent

    def read(self, rows: int) -> None:
        """Record that a page is requested, or, if negative, was answered.

        :param rows: how many rows take as long to merge
        """
        self._reading += rows

    def answer(self, sent: Sent, now: float, is_good: bool) -> None:
        """Record that a request has been answered, or has failed."""
        self._under_way -= sent.rows
        seconds = now - sent.at
        expected = self._expected[sent.kind]
        best = expected.seconds(sent.rows) * (1 + sent.same / sent.rows)
        if sent.ahead:
            # One process may get all of them, and is half done on average.
            best += expected.seconds(sent.ahead) / 2
        is_late = seconds > best * (1 + SLACK_SHARE) + SLACK_SECONDS
        if is_good:
            expected.add(sent.rows, seconds)
        # A window is halved only once for the requests that were under way.
        if sent.at >= self._halved and not (sent.is_probed and is_good):
            self._count(is_late or not is_good, now)
        rows = min(sent.rows, LEAST_IN_REQUEST)
        rest = seconds * max(0, rows / self.rows - 1)
        if not is_good:
            rest = max(rest, FAILED_SECONDS)
        rest = min(rest, MOST_REST_SECONDS)
        self._rests_until = max(self._rests_until, now + rest)

    def _count(self, is_late: bool, now: float) -> None:
        self._answers += 1
        self._late += is_late
        if self._late > MOST_LATE:
            self.rows = max(LEAST_ROWS, self.rows / 2)
            self._halved = now
        elif self._answers == ROUND_ANSWERS:
            more = min(self.rows, STEP_ROWS)
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

    def in_request(self, nodes: Iterable[Mapping]) -> int:
        """Return how many rows to send with one request to some servers.

        :param nodes: as of :meth:`sending`
        """
        return min(self._window(node).in_request for node in nodes)

    @contextmanager
    def sending(
        self,
        kind: str,
        nodes: Sequence[Mapping],
        rows: int,
        check: Callable[[], None],
        probe: Callable[[Mapping], None],
    ) -> Iterator[Callable[[Mapping, bool], None]]:
        """Send one request to each of some servers in a block.

        The block begins when all of these servers have room.

        :param kind: what the request does: kinds take different times
        :param nodes: the servers and devices, as a ring describes them
        :param rows: the rows of a request
        :param check: called when there is room, before the block; it raises
                      an error if the request must not be sent any more
        :param probe: sends a probe to a server, and raises an error if it
                      does not answer
        :returns: a function to call with the node of each server that has
                  answered, and with False if the request failed
        """
        self._wait_for_room(nodes, rows)
        probed = self._probed(nodes, probe)
        check()
        while self._pause(nodes, rows):
            # Other requests may have taken the room during the check.
            probed.clear()
            self._wait_for_room(nodes, rows)
            check()
        now = time.monotonic()
        same: Counter[Window] = Counter()
        under_way: list[tuple[Mapping, Sent]] = []
        for node in nodes:
            window = self._window(node)
            device = f'{kind} {node["device"]}'
            is_probed = window in probed
            sent = window.send(device, rows, now, same[window], is_probed)
            same[window] += rows
            under_way.append((node, sent))

        def answered(node: Mapping, is_good: bool) -> None:
            same_node = (x for x in under_way if x[0]['id'] == node['id'])
            one = next(same_node, None)
            if one is None:
                return  # the block has ended without this answer
            under_way.remove(one)
            self._window(node).answer(one[1], time.monotonic(), is_good)
            self._tell()

        try:
            yield answered
        finally:
            for node, _ in list(under_way):
                answered(node, False)

    @contextmanager
    def reading(self, nodes: Sequence[Mapping]) -> Iterator[None]:
        """Read a page of rows that move from servers in a block.

        Reading does not wait for room, but other requests may have to wait for
        it at the servers.
        """
        for node in nodes:
            self._window(node).read(ROWS_WORTH_A_PAGE)
        try:
            yield
        finally:
            for node in nodes:
                self._window(node).read(-ROWS_WORTH_A_PAGE)

    def _probed(
        self, nodes: Sequence[Mapping], probe: Callable[[Mapping], None]
    ) -> set[Window]:
        """Probe the servers at which nothing is under way; return theirs."""
        windows = {}
        for node in nodes:
            window = self._window(node)
            if window.begin_probe():
                windows[window] = node
        pile = GreenAsyncPile(max(1, len(windows)))
        for window, node in windows.items():
            pile.spawn(_probe, window, node, probe)
        list(pile)
        self._tell()
        return set(windows)

    def _tell(self) -> None:
        """Wake the requests that wait for a change of the windows."""
        change, self._change = self._change, Event()
        change.send()

    def _window(self, node: Mapping) -> Window:
        return self._windows[node['ip'], node['port']]

    def _wait_for_room(self, nodes: Sequence[Mapping], rows: int) -> None:
        while pause := self._pause(nodes, rows):
            if pause == math.inf:
                self._change.wait()
            else:
                sleep(pause)

    def _pause(self, nodes: Sequence[Mapping], rows: int) -> float:
        now = time.monotonic()
        return max(self._window(node).pause(rows, now) for node in nodes)


def _probe(
    window: Window, node: Mapping, probe: Callable[[Mapping], None]
) -> None:
    began = time.monotonic()
    seconds = math.inf
    try:
        with Timeout(PROBE_SECONDS):
            probe(node)
        seconds = time.monotonic() - began
    except (Exception, Timeout):
        pass  # the request that follows fails, too, or is late
    finally:
        window.end_probe(seconds, time.monotonic())
