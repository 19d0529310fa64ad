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

FAILED = '<failure message="no"/>'
ERROR = '<error message="no"/>'
SKIPPED = '<skipped message="no"/>'


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


def report(tmp_path, *children, name='unit.xml'):
    """Write a report of tests with such children, and return its path."""
    path = tmp_path / name
    cases = ''.join(
        f'<testcase classname="test.unit" name="test_{i}">{child}</testcase>'
        for i, child in enumerate(children)
    )
    path.write_text(f'<testsuites><testsuite>{cases}</testsuite></testsuites>')
    return path


def test_passed_and_skipped_tests_are_counted(tmp_path):
    assert passed(report(tmp_path, '', '')) == '2 passed'
    assert passed(report(tmp_path, '', SKIPPED)) == '1 passed, 1 skipped'


@pytest.mark.parametrize('children', [['', FAILED], ['', ERROR], []])
def test_tests_that_failed_are_not_noted(tmp_path, children):
    with pytest.raises(NotPassedError):
        passed(report(tmp_path, *children))


def test_tests_that_passed_in_a_second_run_are_told(tmp_path):
    report(tmp_path, '', '', name='unit-again.xml')
    assert (
        passed(report(tmp_path, '', FAILED, SKIPPED))
        == '2 passed, 1 of them in a second run, 1 skipped'
    )


@pytest.mark.parametrize('again', [FAILED, SKIPPED])
def test_tests_that_did_not_pass_in_a_second_run_have_failed(tmp_path, again):
    report(tmp_path, '', again, name='unit-again.xml')
    with pytest.raises(NotPassedError):
        passed(report(tmp_path, '', FAILED))
