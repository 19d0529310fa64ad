# SPDX-License-Identifier: Apache-2.0
"""Runs: loads on containers, under conditions. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from shardmw_bench.kinds import Kind
from shardmw_bench.results.summary import Summary

_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Run:
    """A load on a container.

    :param work: such as ``write`` or ``list``
    :param turn: the number of the round; runs of one round are compared
    :param conditions: other differences between runs by name, such as
                       ``clients``, ``size`` (bytes), ``rows`` (in the
                       container), ``page`` (rows a page) and ``limit``
                       (writes/s of a backing container)
    :param rows_listed: the rows of all pages, in the steady time
    :param processor_seconds: user and system time of all server processes
                              during the load; None if that is not known
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
        """Return rows of listings a second, or else operations."""
        return self.summary.per_second(self.rows_listed or self.summary.done)

    @property
    def operations_rate(self) -> float:
        """Return operations a second; of listings, pages."""
        return self.summary.done_rate

    @property
    def bandwidth(self) -> float | None:
        """Return megabytes of bodies a second, both ways, if there are any."""
        summary = self.summary
        carried = summary.bytes_sent + summary.bytes_received
        if not carried:
            return None
        return carried / summary.admitted / _MEGABYTE * self.operations_rate

    @property
    def processor_ms(self) -> float | None:
        """Return the servers' processor time by request, if it is known."""
        if self.processor_seconds is None or not self.summary.offered:
            return None
        return 1000 * self.processor_seconds / self.summary.offered

    def by_operation(self) -> list['Run']:
        """Return a run of each operation of a mix, without processor time."""
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
        return {
            **vars(self),
            'kind': self.kind.as_json(),
            'rate': self.rate,
            'operations_rate': self.operations_rate,
            'megabytes_rate': self.bandwidth,
            'processor_ms': self.processor_ms,
            'summary': self.summary.as_json(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Run':
        # some are missing in results of earlier versions
        own = {each.name: values.get(each.name) for each in fields(cls)}
        own['kind'] = Kind.from_json(values['kind'])
        return cls(**own | {'summary': Summary.from_json(values['summary'])})


def runs_of(figures: Mapping) -> list[Run]:
    return [Run.from_json(each) for each in figures['runs']]
