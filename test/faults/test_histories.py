# SPDX-License-Identifier: Apache-2.0
"""Porcupine's opinion on histories that are written by hand."""

import shutil
import subprocess
import sys

import pytest

from test.faults.histories import keep
from test.history import History
from test.unit.test_history import EXPLAINED, VIOLATIONS, got, listed, put

pytestmark = pytest.mark.skipif(not shutil.which('go'), reason='needs Go')

#: Only the checker in Python compares the sizes that listings show.
ONLY_SIZES = (
    'a row that was overwritten',
    'a listing of an overwritten object, though replicas are old',
)

MET = [put(1, 4), put(2, 3, 7)]
PENDING = put(5, 90, 8)


def history_of(writes, *reads) -> History:
    history = History()
    for write in writes:
        history.wrote(write)
    for read in reads:
        history.read(read)
    return history


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('histories')


@pytest.fixture(scope='module')
def says(folder):
    """Return what the checker says about histories, by their names."""
    histories = {
        **{f'explained {k}': history_of(*v) for k, v in EXPLAINED.items()},
        **{f'violation {k}': history_of(*v) for k, v in VIOLATIONS.items()},
        'agreeing': history_of(MET, got(5, 1), got(7, 1)),
        'disagreeing': history_of(MET, got(5, 1), got(7, 7)),
        'disagreeing meanwhile': history_of(
            [*MET, PENDING], got(6, 1), got(8, 8), got(10, 7), listed(95, 8)
        ),
    }
    for name, history in histories.items():
        keep(history, folder / f'{name}.jsonl.gz')
    ran = subprocess.run(
        (sys.executable, '-m', 'test.faults.histories', folder),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1, ran.stderr
    return {
        name: ran.stdout.partition(f'{folder}/{name}.jsonl.gz: ')[2]
        for name in histories
    }


@pytest.mark.parametrize('name', EXPLAINED)
def test_the_checkers_agree_on_what_is_explained(says, name):
    assert ', 0 wrong, 0 not decided\n' in says[f'explained {name}'][:80]


@pytest.mark.parametrize('name', sorted({*VIOLATIONS} - {*ONLY_SIZES}))
def test_the_checkers_agree_on_violations(says, name):
    assert ', 1 wrong, 0 not decided\n' in says[f'violation {name}'][:80]


def test_reads_that_meet_no_write_must_agree_on_one_order(says):
    assert ', 0 wrong,' in says['agreeing'][:80]
    assert ', 1 wrong,' in says['disagreeing'][:80]


def test_reads_that_meet_a_write_may_disagree(says):
    assert ', 0 wrong,' in says['disagreeing meanwhile'][:80]


def test_the_shortest_part_of_a_wrong_history_is_drawn(says, folder):
    assert 'o: GET shows an object v7' in says['disagreeing'][:400]
    assert (folder / 'disagreeing.html').exists()
    assert not (folder / 'agreeing.html').exists()
