# SPDX-License-Identifier: Apache-2.0
"""The text on the terminal and the page about the results. Pure."""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence

from test.conformance.outcomes import Outcome
from test.conformance.provenance import Provenance
from test.conformance.shares import in_words
from test.conformance.variants import VARIANTS
from test.conformance.verdict import Verdict

_MINUTE_SECONDS = 60
_NOTHING = 'Nothing.'

#: The figures of a variant in the table, by the head of the column.
_COLUMNS: Mapping[str, Callable[[Verdict], int]] = {
    'shards': lambda v: v.shards,
    'passed': lambda v: len(v.comparison.passed),
    'failed': lambda v: len(v.comparison.failed),
    'skipped': lambda v: len(v.comparison.skipped),
    'worse': lambda v: len(v.comparison.regressed),
    'better': lambda v: len(v.comparison.better),
    'containers': lambda v: v.census.logical,
    'sharded': lambda v: v.census.sharded,
    'backing': lambda v: v.census.backing,
    'minutes': lambda v: round(v.seconds / _MINUTE_SECONDS),
}

_PAGE = """\
# Conformance

`make conformance` runs the functional tests that come with Swift, those of its
S3 interface included, on two clusters: a plain one, and one where shardmw
shards every container that a test creates. What passes on the first must pass
on the second; no test is exempt. It wrote this page on {date}, with Swift
{swift}, Python {python} and shardmw {shardmw} ({commit}).

{table}

{variants}

*Passed*, *failed* and *skipped* are tests that did so on both clusters.
*Worse* are tests that failed or were skipped on the sharded cluster only,
*better* are tests that passed there only. *Containers* is the number of
containers that the tests made on the sharded cluster, including those for old
versions of objects. *Sharded* is the number of them that had all their backing
containers, and *backing* the number of backing containers. The databases on
the devices were counted after the tests. *Minutes* is the time of the tests on
the sharded cluster, beside others that ran at the same time.

## Worse on the sharded cluster

{worse}

## Better on the sharded cluster

{better}

## Failed on both

{failed}

## Skipped on both

{skipped}
"""


def table_rows(verdicts: Sequence[Verdict]) -> list[list[str]]:
    """Return the head of the table, and a row for each variant."""
    rows = [['variant', *_COLUMNS]]
    for verdict in verdicts:
        numbers = [f'{of(verdict):,}' for of in _COLUMNS.values()]
        rows.append([verdict.variant, *numbers])
    return rows


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the table as text, with names on the left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *numbers in rows:
        cells = [name.ljust(widths[0])]
        cells += [n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True)]
        lines.append('  '.join(cells))
    return lines


def details(verdict: Verdict) -> list[str]:
    """Return lines about a variant that explain its numbers."""
    comparison = verdict.comparison
    lines = [f'problem: {problem}' for problem in verdict.problems]
    if _has_shares(verdict):
        lines.append(f'requests by proxy: {in_words(verdict.requests)}')
    for name, outcome in comparison.regressed.items():
        lines.append(f'{_status(outcome)} on the sharded cluster only: {name}')
        lines += [f'    {line}' for line in outcome.why.splitlines()]
    for name, outcome in comparison.better.items():
        lines.append(f'{_status(outcome)} on the plain cluster only: {name}')
    lines += [f'failed on both: {name}' for name in comparison.failed]
    reasons = collections.Counter(comparison.skipped.values())
    lines += [f'skipped on both, {n}: {why}' for why, n in reasons.items()]
    return lines


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return the last line, which scripts can parse."""
    passed = failed = skipped = 0
    for verdict in verdicts:
        comparison = verdict.comparison
        passed += len(comparison.passed) + len(comparison.better)
        failed += verdict.failures
        skipped += len(comparison.skipped)
    return f'{passed} passed, {failed} failed, {skipped} skipped'


def page(verdicts: Sequence[Verdict], provenance: Provenance) -> str:
    """Return the text of doc/conformance.md."""
    return _PAGE.format(
        date=provenance.date,
        swift=provenance.swift,
        python=provenance.python,
        shardmw=provenance.shardmw,
        commit=provenance.commit,
        table=_markdown_table(table_rows(verdicts)),
        variants=_bullets(
            f'**{each.variant}**: {_about(each)}.' for each in verdicts
        ),
        worse=_bullets(
            [
                *_by_test(
                    {v.variant: v.comparison.regressed for v in verdicts}
                ),
                *(f'{v.variant}: {p}' for v in verdicts for p in v.problems),
            ]
        ),
        better=_bullets(
            _by_test({v.variant: v.comparison.better for v in verdicts})
        ),
        failed=_bullets(
            _by_test({v.variant: v.comparison.failed for v in verdicts})
        ),
        skipped=_bullets(
            _by_reason({v.variant: v.comparison.skipped for v in verdicts})
        ),
    )


def _about(verdict: Verdict) -> str:
    about = VARIANTS[verdict.variant].about
    if _has_shares(verdict):
        return f'{about} (requests: {in_words(verdict.requests)})'
    return about


def _has_shares(verdict: Verdict) -> bool:
    return len(verdict.requests) > 1


def _status(outcome: Outcome) -> str:
    return outcome.status.name.lower()


def _markdown_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    rule = ['---', *('---:' for _ in head[1:])]
    return '\n'.join(f'| {" | ".join(row)} |' for row in (head, rule, *body))


def _bullets(items: Iterable[str]) -> str:
    return '\n'.join(f'- {item}' for item in items) or _NOTHING


def _by_test(tests: Mapping[str, Iterable[str]]) -> list[str]:
    """Return an item for each test, with its variants.

    :param tests: the names of tests by variant
    """
    variants = collections.defaultdict(list)
    for variant, names in tests.items():
        for name in names:
            variants[name].append(variant)
    return [
        f'`{name}`{_where(found, len(tests))}'
        for name, found in sorted(variants.items())
    ]


def _by_reason(skipped: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return an item for each reason, with its tests below it.

    :param skipped: the reasons by test, by variant
    """
    tests = collections.defaultdict(lambda: collections.defaultdict(list))
    for variant, reasons in skipped.items():
        for name, reason in reasons.items():
            tests[reason][name].append(variant)
    return [
        '\n'.join(
            [
                f'{reason}:',
                *(
                    f'  - `{name}`{_where(variants, len(skipped))}'
                    for name, variants in sorted(names.items())
                ),
            ]
        )
        for reason, names in sorted(tests.items())
    ]


def _where(variants: Sequence[str], all_variants: int) -> str:
    if len(variants) == all_variants:
        return ''
    return f' ({", ".join(variants)})'
