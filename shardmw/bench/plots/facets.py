# SPDX-License-Identifier: Apache-2.0
"""Runs that share a plot, and the words for their conditions. Pure."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

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

_TEXTS = {
    'size': lambda value: f'{size_text(value)} objects',
    'page': lambda value: f'{number(value)} rows per page',
    'limit': lambda value: f'limit {value:g}/s',
    'clients': lambda value: f'{number(value)} client{"s" * (value != 1)}',
    'rows': lambda value: f'{number(value)} rows',
}

# Of a work with more conditions than that, not all have a plot.
_MOST = 4


class Facet(NamedTuple):
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

    @property
    def kinds(self) -> dict[Kind, list[Run]]:
        """Return the runs of each kind, plain ones first."""
        found = sorted({run.kind for run in self.runs}, key=lambda k: k.order)
        return {k: [run for run in self.runs if run.kind == k] for k in found}

    @property
    def rounds(self) -> int:
        """Return how many rounds the runs belong to."""
        return len({run.turn for run in self.runs})

    def name(self, what: str) -> str:
        """Return the name of a plot."""
        work = '' if self.is_only_work else self.work
        text = f'{work} {what} {said(self.conditions)}'.lower()
        return '-'.join(re.findall('[a-z0-9]+', text.replace(',', '')))

    def title(self, what: str) -> str:
        """Return the title of a plot."""
        noun = self.noun[:1].upper() + self.noun[1:]
        also = said(self.conditions)
        return f'{noun}: {what} ({also})' if also else f'{noun}: {what}'


def facets(runs: Sequence[Run], but: Iterable[str] = ()) -> list[Facet]:
    """Return groups of runs of the same work and conditions.

    :param but: conditions that may differ within a group
    """
    works = dict.fromkeys(run.work for run in runs)
    found = []
    for work in works:
        own = [run for run in runs if run.work == work]
        names = [name for name in varying(own) if name not in but]
        found += [
            Facet(work, len(works) == 1, conditions, group)
            for conditions, group in by_conditions(own, names).items()
        ]
    return found


def some(found: Sequence[Facet]) -> list[Facet]:
    """Return at most four of each work, spread evenly."""
    chosen = []
    for _, each in groupby(found, key=lambda facet: facet.work):
        own = list(each)
        step = max(1, (len(own) - 1) / (_MOST - 1))
        count = min(len(own), _MOST)
        chosen += [own[round(place * step)] for place in range(count)]
    return chosen


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
    return _TEXTS.get(name, lambda value: f'{name} {value:g}')(value)


def _rank(value: object) -> tuple[bool, bool, object]:
    """Return a sort key: None first, then numbers, then words."""
    is_word = not is_number(value)
    return value is not None, is_word, str(value) if is_word else value
