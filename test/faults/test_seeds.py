# SPDX-License-Identifier: Apache-2.0
"""More seeds of the simulation than `make test` has time for."""

import pytest

from test.unit.changeplan import draw
from test.unit.changesim import report


@pytest.mark.parametrize('seed', range(12, 60))
def test_listings_show_what_last_write_wins_says(seed):
    assert report(draw(seed)) == ''
