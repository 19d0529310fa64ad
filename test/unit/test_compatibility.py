# SPDX-License-Identifier: Apache-2.0
"""The table of tested releases, which the runs write."""

import pytest

from test import compatibility
from test.compatibility import NotPassedError, passed, with_row

PAGE = """# Page

| Swift | Python | unit |
| --- | --- | --- |
| 2.33.1 | 3.10.13 | 5 passed |
| 2.38.2 | 3.9.1 | 6 passed |

After it.
"""


@pytest.mark.parametrize(
    ('row', 'lines'),
    [
        ('| 2.33.0 | 3.10.1 | 7 passed |', (4, 5)),
        ('| 2.38.3 | 3.10.13 | 7 passed |', (6, 6)),
        ('| 2.4.0 | 3.10.13 | 7 passed |', (4, 4)),
    ],
)
def test_a_row_replaces_that_of_the_same_pair_and_keeps_the_order(row, lines):
    before = PAGE.split('\n')
    start, end = lines
    expected = [*before[:start], row, *before[end:]]
    assert with_row(PAGE, row).split('\n') == expected


def test_the_first_row_comes_below_the_heads():
    row = '| 2.33.1 | 3.10.13 | 5 passed |'
    page = '\n'.join(PAGE.split('\n')[:4]) + '\n\nAfter it.\n'
    assert row in with_row(page, row).split('\n')[4]


def test_the_page_has_the_table():
    page = compatibility.PAGE.read_text('utf-8')
    assert compatibility.HEAD in page


def report(tmp_path, **counts):
    path = tmp_path / 'unit.xml'
    counts = {'tests': 9, 'failures': 0, 'errors': 0, 'skipped': 0, **counts}
    about = ' '.join(f'{name}="{count}"' for name, count in counts.items())
    path.write_text(f'<testsuites><testsuite {about}/></testsuites>')
    return path


def test_passed_and_skipped_tests_are_counted(tmp_path):
    assert passed(report(tmp_path)) == '9 passed'
    assert passed(report(tmp_path, skipped=2)) == '7 passed, 2 skipped'


@pytest.mark.parametrize(
    'counts', [{'failures': 1}, {'errors': 1}, {'tests': 0}]
)
def test_tests_that_failed_are_not_noted(tmp_path, counts):
    with pytest.raises(NotPassedError):
        passed(report(tmp_path, **counts))
