# SPDX-License-Identifier: Apache-2.0
"""The table of phases, and what the documentation says of it."""

import re
from pathlib import Path

import pytest

from shardmw.core import phases
from shardmw.core.layout import PLAIN, Layout, Sharding
from shardmw.core.phases import (
    ANNOUNCED,
    DONE,
    MOVING,
    NEW,
    OLD,
    PHASES,
    RETURNING,
)
from test.unit.breaks import BREAKS

PAGE = Path(__file__).parents[2] / 'doc' / 'resharding.md'
NAMES = {OLD: 'old', NEW: 'new'}

#: The layouts of a change from 4 to 8 shards, and of the way back.
FOUR = Layout('0' * 13, 4)
EIGHT = FOUR.announced(8, 1)
CHANGE = {
    ANNOUNCED: EIGHT,
    MOVING: EIGHT.moving(2),
    RETURNING: EIGHT.moving(2).cancelled(3),
    DONE: EIGHT.moving(2).done(3),
}


def table(title: str) -> dict[str, list[str]]:
    """Return the cells of a table of the page by its first column."""
    text = PAGE.read_text(encoding='utf-8')
    rows = text[text.index(f'| phase | {title}') :].partition('\n\n')[0]
    cells = [
        [cell.strip() for cell in line.strip('| ').split('|')]
        for line in rows.splitlines()[2:]
    ]
    return {first: rest for first, *rest in cells}


def places(sides) -> str:
    if len(sides) == 1:
        return f'the {NAMES[sides[0]]} place'
    return 'the {} and the {} place'.format(*(NAMES[s] for s in sides))


#: How the page names the phases.
ROWS = {
    ANNOUNCED: 'announced',
    MOVING: 'moving, settling',
    RETURNING: 'moving, settling',
    DONE: 'done',
}


@pytest.mark.parametrize('name', PHASES)
def test_the_page_says_where_rows_and_tombstones_go(name):
    phase = PHASES[name]
    rows, tombstones, listings = table('rows of new uploads')[ROWS[name]]
    assert rows == places([phase.rows_to])
    assert tombstones == places(phase.tombstones_to)
    assert listings == ', '.join([*(NAMES[s] for s in phase.reads), 'root'])


@pytest.mark.parametrize('name', PHASES)
def test_the_page_says_what_container_sync_reads(name):
    phase = PHASES[name]
    row = ROWS[name]
    if phase.is_cancelled:
        row += ' of a change that was cancelled'
    (cell,) = table('container-sync reads')[row]
    expected = places([phase.syncs]) if phase.syncs else 'nothing'
    if phase.syncs and not phase.syncs_root:
        expected += '; nothing if the container becomes plain'
    assert cell == expected


@pytest.mark.parametrize('name', PHASES)
def test_a_phase_leads_to_the_next_one_of_the_table(name):
    layout = CHANGE[name]
    if name == DONE:
        assert not layout.is_changing
        return
    following = layout.moving(9) if name == ANNOUNCED else layout.done(9)
    assert following.phase == PHASES[name].next


def test_phases_have_the_names_that_are_in_records():
    assert {*PHASES} == {'announced', 'moving', 'returning', None}
    assert PHASES[DONE].next is DONE


def test_rows_move_once_all_proxies_write_to_the_new_side():
    moves = {name: phase.moves_from for name, phase in PHASES.items()}
    assert moves == {ANNOUNCED: None, MOVING: OLD, RETURNING: OLD, DONE: None}


@pytest.mark.parametrize('name', PHASES)
def test_tombstones_go_wherever_rows_may_be(name):
    """Invariant I2."""
    phase = PHASES[name]
    may_have_rows = {phase.rows_to, *phase.reads}
    assert {*phase.tombstones_to} == may_have_rows


@pytest.mark.parametrize('name', PHASES)
def test_listings_read_the_side_that_rows_leave_first(name):
    """Invariant I3."""
    phase = PHASES[name]
    if phase.moves_from:
        assert phase.reads[0] is phase.moves_from
        assert phase.rows_to is phase.reads[-1]


def test_rows_move_to_where_new_rows_go():
    for phase in PHASES.values():
        assert phase.moves_from is not phase.rows_to


def test_container_sync_never_reads_a_side_that_rows_leave():
    for phase in PHASES.values():
        assert phase.syncs is None or phase.syncs is not phase.moves_from


def test_container_sync_reads_the_root_unless_rows_return_to_it():
    reads_root = {name: phase.syncs_root for name, phase in PHASES.items()}
    assert reads_root == {
        ANNOUNCED: True,
        MOVING: False,
        RETURNING: False,
        DONE: True,
    }


def test_rows_that_return_get_an_offset_in_a_change_that_is_cancelled():
    """Invariant I5."""
    cancelled = {name: phase.is_cancelled for name, phase in PHASES.items()}
    assert cancelled == {
        ANNOUNCED: False,
        MOVING: False,
        RETURNING: True,
        DONE: False,
    }


def test_sides_of_a_change_that_goes_back_are_swapped():
    back = CHANGE[RETURNING]
    assert back.sharding_of(NEW) == Sharding(4)
    assert back.sharding_of(OLD) == Sharding(8)
    assert back.written_sharding == Sharding(4)


def test_the_root_is_synced_only_when_all_rows_are_there():
    to_root = FOUR.announced(0, 1)
    assert to_root.synced == 4
    assert to_root.moving(2).synced is None
    assert to_root.moving(2).done(3).synced == PLAIN.synced == 0


def test_each_invariant_is_broken_on_purpose():
    numbers = re.findall(r'^(I\d)  ', phases.__doc__, re.MULTILINE)
    assert numbers == [f'I{number}' for number in range(1, 8)]
    broken = {each.__doc__.partition(':')[0] for each in BREAKS.values()}
    assert broken == {*numbers}
