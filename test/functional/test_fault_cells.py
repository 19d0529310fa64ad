# SPDX-License-Identifier: Apache-2.0
"""A few cells of the fault matrix, which ``make faults`` runs as a whole."""

import time

import pytest

from test.faults.__main__ import carry_out, text_of
from test.faults.matrix import chosen
from test.faults.site import Site

SECONDS = 8
CELLS = chosen(['container-stopped-reshard', 'object-old-objects'])


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    with Site(tmp_path_factory.mktemp('faults')) as site:
        yield site


@pytest.mark.parametrize('cell', CELLS, ids=str)
def test_nothing_is_lost(site, cell):
    result = carry_out(site, cell, int(time.time()), SECONDS)
    print(text_of(result))
    assert result['is_good'], text_of(result)
