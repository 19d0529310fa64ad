# SPDX-License-Identifier: Apache-2.0
"""Tests of how the mover adapts to the load of container servers."""

import math
import random
import time
from statistics import mean

import pytest

from shardmw.backend import move_throttle as module
from shardmw.backend.move_throttle import (
    FAILED_SECONDS,
    FIRST_ROWS,
    LEAST_IN_REQUEST,
    LEAST_ROWS,
    MOST_IN_REQUEST,
    MOST_REST_SECONDS,
    MOST_ROWS,
    ROUND_ANSWERS,
    STEP_ROWS,
    Sent,
    Throttle,
    Window,
)
from shardmw.swift import concurrency
from test.unit.queues import MERGE_SECONDS, ROW_SECONDS, Server

SEEDS = range(3)

#: Times of merges on the disk: usual, of a wide range, and of two devices.
FAST = (MERGE_SECONDS,)
UNEVEN = ((0.012, 0.036),)
TWO_DEVICES = (0.004, 0.005), (0.02, 0.022)


def node(number: int, device: str = 'd1', id_: int = 0) -> dict:
    """Return a node of a ring: a device of a server."""
    return {'ip': f'127.0.0.{number}', 'port': 1, 'device': device, 'id': id_}


HERE, THERE = node(1), node(2, id_=1)


def served(seed: int, load, seconds: float = 60, **options) -> Server:
    server = Server(seed, load, **options)
    server.run(seconds)
    return server


def capacity(processes: int, merge_seconds, replicas: int = 1) -> float:
    """Return how many rows a server can merge per second."""
    disk = mean(mean(each) for each in merge_seconds)
    request = disk + MOST_IN_REQUEST * ROW_SECONDS
    return processes * MOST_IN_REQUEST / request / replicas


@pytest.mark.parametrize('seed', SEEDS)
@pytest.mark.parametrize('merge_seconds', [FAST, UNEVEN, TWO_DEVICES])
@pytest.mark.parametrize('processes', [1, 2, 4])
def test_an_idle_server_gets_as_many_rows_as_it_takes(
    seed, merge_seconds, processes
):
    server = served(
        seed, lambda _: 0, processes=processes, merge_seconds=merge_seconds
    )
    # With more processes, two requests may meet at one of them.
    share = {1: 0.9, 2: 0.6, 4: 0.5}[processes]
    if merge_seconds == UNEVEN:
        share *= 0.8  # some of the merges seem to have waited
    least = share * capacity(processes, merge_seconds)
    assert server.rate(5, 60) > least


@pytest.mark.parametrize('processes', [1, 2])
def test_an_idle_server_with_all_replicas_gets_as_many_as_it_takes(processes):
    server = served(0, lambda _: 0, processes=processes, replicas=3)
    assert server.rate(5, 60) > 0.6 * capacity(processes, FAST, 3)


@pytest.mark.parametrize('load', [0.6, 0.8])
def test_clients_of_a_busy_server_wait_no_longer(load):
    with_mover = [served(seed, lambda _: load) for seed in SEEDS]
    without = [served(seed, lambda _: load, senders=0) for seed in SEEDS]
    for share in (0.5, 0.9, 0.99):
        waits = mean(each.wait(share, 10, 60) for each in with_mover)
        waits_before = mean(each.wait(share, 10, 60) for each in without)
        # a wait is a part of the latency of a request
        assert waits < 1.1 * waits_before + 0.001
    assert all(each.rate(10, 60) > 80 for each in with_mover)


@pytest.mark.parametrize('load', [0.1, 0.3])
def test_clients_of_a_server_with_little_load_wait_for_a_few_merges(load):
    server = served(0, lambda _: load)
    merge = MERGE_SECONDS[1] + MOST_IN_REQUEST * ROW_SECONDS
    assert server.wait(0.99, 10, 60) < 6 * merge


@pytest.mark.parametrize('seed', SEEDS)
def test_the_mover_follows_a_load_that_jumps(seed):
    server = served(seed, lambda at: 0.7 if 20 <= at < 40 else 0, 70)
    full = server.rate(10, 20)
    assert server.rate(23, 40) < 0.1 * full
    assert server.rate(50, 70) > 0.8 * full


def test_a_database_that_becomes_slower_is_no_load():
    class Growing(Server):
        def _serve(self, seconds: float) -> float:
            return super()._serve(seconds * (1 + self.now / 20))

    server = Growing(0, lambda _: 0)
    server.run(60)
    # Each request takes four times as long as at the begin.
    assert server.rate(50, 60) > server.rate(2, 10) / 6


class TestWindow:
    @pytest.fixture
    def window(self) -> Window:
        return Window()

    @pytest.fixture
    def throttle_of_one(self) -> tuple[Throttle, Window]:
        throttle = Throttle()
        return throttle, throttle._window(HERE)

    def request(self, window, at=0.0, seconds=0.01, good=True, rows=50):
        sent = window.send('copy', rows, at)
        window.answer(sent, at + seconds, good)

    def rounds(self, window, count: int, **answers) -> None:
        for _ in range(count * ROUND_ANSWERS):
            self.request(window, **answers)

    def test_doubles_and_then_grows_by_a_constant(self, window):
        self.rounds(window, 3)
        assert window.rows == 8 * FIRST_ROWS
        self.rounds(window, 2)
        assert window.rows == 8 * FIRST_ROWS + 2 * STEP_ROWS

    def test_is_halved_if_two_requests_wait(self, window):
        self.rounds(window, 3)
        self.request(window, seconds=1)
        assert window.rows == 8 * FIRST_ROWS
        self.request(window, seconds=1)
        assert window.rows == 4 * FIRST_ROWS

    def test_has_bounds(self, window):
        self.rounds(window, 60)
        assert window.rows == MOST_ROWS
        assert window.in_request == MOST_IN_REQUEST
        for at in range(50):
            self.request(window, at=at, good=False)
        assert window.rows == LEAST_ROWS
        assert window.in_request == LEAST_IN_REQUEST

    def test_is_halved_once_for_requests_that_were_under_way(self, window):
        self.rounds(window, 3)
        for sent in [window.send('copy', 50, 1) for _ in range(6)]:
            window.answer(sent, 9, True)
        assert window.rows == 4 * FIRST_ROWS

    def test_may_wait_for_its_own_requests(self, window):
        self.rounds(window, 3)
        for _ in range(ROUND_ANSWERS):
            both = [window.send('copy', 50, 0) for _ in range(2)]
            for number, sent in enumerate(both):
                window.answer(sent, 0.01 + 0.008 * number, True)
        assert window.rows > 8 * FIRST_ROWS

    def test_may_wait_for_pages_that_are_read(self, throttle_of_one):
        throttle, window = throttle_of_one
        self.rounds(window, 3)
        with throttle.reading([HERE]):
            for _ in range(ROUND_ANSWERS):
                self.request(window, seconds=0.016)
        before = window.rows
        assert before > 8 * FIRST_ROWS
        for _ in range(ROUND_ANSWERS):
            self.request(window, at=1, seconds=0.016)
        assert window.rows < before

    def test_has_room_for_one_request_at_least(self, window):
        assert window.pause(MOST_IN_REQUEST, 0) == 0
        window.send('copy', MOST_IN_REQUEST, 0)
        assert window.pause(1, 0) > 10**9

    def test_rests_if_it_is_smaller_than_a_request(self, window):
        window.rows = LEAST_ROWS
        self.request(window, at=10, seconds=0.1)
        rest = 0.1 * (50 / LEAST_ROWS - 1)
        assert window.pause(50, 10.1) == pytest.approx(rest)
        assert window.pause(50, 10.2 + rest) == 0

    def test_rests_for_some_seconds_at_most(self, window):
        window.rows = LEAST_ROWS
        self.request(window, at=10, seconds=60)
        assert window.pause(50, 70) == MOST_REST_SECONDS

    def test_leaves_a_server_alone_that_failed(self, window):
        window.rows = MOST_ROWS
        self.request(window, at=10, seconds=0.5, good=False)
        assert window.pause(50, 10.5) == pytest.approx(FAILED_SECONDS)

    def test_expects_more_of_kinds_that_take_longer(self, window):
        for _ in range(30 * ROUND_ANSWERS):
            for kind, seconds in (('removal', 0.1), ('copy', 0.01)):
                sent = window.send(kind, 50, 0)
                window.answer(sent, seconds, True)
        assert window.rows == MOST_ROWS


class TestProbes:
    """A probe waits for clients alone: it needs no disk."""

    @pytest.fixture
    def window(self) -> Window:
        return Window()

    def probe(self, window, seconds: float) -> Sent:
        """Send a probe and then a request that takes long on the disk."""
        assert window.begin_probe()
        window.end_probe(seconds, 0)
        sent = window.send('copy', 50, 0, is_probed=True)
        window.answer(sent, random.uniform(0.01, 0.1), True)
        return sent

    def test_decide_whatever_the_request_takes(self, window):
        for _ in range(3 * ROUND_ANSWERS):
            self.probe(window, 0.001)
        assert window.rows == 8 * FIRST_ROWS

    def test_halve_the_window_if_two_take_long(self, window):
        for seconds in (0.001, 0.006, 0.006):
            self.probe(window, seconds)
        assert window.rows == FIRST_ROWS / 2

    def test_take_long_compared_with_the_fastest_one(self, window):
        for seconds in [0.01] * 7 + [0.022]:
            self.probe(window, seconds)
        assert window.rows == 2 * FIRST_ROWS

    def test_that_fail_have_waited(self, window):
        for seconds in (0.001, math.inf, math.inf):
            self.probe(window, seconds)
        assert window.rows == FIRST_ROWS / 2

    def test_that_always_fail_have_always_waited(self, window):
        for _ in range(10 * ROUND_ANSWERS):
            self.probe(window, math.inf)
        assert window.rows == LEAST_ROWS

    def test_keep_other_requests_waiting(self, window):
        assert window.begin_probe()
        assert window.pause(1, 0) == math.inf
        window.end_probe(0.001, 0)
        assert window.pause(1, 0) == 0

    def test_do_not_hide_that_a_request_failed(self, window):
        for seconds in (0.001, 0.001):
            window.begin_probe()
            window.end_probe(seconds, 0)
            sent = window.send('copy', 50, 0, is_probed=True)
            window.answer(sent, 0.01, False)
        assert window.rows == FIRST_ROWS / 2

    def test_are_not_sent_while_something_else_is_under_way(self, window):
        window.read(1)
        assert not window.begin_probe()
        window.read(-1)
        sent = window.send('copy', 50, 0)
        assert not window.begin_probe()
        window.answer(sent, 0.01, True)
        assert window.begin_probe()
        assert not window.begin_probe()  # one at a time


class TestThrottle:
    @pytest.fixture
    def throttle(self) -> Throttle:
        return Throttle()

    def start(self, throttle, nodes, log, name, check=lambda: None):
        """Start to send a request; return the event that ends it."""
        answer = concurrency.Event()

        def send() -> None:
            with throttle.sending(
                'copy', nodes, FIRST_ROWS, check, self.probe
            ) as tell:
                log.append(name)
                answer.wait()
                for each in nodes:
                    tell(each, True)

        concurrency.spawn(send)
        concurrency.sleep(0.01)
        return answer

    def probe(self, node) -> None:
        """Answer at once."""

    def test_waits_until_all_servers_have_room(self, throttle):
        log = []
        first = self.start(throttle, [HERE, THERE], log, 'both')
        second = self.start(throttle, [THERE], log, 'there')
        assert log == ['both']
        first.send()
        concurrency.sleep(0.1)
        assert log == ['both', 'there']
        second.send()

    def test_probes_servers_at_which_nothing_is_under_way(self, throttle):
        probed = []

        def send(nodes):
            return throttle.sending(
                'copy', nodes, 1, lambda: None, probed.append
            )

        with send([HERE]) as tell:
            with send([THERE]):
                assert probed == [HERE, THERE]
            tell(HERE, True)
        with send([HERE]), send([HERE]):
            assert probed == [HERE, THERE, HERE]

    def test_sends_a_request_if_the_probe_is_not_answered(
        self, throttle, monkeypatch
    ):
        monkeypatch.setattr(module, 'PROBE_SECONDS', 0.01)
        wait = concurrency.Event().wait
        with throttle.sending(
            'copy', [HERE], 1, lambda: None, lambda _node: wait()
        ):
            assert not throttle._window(HERE).begin_probe()

    def test_other_servers_have_room_meanwhile(self, throttle):
        log = []
        first = self.start(throttle, [HERE], log, 'here')
        self.start(throttle, [THERE], log, 'there').send()
        assert log == ['here', 'there']
        first.send()

    def test_checks_after_each_wait_that_a_request_may_still_be_sent(
        self, throttle
    ):
        log = []
        first = self.start(throttle, [HERE], log, 'first')

        def check() -> None:
            log.append('check')
            if log.count('check') == 1:
                # A faster request takes the room.
                self.start(throttle, [HERE], log, 'faster').send()

        second = self.start(throttle, [HERE], log, 'second', check)
        assert log == ['first']
        first.send()
        concurrency.sleep(0.1)
        assert log == ['first', 'check', 'faster', 'check', 'second']
        second.send()

    def test_sends_nothing_if_the_check_fails(self, throttle):
        def fail() -> None:
            raise RuntimeError

        with (
            pytest.raises(RuntimeError),
            throttle.sending('copy', [HERE], FIRST_ROWS, fail, self.probe),
        ):
            raise AssertionError
        assert throttle._window(HERE).pause(MOST_ROWS, 0) == 0

    def test_a_server_that_has_not_answered_has_failed(self, throttle):
        replicas = [node(1), node(1, 'd2', 1)]
        with (
            pytest.raises(RuntimeError),
            throttle.sending(
                'copy', replicas, FIRST_ROWS, lambda: None, self.probe
            ),
        ):
            raise RuntimeError
        window = throttle._window(HERE)
        assert window.pause(1, time.monotonic()) == pytest.approx(
            FAILED_SECONDS, abs=0.5
        )

    def test_an_answer_after_the_end_of_the_block_counts_no_more(
        self, throttle
    ):
        with throttle.sending(
            'copy', [HERE], FIRST_ROWS, lambda: None, self.probe
        ) as tell:
            pass
        tell(HERE, True)
        assert throttle._window(HERE).begin_probe()

    def test_a_request_has_as_many_rows_as_all_servers_take(self, throttle):
        throttle._window(HERE).rows = MOST_ROWS
        assert throttle.in_request([HERE]) == MOST_IN_REQUEST
        assert throttle.in_request([HERE, THERE]) == LEAST_IN_REQUEST
