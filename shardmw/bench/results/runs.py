# SPDX-License-Identifier: Apache-2.0
"""One load on one container, with all that tells it from others. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shardmw.bench.kinds import Kind
from shardmw.bench.results.summary import Summary

_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Run:
    """What came of a load.

    :param work: what was done, such as ``write`` or ``list``
    :param turn: which of the rounds it belongs to, from 0 on; what is of one
                 round makes a pair
    :param conditions: what else tells runs apart, by name: ``clients``,
                       ``size`` (bytes), ``rows`` (in the container),
                       ``page`` (rows a page), ``limit`` (writes/s of a
                       backing container) and the like; numbers and words only
    :param rows_listed: rows of all pages, by the part of each that lay in the
                        steady time
    :param processor_seconds: user and system time of all server processes of
                              the cluster during the load; None if that is
                              not known
    """

    work: str
    kind: Kind
    turn: int
    conditions: Mapping[str, object]
    summary: Summary
    rows_listed: float = 0
    processor_seconds: float | None = None

    @property
    def rate(self) -> float:
        """What was done, a second: rows of listings, else operations."""
        return self.summary.per_second(self.rows_listed or self.summary.done)

    @property
    def operations_rate(self) -> float:
        """Operations a second, also of listings: their pages."""
        return self.summary.done_rate

    @property
    def bandwidth(self) -> float | None:
        """Megabytes of bodies a second, both ways; None if there are none."""
        summary = self.summary
        carried = summary.bytes_sent + summary.bytes_received
        if not carried:
            return None
        return carried / summary.admitted / _MEGABYTE * self.operations_rate

    @property
    def processor_ms(self) -> float | None:
        """Return the servers' processor milliseconds for each request sent.

        :returns: None if that is not known
        """
        if self.processor_seconds is None or not self.summary.offered:
            return None
        return 1000 * self.processor_seconds / self.summary.offered

    def by_operation(self) -> list['Run']:
        """Return a run of each kind of operation; none if there is only one.

        Processor time is known of all operations together only.
        """
        return [
            replace(
                self,
                work=operation,
                summary=self.summary.of(operation),
                processor_seconds=None,
            )
            for operation in self.summary.by_operation
        ]

    def as_json(self) -> dict[str, object]:
        """What :meth:`from_json` takes."""
        return {
            'work': self.work,
            'kind': self.kind.as_json(),
            'turn': self.turn,
            'conditions': dict(self.conditions),
            'rows_listed': self.rows_listed,
            'rate': self.rate,
            'operations_rate': self.operations_rate,
            'megabytes_rate': self.bandwidth,
            'processor_seconds': self.processor_seconds,
            'processor_ms': self.processor_ms,
            'summary': self.summary.as_json(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Run':
        """The run that :meth:`as_json` gave."""
        return cls(
            values['work'],
            Kind.from_json(values['kind']),
            values['turn'],
            values['conditions'],
            Summary.from_json(values['summary']),
            values['rows_listed'],
            # a result of an earlier version does not have it
            values.get('processor_seconds'),
        )


def runs_of(figures: Mapping) -> list[Run]:
    """The runs that figures have."""
    return [Run.from_json(each) for each in figures['runs']]
