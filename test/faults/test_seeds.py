# SPDX-License-Identifier: Apache-2.0
"""More seeds of the simulation than `make test` has time for."""

import pytest

from test.unit.breaks import BREAKS, SEEDS_TO_FIND, found
from test.unit.changeplan import draw
from test.unit.changesim import report


@pytest.mark.parametrize('seed', range(12, SEEDS_TO_FIND))
def test_listings_show_what_last_write_wins_says(seed):
    assert report(draw(seed)) == ''


@pytest.mark.parametrize('rule', BREAKS)
def test_a_search_without_a_known_seed_finds_each_broken_rule(rule):
    assert found(rule, range(SEEDS_TO_FIND))
