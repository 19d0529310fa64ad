# SPDX-License-Identifier: Apache-2.0
"""The verdict on a variant, from the results of its runs. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from test.conformance.census import Census
from test.conformance.jobs import RunResult
from test.conformance.outcomes import (
    Comparison,
    Outcome,
    compare,
    parse_junit,
)
from test.conformance.shares import are_fair, in_words

_SHOWN_NAMES = 5


@dataclass(frozen=True)
class Verdict:
    """The verdict on a variant.

    :param comparison: the comparison of all of its tests
    :param problems: why the runs prove nothing, one line each
    :param census: the containers of the sharded runs
    :param seconds: the duration of the sharded runs
    :param requests: the number of requests that each proxy got in the sharded
                     runs, by its name
    """

    variant: str
    shards: int
    comparison: Comparison
    problems: tuple[str, ...]
    census: Census
    seconds: float
    requests: Mapping[str, int] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        """Return the number of regressions and problems."""
        return len(self.comparison.regressed) + len(self.problems)


def judge(
    variant: str,
    shards: int,
    plain: Mapping[str, RunResult],
    sharded: Mapping[str, RunResult],
) -> Verdict:
    """Return the verdict on a variant.

    :param plain: the results of all suites on the plain cluster, by name
    :param sharded: the results of all suites on the sharded cluster, by name
    """
    problems: list[str] = []
    outcomes = {
        'plain': _outcomes('plain', plain, problems),
        'sharded': _outcomes('sharded', sharded, problems),
    }
    comparison = compare(**outcomes)
    census = _sum([each.census for each in sharded.values()])
    plain_census = _sum([each.census for each in plain.values()])
    problems += _differing_tests(comparison)
    problems += _unproven(census, plain_census)
    return Verdict(
        variant=variant,
        shards=shards,
        comparison=comparison,
        problems=tuple(problems),
        census=census,
        seconds=sum(each.seconds for each in sharded.values()),
        requests=_all_requests(sharded.values()),
    )


def _outcomes(
    side: str, results: Mapping[str, RunResult], problems: list[str]
) -> dict[str, Outcome]:
    """Return the outcomes of all suites, and append to their problems."""
    merged: dict[str, Outcome] = {}
    for suite, result in results.items():
        if result.problem:
            problems.append(f'{side} {suite}: {result.problem}')
        if not are_fair(result.requests):
            problems.append(
                f'{side} {suite}: the proxies did not share the requests: '
                + in_words(result.requests)
            )
        try:
            outcomes = parse_junit(result.junit)
        except ValueError as err:
            problems.append(f'{side} {suite}: {err}')
            continue
        if not outcomes:
            problems.append(f'{side} {suite}: no test was run')
        if twice := merged.keys() & outcomes.keys():
            problems.append(
                f'{side} {suite}: {_some(twice)} ran in another suite, too'
            )
        merged |= outcomes
    return merged


def _differing_tests(comparison: Comparison) -> list[str]:
    problems = []
    if comparison.plain_only:
        problems.append(
            f'not in the sharded run: {_some(comparison.plain_only)}'
        )
    if comparison.sharded_only:
        problems.append(
            f'not in the plain run: {_some(comparison.sharded_only)}'
        )
    return problems


def _unproven(sharded: Census, plain: Census) -> list[str]:
    """Return why the sharded run was perhaps plain, or the plain one not."""
    problems = []
    if sharded.unsharded:
        problems.append(
            f'not sharded in the sharded run: {_some(sharded.unsharded)}'
        )
    if not sharded.logical:
        problems.append('no container was made in the sharded run')
    if plain.backing:
        problems.append(
            f'{plain.backing} backing containers are in the plain run'
        )
    return problems


def _sum(censuses: Sequence[Census]) -> Census:
    return Census(
        logical=sum(each.logical for each in censuses),
        sharded=sum(each.sharded for each in censuses),
        backing=sum(each.backing for each in censuses),
        unsharded=tuple(n for each in censuses for n in each.unsharded),
    )


def _all_requests(results: Iterable[RunResult]) -> dict[str, int]:
    requests: Counter[str] = Counter()
    for each in results:
        requests.update(each.requests)
    return dict(requests)


def _some(names: Collection[str]) -> str:
    """Return the first names as text, and how many more there are."""
    ordered = sorted(names)
    shown = ', '.join(ordered[:_SHOWN_NAMES])
    more = len(ordered) - _SHOWN_NAMES
    return f'{shown} and {more} more' if more > 0 else shown
