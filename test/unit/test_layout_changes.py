# SPDX-License-Identifier: Apache-2.0
"""Random histories of clients, faults and changes of layout."""

import pytest

from test.unit.breaks import BREAKS, broken, found, usual_seeds
from test.unit.changeplan import COLD_NAMES, Plan, Step, draw
from test.unit.changesim import carry_out, report

SEEDS = 12


#: Two replicas of the root are on handoffs when a change begins, and the third
#: still has the earlier plain container. Then others list what was written.
ALONE = (
    *(Step('PUT', 0, 1, name=name) for name in COLD_NAMES),
    Step('stale', 0, 0, replica=0, seconds=40),
    Step('handoff', 0, 6, seconds=12, place='root', replicas=(1, 2)),
    Step('walk', 0, 60, limit=100),
    Step('walk', 0, 100, limit=100),
)


@pytest.fixture(autouse=True)
def _strays_move_at_once():
    """Let strays stay as long as in production: time is simulated."""


@pytest.mark.parametrize('seed', range(SEEDS))
def test_listings_show_what_last_write_wins_says(seed):
    assert report(draw(seed)) == ''


def test_a_replica_that_missed_the_creation_begins_no_change():
    plan = Plan(0, 3, 3, 1, (), ALONE)
    assert report(plan) == ''


def test_a_seed_repeats_its_history():
    first, second = (carry_out(draw(1)) for _ in range(2))
    assert (first.reads, first.notes) == (second.reads, second.notes)


@pytest.mark.parametrize('rule', BREAKS)
def test_a_broken_rule_is_found(rule):
    assert found(rule, usual_seeds(rule))


def test_a_wrong_history_is_reported_with_its_shortest_plan():
    plan = found('one_tombstone', usual_seeds('one_tombstone'))
    with broken('one_tombstone'):
        text = report(plan, most_runs=6)
    assert text.startswith(f'seed {plan.seed}, from {plan.former} to ')
    steps = [line for line in text.splitlines() if ' after record ' in line]
    assert 0 < len(steps) < len(plan.steps)
