# SPDX-License-Identifier: Apache-2.0
"""What the report says of each result, and of where all came from. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shardmw.bench.errors import BenchError
from shardmw.bench.experiments import Description, describe, in_order
from shardmw.bench.plots.plot import Plot
from shardmw.bench.results.folder import Result
from shardmw.bench.results.provenance import Provenance
from shardmw.bench.tables import figure, number

_INCOMPLETE = (
    'This was interrupted: it is what had been measured until then, and not '
    'all that was to be.'
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
        """Return the id of the section: the name of the result's files."""
        return self.result.words

    @property
    def title(self) -> str:
        """Return the heading."""
        title = self.description.title.replace('-', ' ')
        return title[:1].upper() + title[1:]

    @property
    def warnings(self) -> list[str]:
        """Return what to know before one believes the figures."""
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
    """Return what is said of results, complete or not, in order.

    :raises BenchError: if this version can't make sense of one of them
    """
    return [Section(each, _described(each)) for each in in_order(results)]


def _described(result: Result) -> Description:
    """Return the description, with names of plots that no other result has.

    :raises BenchError: if the result lacks what this version looks for
    """
    try:
        found = describe(result)
    except (
        *(ArithmeticError, AttributeError, LookupError),
        *(TypeError, ValueError),
    ) as err:
        raise BenchError(
            f'{result.words}.json is damaged, or of another version '
            f'({type(err).__name__}: {err}): measure it again, or remove it'
        ) from err
    plots = [
        replace(each, name=f'{result.words}--{each.name}')
        for each in found.plots
    ]
    return replace(found, plots=plots)


def origins(found: Iterable[Section]) -> list[Origin]:
    """Return where the figures come from, once if all have the same."""
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
    """Return a plot in words, for those who can't see it."""
    ranges: dict[str, list[float]] = {}
    for series in plot.series:
        label = f'{series.panel} {series.label}'.strip()
        known = [each for each in series.y if each is not None]
        ranges.setdefault(label, []).extend(known)
    shown = ', '.join(
        f'{label}: {figure(min(values))} to {figure(max(values))}'
        for label, values in ranges.items()
        if values
    )
    return (
        f'{plot.title}. From left to right: {plot.x.label}; upwards: '
        f'{plot.y.label}. {shown}'
    )


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
