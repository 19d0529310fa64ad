# SPDX-License-Identifier: Apache-2.0
"""Runs that share a plot, and the words for their conditions. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from shardmw.bench.kinds import Kind
from shardmw.bench.results.runs import Run
from shardmw.bench.tables import number
from shardmw.bench.units import size_text
from shardmw.bench.words import varying

#: Conditions of some runs, by name.
Conditions = tuple[tuple[str, object], ...]

# What is done, in a title and by a rate.
_NOUNS = {
    'write': 'writes',
    'read': 'reads',
    'head': 'HEADs',
    'delete': 'deletes',
    'list': 'listings',
    'head-container': 'container HEADs',
    'mixed': 'operations',
}

# Of a work with more conditions than that, not all have a plot.
_MOST = 4


@dataclass(frozen=True)
class Cut:
    """Runs that share a plot.

    :param is_only_work: True if there are no runs of other work
    :param conditions: those that differ from other plots
    """

    work: str
    is_only_work: bool
    conditions: Conditions
    runs: Sequence[Run]

    @property
    def noun(self) -> str:
        """Return what the runs do, as in writes/s."""
        return _NOUNS.get(self.work, self.work)

    def name(self, prefix: str, what: str) -> str:
        """Return the name of a plot."""
        work = '' if self.is_only_work else self.work
        text = f'{prefix} {work} {what} {said(self.conditions)}'.lower()
        return '-'.join(re.findall('[a-z0-9]+', text.replace(',', '')))

    def title(self, what: str) -> str:
        """Return the title of a plot."""
        noun = self.noun[:1].upper() + self.noun[1:]
        also = said(self.conditions)
        return f'{noun}: {what} ({also})' if also else f'{noun}: {what}'


def cuts(runs: Sequence[Run], but: Iterable[str] = ()) -> list[Cut]:
    """Return groups of runs of the same work and conditions.

    :param but: conditions that may differ within a group
    """
    works = dict.fromkeys(run.work for run in runs)
    found = []
    for work in works:
        own = [run for run in runs if run.work == work]
        names = [name for name in varying(own) if name not in but]
        found += [
            Cut(work, len(works) == 1, conditions, group)
            for conditions, group in by_conditions(own, names).items()
        ]
    return found


def some(found: Sequence[Cut]) -> list[Cut]:
    """Return at most four of each work, spread evenly."""
    return [
        each
        for _, own in groupby(found, key=lambda cut: cut.work)
        for each in _evenly(list(own))
    ]


def _evenly(found: list[Cut]) -> list[Cut]:
    if len(found) <= _MOST:
        return found
    step = (len(found) - 1) / (_MOST - 1)
    return [found[round(place * step)] for place in range(_MOST)]


def kinds_of(runs: Iterable[Run]) -> list[Kind]:
    """Return the kinds of some runs, plain ones first."""
    return sorted({run.kind for run in runs}, key=lambda kind: kind.order)


def by_kind(runs: Sequence[Run]) -> dict[Kind, list[Run]]:
    """Return the runs of each kind, plain ones first."""
    return {
        kind: [run for run in runs if run.kind == kind]
        for kind in kinds_of(runs)
    }


def by_conditions(
    runs: Iterable[Run], names: Sequence[str]
) -> dict[Conditions, list[Run]]:
    """Return the runs by the values of some conditions, in their order."""
    found: dict[Conditions, list[Run]] = {}
    for run in runs:
        key = tuple((name, run.conditions.get(name)) for name in names)
        found.setdefault(key, []).append(run)
    in_order = sorted(found, key=lambda key: [_rank(each) for _, each in key])
    return {key: found[key] for key in in_order}


def rounds_of(runs: Iterable[Run]) -> int:
    """Return how many rounds some runs belong to."""
    return len({run.turn for run in runs})


def is_number(value: object) -> bool:
    """Return True if a condition can be a place on an axis."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def said(conditions: Conditions) -> str:
    """Return conditions as text: ``16 clients, 4K objects``."""
    return ', '.join(_said(name, value) for name, value in conditions)


def _said(name: str, value: object) -> str:
    if value is None:
        return f'no {name}'
    if not is_number(value):
        return str(value)
    if name == 'size':
        return f'{size_text(value)} objects'
    if name == 'page':
        return f'{number(value)} rows a page'
    if name == 'limit':
        return f'limit {value:g}/s'
    if name == 'clients' and value == 1:
        return '1 client'
    if name in ('clients', 'rows'):
        return f'{number(value)} {name}'
    return f'{name} {value:g}'


def _rank(value: object) -> tuple[int, float, str]:
    """Return a sort key: None first, then numbers, then words."""
    if value is None:
        return 0, 0, ''
    if is_number(value):
        return 1, value, ''
    return 2, 0, str(value)
