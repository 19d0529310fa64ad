# SPDX-License-Identifier: Apache-2.0
"""The progress that a command prints during a change of layout."""

import pytest

from shardmw.admin import change_commands as changing
from shardmw.admin.change_commands import _Reporter
from shardmw.admin.printing import REPORT_SECONDS
from shardmw.reshard.progress import Progress

INTERVAL = REPORT_SECONDS[1]


class Report:
    """A printer of progress, and a clock that tests advance."""

    def __init__(self, capsys, monkeypatch) -> None:
        self._capsys = capsys
        self._now = 1000.0
        monkeypatch.setattr(changing.time, 'monotonic', lambda: self._now)
        self._reporter = _Reporter(as_json=False)

    def after(self, seconds: float, progress: Progress) -> str:
        self._now += seconds
        self._reporter('a/c', progress)
        return self._capsys.readouterr().err


@pytest.fixture
def report(capsys, monkeypatch) -> Report:
    return Report(capsys, monkeypatch)


def test_rows_are_printed_at_intervals(report):
    assert report.after(0, Progress('moving')) == 'a/c: moving\n'
    assert report.after(INTERVAL - 1, Progress('moving', 50)) == ''
    assert report.after(1, Progress('moving', 60)).startswith(
        'a/c: moving, 60 rows, 2 rows/s'
    )


def test_a_change_that_settles_is_printed_once(report):
    settling = Progress('settling', 60)
    assert report.after(0, settling) == 'a/c: settling, 60 rows\n'
    assert report.after(10 * INTERVAL, settling) == ''


def test_a_problem_is_printed_again_and_again(report):
    waiting = Progress('settling', 60, problem='a server is down')
    line = 'a/c: settling, 60 rows, waiting: a server is down\n'
    assert report.after(0, waiting) == line
    assert report.after(INTERVAL - 1, waiting) == ''
    assert report.after(1, waiting) == line
