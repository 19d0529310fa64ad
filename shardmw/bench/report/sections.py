# SPDX-License-Identifier: Apache-2.0
"""What the report says of each result, and of where all came from. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shardmw.bench.errors import BenchError
from shardmw.bench.experiments import Description, describe, in_order
from shardmw.bench.plots.plot import Plot
from shardmw.bench.provenance import Provenance
from shardmw.bench.results import Result
from shardmw.bench.tables import figure, number

_INCOMPLETE = (
    'This was interrupted: it is what had been measured until then, and not '
    'all that was to be.'
)


# What figures that are not as their experiment shapes them lead to.
_DAMAGES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class Section:
    """A result, for people.

    :param description: whose plots have names that no other section's have
    """

    result: Result
    description: Description

    @property
    def anchor(self) -> str:
        """A word that no other section has: that of the result's files."""
        return self.result.words

    @property
    def title(self) -> str:
        """Its heading."""
        title = self.description.title.replace('-', ' ')
        return title[:1].upper() + title[1:]

    @property
    def warnings(self) -> list[str]:
        """What to know before one believes the figures."""
        origin = self.result.provenance
        busy = (
            'The machine had other work: it took '
            f'{number(origin.busy_cores, 1)} of {origin.cores} cores when '
            'this began.'
        )
        return [
            *([] if self.result.complete else [_INCOMPLETE]),
            *([busy] if origin.is_machine_busy else []),
        ]


@dataclass(frozen=True)
class Origin:
    """Where figures of some sections come from.

    :param facts: ``(what, which)``
    """

    facts: tuple[tuple[str, str], ...]
    sections: Sequence[Section]


def sections(results: Iterable[Result]) -> list[Section]:
    """What is to be said of results, complete or not, in the report's order.

    :raises BenchError: if this version can't make sense of one of them
    """
    taken: set[str] = set()
    found = []
    for result in in_order(results):
        description = _described(result)
        plots = [
            replace(plot, name=_unique(plot.name, taken))
            for plot in description.plots
        ]
        found.append(Section(result, replace(description, plots=plots)))
    return found


def _described(result: Result) -> Description:
    """What is to be said of a result.

    :raises BenchError: if it lacks what this version looks for
    """
    try:
        return describe(result)
    except _DAMAGES as err:
        raise BenchError(
            f'{result.words}.json is damaged, or of another version '
            f'({type(err).__name__}: {err}): measure it again, or remove it'
        ) from err


def origins(found: Iterable[Section]) -> list[Origin]:
    """Where the figures come from: once if that's the same for all."""
    groups: dict[Provenance, list[Section]] = {}
    for section in found:
        # the load is told where it was too high
        alike = replace(
            section.result.provenance,
            load_average=0,
            busy_cores=None,
            date='',
        )
        groups.setdefault(alike, []).append(section)
    return [Origin(_facts(origin, own), own) for origin, own in groups.items()]


def alternative(plot: Plot) -> str:
    """A plot in words, for those who can't see it."""
    ranges: dict[str, list[float]] = {}
    for series in plot.series:
        label = ' '.join(filter(None, (series.panel, series.label)))
        known = [each for each in series.y if each is not None]
        ranges.setdefault(label, []).extend(known)
    shown = ', '.join(
        f'{label}: {_range(values)}' for label, values in ranges.items()
    )
    return (
        f'{plot.title}. From left to right: {plot.x.label}; upwards: '
        f'{plot.y.label}. {shown}'
    )


def _range(values: Sequence[float]) -> str:
    low, high = figure(min(values)), figure(max(values))
    return low if low == high else f'{low} to {high}'


def _facts(
    origin: Provenance, own: Iterable[Section]
) -> tuple[tuple[str, str], ...]:
    dates = sorted({section.result.provenance.date for section in own})
    commit = f' ({origin.commit})' if origin.commit else ''
    cores = 'one core' if origin.cores == 1 else f'{origin.cores} cores'
    is_own = origin.cluster is None
    facts = (
        ('measured', ' to '.join(dict.fromkeys((dates[0], dates[-1])))),
        ('cluster', origin.cluster),
        ('shardmw', f'{origin.shardmw}{commit}'),
        ('Swift', origin.swift),
        ('Python', origin.python),
        # that of a cluster elsewhere is not known
        ('memcached', origin.memcached if is_own else None),
        (
            'machine' if is_own else "clients' machine",
            f'{cores} ({origin.processor}), {origin.memory_gib} GiB',
        ),
    )
    return tuple((what, which) for what, which in facts if which)


def _unique(word: str, taken: set[str]) -> str:
    """The word, or one like it; it's then taken."""
    number, found = 1, word
    while found in taken:
        number += 1
        found = f'{word}-{number}'
    taken.add(found)
    return found
