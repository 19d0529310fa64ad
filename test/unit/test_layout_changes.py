# SPDX-License-Identifier: Apache-2.0
"""Random histories of clients, faults and changes of layout."""

import pytest

from test.unit.changesim import World
from test.unit.fakeswift import fake_swift

SEEDS = 3
SECONDS = 500


@pytest.mark.parametrize('seed', range(SEEDS))
def test_listings_show_what_last_write_wins_says(seed, monkeypatch):
    with fake_swift(3) as swift:
        World(swift, seed, monkeypatch).run(SECONDS)
