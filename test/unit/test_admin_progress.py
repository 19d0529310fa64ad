# SPDX-License-Identifier: Apache-2.0
"""The progress of changes that is noted in the register."""

import pytest

from shardmw.core.layout import Sharding
from shardmw.core.paths import Path
from shardmw.core.placement import REGISTER
from shardmw.reshard import progress as progress_module
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.progress import (
    ALIVE_SECONDS,
    NOTE_SECONDS,
    NotedProgress,
    Progress,
    ProgressNotes,
)
from shardmw.reshard.register import Register
from test.unit.fakeswift import ACCOUNT

PATH = Path('v1', ACCOUNT, 'c')
CHANGE = '65a1b2c3d4e5f', Sharding(4, 1)


def moving(moved: int, problem: str = '') -> Progress:
    return Progress('moving', moved, 1000, problem, CHANGE)


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_module, 'time', clock)
    return clock


class Notes:
    """The register, and the notes of the progress of `c` in it."""

    def __init__(self, swift, clock: Clock, path: Path = PATH) -> None:
        swift.put_container(f'/{REGISTER}/{ACCOUNT}')
        cluster = SwiftCluster(swift)
        self.register = Register(cluster.backend, cluster.env)
        self.register.note(path)
        self.clock = clock
        self.note = ProgressNotes(self.register, path).note

    def after(self, seconds: float, progress: Progress) -> NotedProgress:
        """Report progress after some seconds; return what is noted then."""
        self.clock.now += seconds
        self.note(progress)
        return self.noted()

    def noted(self) -> NotedProgress | None:
        (each,) = self.register.notes(ACCOUNT)
        return NotedProgress.from_text(each.text)


@pytest.fixture
def notes(swift, clock) -> Notes:
    return Notes(swift, clock)


def test_no_progress_is_noted_before_a_change_begins(notes):
    assert notes.noted() is None


def test_progress_is_noted_with_the_former_layout(notes):
    noted = notes.after(
        0, moving(20, '2 of 3 replicas of the root stored the record')
    )
    assert (noted.layout_id, noted.former) == CHANGE
    assert (noted.phase, noted.moved, noted.total) == ('moving', 20, 1000)
    assert noted.problem == '2 of 3 replicas of the root stored the record'
    assert noted.rate is None


def test_progress_is_noted_again_after_a_while_with_its_rate(notes):
    notes.after(0, moving(20))
    assert notes.after(NOTE_SECONDS - 1, moving(50)).moved == 20
    noted = notes.after(1, moving(80))
    assert (noted.moved, noted.rate) == (80, 60 / NOTE_SECONDS)


def test_a_new_phase_is_noted_at_once(notes):
    notes.after(0, moving(20))
    settling = Progress('settling', 20, 20, '', CHANGE)
    assert notes.after(0, settling).phase == 'settling'


def test_a_problem_is_noted_at_once(notes):
    notes.after(0, moving(20))
    assert notes.after(0, moving(20, 'a server is down')).problem
    noted = notes.after(NOTE_SECONDS - 1, moving(50))
    assert noted.problem == 'a server is down'
    assert notes.after(1, moving(50)).problem == ''


def test_a_wait_is_noted_again_as_a_sign_of_life(notes):
    first = notes.after(0, moving(20))
    again = notes.after(ALIVE_SECONDS - 1, moving(20))
    assert again.noted == first.noted
    again = notes.after(1, moving(20))
    assert again.noted > first.noted


def test_a_register_that_does_not_answer_is_ignored(swift, notes):
    notes.after(0, moving(20))
    swift.servers.away.add('d0')
    notes.clock.now += NOTE_SECONDS
    notes.note(moving(50))
    swift.servers.away.clear()
    assert notes.noted().moved == 20


def test_the_last_steps_keep_the_noted_progress(notes):
    notes.after(0, moving(20))
    assert notes.after(NOTE_SECONDS, Progress('cleaning up')).moved == 20


def test_a_step_of_the_change_keeps_the_noted_progress(notes):
    notes.after(0, moving(20))
    notes.register.note(PATH)
    assert notes.noted().moved == 20


def test_the_age_of_a_note_is_that_of_its_progress(notes):
    notes.after(0, moving(20))
    notes.clock.now += 500
    notes.register.note(PATH)
    assert notes.noted().age == 500


def test_one_container_does_not_get_the_text_of_another(notes):
    notes.register.note(PATH.of_container('cc'), 'text')
    notes.register.remove(PATH)
    notes.register.note(PATH)
    texts = {n.path.container: n.text for n in notes.register.notes(ACCOUNT)}
    assert texts == {'c': '', 'cc': 'text'}


def test_progress_is_noted_for_old_versions(swift, clock):
    path = PATH.of_container('\0versions\0c')
    notes = Notes(swift, clock, path)
    assert notes.after(0, moving(20)).moved == 20
    notes.register.note(path)
    assert notes.noted().moved == 20


@pytest.mark.parametrize('text', ['', 'noetag', '{}', '[]', '7', '{"id": 1}'])
def test_text_of_another_kind_is_no_progress(text):
    assert NotedProgress.from_text(text) is None
