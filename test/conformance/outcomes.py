# SPDX-License-Identifier: Apache-2.0
"""The outcome of each test, and what sharding changed. Pure."""

import enum
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_DETAIL_LINES = 12


class Status(enum.IntEnum):
    """The status of a test, the worst last."""

    PASSED = 0
    SKIPPED = 1
    FAILED = 2


class Outcome(NamedTuple):
    """The outcome of a test.

    :param why: the reason; of a long text, the last lines
    """

    status: Status
    why: str = ''


Outcomes = Mapping[str, Outcome]

_PASSED = Outcome(Status.PASSED)


def parse_junit(text: str) -> dict[str, Outcome]:
    """Return the outcomes in a JUnit XML report, by test.

    A test may be reported more than once, for its teardown or its subtests.
    The worst outcome counts.

    :raises ValueError: if the text is no such report
    """
    try:
        root = ET.fromstring(text)
    except ET.ParseError as err:
        raise ValueError(f'no JUnit report: {err}') from None
    outcomes: dict[str, Outcome] = {}
    for case in root.iter('testcase'):
        name = f'{case.get("classname", "")}.{case.get("name", "")}'
        outcome = _outcome(case)
        outcomes[name] = max(
            outcomes.get(name, outcome), outcome, key=lambda each: each.status
        )
    return outcomes


def _outcome(case: ET.Element) -> Outcome:
    failures = [*case.iter('failure'), *case.iter('error')]
    if failures:
        return Outcome(Status.FAILED, _end_of_text(failures[0]))
    skipped = case.find('skipped')
    if skipped is not None:
        return Outcome(Status.SKIPPED, skipped.get('message') or 'no reason')
    return _PASSED


def _end_of_text(element: ET.Element) -> str:
    text = element.text or element.get('message') or ''
    return '\n'.join(text.strip().splitlines()[-_DETAIL_LINES:])


@dataclass(frozen=True)
class Comparison:
    """The tests by how they differ between the plain and the sharded cluster.

    Each test is in one of the fields, by its name.

    :param passed: passed on both
    :param failed: failed on both, with the reason on the sharded cluster
    :param skipped: skipped on both, with the reason on the sharded cluster
    :param regressed: failed or skipped on the sharded cluster only
    :param better: passed on the sharded cluster only
    :param plain_only: not in the sharded run
    :param sharded_only: not in the plain run
    """

    passed: tuple[str, ...]
    failed: Mapping[str, str]
    skipped: Mapping[str, str]
    regressed: Mapping[str, Outcome]
    better: Mapping[str, Outcome]
    plain_only: tuple[str, ...]
    sharded_only: tuple[str, ...]


def compare(plain: Outcomes, sharded: Outcomes) -> Comparison:
    """Return how the outcomes on the sharded cluster differ."""
    common = sorted(plain.keys() & sharded.keys())
    same = [n for n in common if plain[n].status == sharded[n].status]
    changed = [n for n in common if plain[n].status != sharded[n].status]

    def why(status: Status) -> dict[str, str]:
        return {
            name: sharded[name].why
            for name in same
            if sharded[name].status == status
        }

    return Comparison(
        passed=tuple(why(Status.PASSED)),
        failed=why(Status.FAILED),
        skipped=why(Status.SKIPPED),
        regressed={
            name: sharded[name]
            for name in changed
            if sharded[name].status != Status.PASSED
        },
        better={
            name: plain[name]
            for name in changed
            if sharded[name].status == Status.PASSED
        },
        plain_only=tuple(sorted(plain.keys() - sharded.keys())),
        sharded_only=tuple(sorted(sharded.keys() - plain.keys())),
    )
