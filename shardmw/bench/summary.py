# SPDX-License-Identifier: Apache-2.0
"""What tables and plots say of a load. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from shardmw.bench.figures import (
    Histogram,
    Latency,
    Spread,
    histogram,
    latency,
    means_each_second,
    per_second,
    spread,
)
from shardmw.bench.load import Outcome
from shardmw.bench.samples import Sample

#: The times of an operation, one after the other; and all of them.
REQUEST = 'request'  #: until the request was sent
RESPONSE = 'response'  #: from then on, until the response began
TRANSFER = 'transfer'  #: from then on, until the response was whole
TOTAL = 'total'
PHASES = (REQUEST, RESPONSE, TRANSFER, TOTAL)


@dataclass(frozen=True)
class Summary:
    """Figures of a load, over the time in which requests were sent.

    :param offered: requests that were sent
    :param admitted: those answered 2xx by the end of the time
    :param refused: those answered 498, or 429, by then
    :param errors: all others by status or what went wrong, of the whole load
    :param latency: of what was admitted
    :param admitted_each_second: a series
    :param client_busy_share: of the busiest client process
    :param phases: how long each of :data:`PHASES` took, of what was admitted
    :param histogram: of the latency of what was admitted
    :param latency_each_second: the mean in milliseconds, by the second in
                                which operations ended; None for none
    :param bytes_sent: in bodies of what was admitted
    :param bytes_received: in bodies of what was admitted
    :param by_operation: ``offered``, ``admitted``, ``refused``, ``done``,
                         ``errors``, ``latency`` and ``phases`` of each kind
                         of operation, as JSON has them; empty if there is
                         only one
    :param done: operations that were admitted, as parts of which each lay in
                 the steady time: see :class:`shardmw.bench.load.Outcome`
    :param steady_seconds: how long that was; None for all of the time
    """

    seconds: float
    offered: int
    admitted: int
    refused: int
    errors: dict[str, int]
    latency: Latency
    admitted_each_second: list[int]
    client_busy_share: float
    is_client_bound: bool
    phases: dict[str, Spread] = field(default_factory=dict)
    histogram: Histogram = Histogram()
    latency_each_second: list[float | None] = field(default_factory=list)
    bytes_sent: int = 0
    bytes_received: int = 0
    by_operation: dict[str, dict] = field(default_factory=dict)
    done: float = 0.0
    steady_seconds: float | None = None

    def of(self, operation: str) -> 'Summary':
        """What :attr:`by_operation` has of one kind of operation."""
        own = self.by_operation[operation]
        counts = ('offered', 'admitted', 'refused', 'done', 'errors')
        return Summary(
            seconds=self.seconds,
            steady_seconds=self.steady_seconds,
            **{name: own[name] for name in counts},
            latency=Latency(**own['latency']),
            admitted_each_second=[],
            client_busy_share=self.client_busy_share,
            is_client_bound=self.is_client_bound,
            phases=_phases(own['phases']),
        )

    @property
    def done_rate(self) -> float:
        """Operations a second, in the steady time."""
        return self.per_second(self.done)

    def per_second(self, done: float) -> float:
        """The rate of what was done in the steady time."""
        return done / (self.steady_seconds or self.seconds)

    @property
    def offered_rate(self) -> float:
        return self.offered / self.seconds

    @property
    def admitted_rate(self) -> float:
        return self.admitted / self.seconds

    @property
    def refused_rate(self) -> float:
        return self.refused / self.seconds

    def as_json(self) -> dict[str, object]:
        """All of it, and the rates; what :meth:`from_json` takes."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            'latency': self.latency._asdict(),
            'phases': _phases_json(self.phases),
            'histogram': self.histogram.as_json(),
            'offered_rate': self.offered_rate,
            'admitted_rate': self.admitted_rate,
            'refused_rate': self.refused_rate,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Summary':
        """The summary that :meth:`as_json` gave."""
        known = [each.name for each in fields(cls)]
        own = {name: values[name] for name in known if name in values}
        return cls(
            **{
                **own,
                'latency': Latency(**own['latency']),
                'phases': _phases(own['phases']),
                'histogram': Histogram.from_json(own['histogram']),
            }
        )


def summarize(outcome: Outcome) -> Summary:
    """Figures of a load."""
    ended = outcome.ended_within()
    admitted = [each for each in ended if each.is_admitted]
    took = [(each.end, 1000 * (each.end - each.start)) for each in admitted]
    return Summary(
        seconds=outcome.seconds,
        offered=len(outcome.samples),
        admitted=len(admitted),
        refused=sum(each.is_refused for each in ended),
        errors=errors(outcome.samples),
        latency=latency(each.end - each.start for each in admitted),
        admitted_each_second=per_second(
            (each.end for each in admitted), outcome.began, outcome.seconds
        ),
        client_busy_share=round(outcome.busy_share, 3),
        is_client_bound=outcome.is_client_bound,
        phases=phases(admitted),
        histogram=histogram(each.end - each.start for each in admitted),
        latency_each_second=means_each_second(
            took, outcome.began, outcome.seconds
        ),
        bytes_sent=sum(each.sent_bytes for each in admitted),
        bytes_received=sum(each.body_bytes for each in admitted),
        by_operation=_by_operation(outcome, ended),
        done=_done(outcome, outcome.samples),
        steady_seconds=outcome.steady_seconds,
    )


def _done(outcome: Outcome, samples: Iterable[Sample]) -> float:
    return math.fsum(
        outcome.share_within(each) for each in samples if each.is_admitted
    )


def phases(samples: Sequence[Sample]) -> dict[str, Spread]:
    """How long each of :data:`PHASES` took.

    An operation whose response began before its request was sent, or that
    got none, only has a total.
    """
    whole = [each for each in samples if each.sent <= each.first_byte]
    return {
        REQUEST: spread(each.sent - each.start for each in whole),
        RESPONSE: spread(each.first_byte - each.sent for each in whole),
        TRANSFER: spread(each.end - each.first_byte for each in whole),
        TOTAL: spread(each.end - each.start for each in samples),
    }


def errors(samples: Iterable[Sample]) -> dict[str, int]:
    """How often each error came: neither admitted nor refused."""
    counts = Counter(each.error for each in samples if each.error)
    return dict(sorted(counts.items()))


def errors_text(counts: Mapping[str, int]) -> str:
    """Errors as a cell of a table has them."""
    return ', '.join(f'{n} × {what}' for what, n in counts.items()) or '0'


def _by_operation(
    outcome: Outcome, ended: Sequence[Sample]
) -> dict[str, dict]:
    if len(outcome.kinds) < 2:
        return {}
    return {
        name: _operation(
            outcome,
            [each for each in ended if each.kind == kind],
            [each for each in outcome.samples if each.kind == kind],
        )
        for kind, name in enumerate(outcome.kinds)
        if any(each.kind == kind for each in outcome.samples)
    }


def _operation(
    outcome: Outcome, ended: Sequence[Sample], samples: Sequence[Sample]
) -> dict[str, object]:
    admitted = [each for each in ended if each.is_admitted]
    took = latency(each.end - each.start for each in admitted)
    return {
        'offered': len(samples),
        'admitted': len(admitted),
        'refused': sum(each.is_refused for each in ended),
        'done': _done(outcome, samples),
        'errors': errors(samples),
        'latency': took._asdict(),
        'phases': _phases_json(phases(admitted)),
    }


def _phases(values: Mapping[str, Mapping]) -> dict[str, Spread]:
    return {name: Spread(**each) for name, each in values.items()}


def _phases_json(spreads: Mapping[str, Spread]) -> dict[str, dict]:
    return {name: each._asdict() for name, each in spreads.items()}
