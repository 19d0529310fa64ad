# SPDX-License-Identifier: Apache-2.0
"""Note on doc/compatibility.md which tests passed on this Swift and Python.

    python -m test.compatibility FOLDER

FOLDER has the reports unit.xml and functional.xml of pytest. tox runs this at
the end of each environment that stands for a pair of releases: see tox.ini.
"""

import platform
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from test.conformance.provenance import provenance

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / 'doc' / 'compatibility.md'

HEAD = '| Swift | Python |'
KINDS = ('unit', 'functional')


class NotPassedError(Exception):
    """Raised if the tests of a report did not pass."""


def passed(report: Path) -> str:
    """Return how many tests of a report passed, and were skipped, in words.

    :param report: a JUnit file by pytest
    :raises NotPassedError: if one failed, or none passed
    """
    suite = ElementTree.parse(report).getroot().find('testsuite')
    count = {
        name: int(suite.get(name))
        for name in ('tests', 'failures', 'errors', 'skipped')
    }
    good = count['tests'] - sum(
        count[name] for name in ('failures', 'errors', 'skipped')
    )
    if count['failures'] or count['errors'] or not good:
        raise NotPassedError(f'{report}: not all tests have passed')
    skipped = f', {count["skipped"]} skipped' if count['skipped'] else ''
    return f'{good:,} passed{skipped}'


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
