# SPDX-License-Identifier: Apache-2.0
"""The notes that processes of the daemon leave in the register."""

import dataclasses

import pytest

from shardmw.backend.containers import BackendError
from shardmw.core.placement import REGISTER
from shardmw.reshard import heartbeat
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.heartbeat import Heartbeat, heartbeats
from shardmw.reshard.register import Register
from test.unit.clocks import Clock

NOW = 1_800_000_000
BEAT = Heartbeat(0, 0, 'host', '1.0', 300, 0.5, 2, 3, 1, '', NOW)


@pytest.fixture
def register(swift) -> Register:
    cluster = SwiftCluster(swift)
    return Register(cluster.backend, cluster.env)


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> Clock:
    clock = Clock(NOW)
    monkeypatch.setattr(heartbeat, 'time', clock)
    return clock


def of_process(number: int, **values) -> Heartbeat:
    return dataclasses.replace(BEAT, process=number, **values)


class TestText:
    def test_has_all_values(self):
        assert Heartbeat.from_text(BEAT.to_text()) == BEAT

    @pytest.mark.parametrize('text', ['', '[]', '7', '{"process": 0}'])
    def test_that_is_none_is_ignored(self, text):
        assert Heartbeat.from_text(text) is None

    def test_may_have_values_of_a_later_release(self):
        text = BEAT.to_text().replace('{', '{"later": 1, ', 1)
        assert Heartbeat.from_text(text) == BEAT


class TestRegister:
    def test_has_no_notes_at_first(self, register):
        assert heartbeats(register) == []

    def test_keeps_the_last_note_of_each_process(self, register):
        notes = [of_process(0), of_process(11), of_process(0, changes=9)]
        for each in notes:
            register.note_process(each.process, each.to_text())
        assert heartbeats(register) == [notes[2], notes[1]]

    def test_lists_no_account_for_a_note(self, register):
        register.note_process(0, BEAT.to_text())
        assert [*register.accounts()] == []

    def test_is_created_without_autocreation(self, swift, register):
        swift.account_autocreate = False
        register.note_process(0, BEAT.to_text())
        assert heartbeats(register) == [BEAT]

    def test_takes_a_note_with_one_request(self, swift, register):
        register.note_process(0, BEAT.to_text())
        swift.calls.clear()
        register.note_process(0, BEAT.to_text())
        assert swift.sent() == [('POST', f'/v1/{REGISTER}')]

    def test_says_that_it_does_not_answer(self, swift, register):
        for method in ('HEAD', 'POST'):
            swift.register(method, f'/v1/{REGISTER}', 503)
        told = f'account {REGISTER} answered 503'
        with pytest.raises(BackendError, match=told):
            heartbeats(register)
        with pytest.raises(BackendError, match=told):
            register.note_process(0, '')


class TestLife:
    @pytest.mark.parametrize(
        ('values', 'seconds'),
        [
            ({}, 3 * 300.5),
            ({'interval': 1}, 60),
            ({'pass_seconds': 100}, 3 * 400),
        ],
    )
    def test_ends_after_three_intervals_without_a_note(
        self, clock, values, seconds
    ):
        beat = of_process(0, **values)
        clock.now += seconds - 1
        assert beat.is_alive
        clock.now += 2
        assert not beat.is_alive

    def test_has_begun_if_the_clock_of_the_daemon_is_ahead(self):
        beat = of_process(0, noted=NOW + 9)
        assert (beat.age, beat.ahead, beat.is_alive) == (0, 9, True)
