# SPDX-License-Identifier: Apache-2.0
"""Where the figures of a report come from. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from shardmw.bench.experiments import Section
from shardmw.bench.results.provenance import Provenance


class Origin(NamedTuple):
    """Tells where the figures of some sections come from.

    :param facts: ``(what, which)``
    """

    facts: tuple[tuple[str, str], ...]
    sections: Sequence[Section]


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
