# SPDX-License-Identifier: Apache-2.0
"""The content of the report: results, and where they come from. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from jinja2 import TemplateError

from shardmw.bench.errors import BenchError
from shardmw.bench.experiments import Section, describe, in_order
from shardmw.bench.plots.plot import Plot
from shardmw.bench.results.folder import Result
from shardmw.bench.results.provenance import Provenance
from shardmw.bench.tables import figure


class Origin(NamedTuple):
    """Tells where the figures of some sections come from.

    :param facts: ``(what, which)``
    """

    facts: tuple[tuple[str, str], ...]
    sections: Sequence[Section]


def sections(results: Iterable[Result]) -> list[Section]:
    """Return the sections of results, complete or not, in order.

    :raises BenchError: if a result lacks what this version looks for
    """
    return [*map(_section, in_order(results))]


def _section(result: Result) -> Section:
    try:
        return describe(result)
    except (
        *(ArithmeticError, AttributeError, LookupError),
        *(TypeError, ValueError, TemplateError),
    ) as err:
        raise BenchError(
            f'{result.words}.json is damaged, or of another version '
            f'({type(err).__name__}: {err}): measure it again, or remove it'
        ) from err


def origins(found: Iterable[Section]) -> list[Origin]:
    """Return where the figures come from, and for which sections."""
    groups: dict[Provenance, list[Section]] = {}
    for section in found:
        # the date is a range, and warnings tell the load
        alike = replace(
            section.result.provenance,
            load_average=0,
            busy_cores=None,
            date='',
        )
        groups.setdefault(alike, []).append(section)
    return [Origin(_facts(origin, own), own) for origin, own in groups.items()]


def alternative(plot: Plot) -> str:
    """Return a plot as text, for a screen reader."""
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
    is_own = origin.cluster is None
    facts = (
        ('measured', ' to '.join(dict.fromkeys((dates[0], dates[-1])))),
        ('cluster', origin.cluster),
        ('shardmw', origin.version),
        ('Swift', origin.swift),
        ('Python', origin.python),
        # not known of an existing cluster
        ('memcached', origin.memcached if is_own else None),
        ('machine' if is_own else "clients' machine", origin.machine),
    )
    return tuple((what, which) for what, which in facts if which)
