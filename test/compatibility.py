# SPDX-License-Identifier: Apache-2.0
"""Note on doc/compatibility.md which tests passed on this Swift and Python.

    python -m test.compatibility FOLDER

FOLDER has the reports unit.xml and functional.xml of pytest. tox runs this at
the end of each environment that stands for a pair of releases: see tox.ini. If
tests failed for a reason of the machine's, a second run may be added, and the
page says how many tests needed it:

    pytest --last-failed --junitxml FOLDER/functional-again.xml test/functional
"""

import platform
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from test.conformance.provenance import provenance

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / 'doc' / 'compatibility.md'

HEAD = '| Swift | Python |'
KINDS = ('unit', 'functional')

#: What became of a test, by what a JUnit file has inside of it.
OUTCOMES = {'failure': 'failed', 'error': 'failed', 'skipped': 'skipped'}


class NotPassedError(Exception):
    """Raised if the tests of a report did not pass."""


def outcomes(report: Path) -> dict[tuple[str, str], str]:
    """Return 'passed', 'failed' or 'skipped' for each test of a report.

    :param report: a JUnit file by pytest
    """
    return {
        (case.get('classname'), case.get('name')): next(
            (OUTCOMES[child.tag] for child in case if child.tag in OUTCOMES),
            'passed',
        )
        for case in ElementTree.parse(report).getroot().iter('testcase')
    }


def passed(report: Path) -> str:
    """Return how many tests of a report passed, and were skipped, in words.

    A test that failed has passed if it did in the report beside it whose name
    ends with -again.

    :param report: a JUnit file by pytest
    :raises NotPassedError: if one failed, or none passed
    """
    first = outcomes(report)
    again = report.with_stem(f'{report.stem}-again')
    second = outcomes(again) if again.exists() else {}
    mended = {
        test
        for test, outcome in first.items()
        if outcome == 'failed' and second.get(test) == 'passed'
    }
    count = Counter({**first, **dict.fromkeys(mended, 'passed')}.values())
    if count['failed'] or not count['passed']:
        raise NotPassedError(f'{report}: not all tests have passed')
    words = f'{count["passed"]:,} passed'
    if mended:
        words += f', {len(mended):,} of them in a second run'
    if count['skipped']:
        words += f', {count["skipped"]:,} skipped'
    return words


def with_row(page: str, row: str) -> str:
    """Return a page whose table has a row, instead of one for the same pair.

    The rows are in the order of the releases. Releases of the same minor
    version replace each other.
    """
    before, head, rest = page.partition(HEAD)
    heads, rule, *lines = rest.split('\n')
    end = next(i for i, line in enumerate(lines) if not line.startswith('|'))
    rows = {_pair(line): line for line in lines[:end]}
    rows[_pair(row)] = row
    table = [heads, rule, *(rows[pair] for pair in sorted(rows))]
    return before + head + '\n'.join([*table, *lines[end:]])


def _pair(row: str) -> tuple[tuple[int, ...], ...]:
    """Return the minor versions of Swift and Python that a row is about."""
    _, swift, python, *_ = row.split('|')
    return tuple(
        tuple(map(int, version.split('.')[:2])) for version in (swift, python)
    )


def row_of(swift: str, results: Mapping[str, str], code: str) -> str:
    """Return the row of the installed releases.

    :param results: what passed, by the kind of tests
    :param code: the commit that was tested
    """
    today = datetime.now(timezone.utc).date().isoformat()
    cells = swift, platform.python_version(), *results.values(), today, code
    return '| ' + ' | '.join(cells) + ' |'


def main(folder: str) -> None:
    """Note the results that a folder has."""
    results = {kind: passed(Path(folder, f'{kind}.xml')) for kind in KINDS}
    about = provenance(PROJECT)
    row = row_of(about.swift, results, about.commit)
    PAGE.write_text(with_row(PAGE.read_text('utf-8'), row), 'utf-8')
    print(row)


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except NotPassedError as err:
        sys.exit(f'Error: {err}')
