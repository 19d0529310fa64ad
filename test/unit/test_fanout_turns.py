# SPDX-License-Identifier: Apache-2.0
"""Turns of requests that read many shards, by account."""

import pytest

from shardmw.backend.fanout_turns import NoTurn, Turns
from shardmw.swift.concurrency import Timeout, sleep, spawn

LONG_SECONDS = 60
SHORT_SECONDS = 0.02


class Requests:
    """Requests that keep their turns until a test ends them.

    :ivar began: the requests that got a turn, in order
    """

    def __init__(self, most: int, most_of_account: int) -> None:
        self.turns = Turns(most, most_of_account, LONG_SECONDS)
        self.began: list[str] = []
        self._threads: dict = {}

    def start(self, *names: str) -> None:
        """Start requests; the account is the first letter of the name."""
        for name in names:
            self._threads[name] = spawn(self._serve, name)
            sleep(0)

    def end(self, *names: str) -> None:
        """End requests that have their turn or wait for it."""
        for name in names:
            self._threads.pop(name).kill()
            sleep(0)

    def _serve(self, name: str) -> None:
        with self.turns.turn({}, name[0]):
            self.began.append(name)
            sleep(LONG_SECONDS)


def test_an_account_has_no_more_turns_than_it_may():
    requests = Requests(most=10, most_of_account=2)
    requests.start('a1', 'a2', 'a3', 'a4')
    assert requests.began == ['a1', 'a2']


def test_another_account_does_not_wait_for_it():
    requests = Requests(most=10, most_of_account=2)
    requests.start('a1', 'a2', 'a3', 'b1')
    assert requests.began == ['a1', 'a2', 'b1']


def test_all_accounts_have_no_more_turns_than_there_are():
    requests = Requests(most=3, most_of_account=2)
    requests.start('a1', 'a2', 'b1', 'b2', 'c1')
    assert requests.began == ['a1', 'a2', 'b1']


def test_requests_of_an_account_wait_in_order():
    requests = Requests(most=10, most_of_account=1)
    requests.start('a1', 'a2', 'a3')
    requests.end('a1', 'a2')
    assert requests.began == ['a1', 'a2', 'a3']


def test_a_free_turn_goes_to_the_account_that_has_the_fewest():
    requests = Requests(most=3, most_of_account=2)
    requests.start('a1', 'a2', 'b1', 'b2', 'c1')
    requests.end('a1')
    assert requests.began[3:] == ['c1']


def test_accounts_that_have_as_many_are_given_turns_alternately():
    requests = Requests(most=1, most_of_account=1)
    requests.start('z', 'a1', 'a2', 'b1', 'b2')
    requests.end('z', 'a1', 'b1', 'a2')
    assert requests.began[1:] == ['a1', 'b1', 'a2', 'b2']


def test_a_request_that_ends_while_it_waits_takes_no_turn():
    requests = Requests(most=10, most_of_account=1)
    requests.start('a1', 'a2', 'a3')
    requests.end('a2', 'a1')
    assert requests.began == ['a1', 'a3']


def test_a_request_that_is_killed_with_its_turn_just_given_passes_it_on():
    requests = Requests(most=10, most_of_account=1)
    requests.start('a1', 'a2', 'a3')
    given_to = requests._threads['a2']
    requests.turns._give_back('a')
    given_to.kill()
    sleep(0)
    assert requests.began == ['a1', 'a3']


def test_a_request_has_one_turn_for_all_that_it_does():
    turns, env = Turns(1, 1, SHORT_SECONDS), {}
    with turns.turn(env, 'a'), turns.turn(env, 'a'):
        pass
    with turns.turn({}, 'a'):
        assert env == {}


def test_a_request_that_waits_too_long_is_refused():
    turns = Turns(1, 1, SHORT_SECONDS)
    with turns.turn({}, 'a'):
        with pytest.raises(NoTurn, match='account a in 0.02 s'):
            turns.turn({}, 'a').__enter__()
        with pytest.raises(NoTurn):
            turns.turn({}, 'b').__enter__()
    with turns.turn({}, 'b'):
        assert not turns._waiting


def test_a_timeout_of_the_request_itself_is_no_refusal():
    turns = Turns(1, 1, LONG_SECONDS)
    with turns.turn({}, 'a'), pytest.raises(Timeout), Timeout(SHORT_SECONDS):
        turns.turn({}, 'a').__enter__()
    assert not turns._waiting


def test_nothing_is_remembered_of_accounts_without_requests():
    turns = Turns(2, 1, SHORT_SECONDS)
    with turns.turn({}, 'a'):
        pass
    assert not turns._taken
    assert not turns._waiting
