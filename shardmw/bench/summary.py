# SPDX-License-Identifier: Apache-2.0
"""What tables and plots say of a load. Pure."""

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
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
from shardmw.bench.samples import Sample, error_of

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
    :param latency: of what was admitted once all clients had an answer: see
                    ``timed_from`` of :class:`shardmw.bench.load.Outcome`
    :param admitted_each_second: a series
    :param client_busy_share: of the busiest client process
    :param phases: how long each of :data:`PHASES` took, of the same
    :param histogram: of the latency, of the same
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
    by_kind = _tallies(outcome)
    total = _total(by_kind.values())
    return Summary(
        seconds=outcome.seconds,
        offered=total.offered,
        admitted=total.admitted,
        refused=total.refused,
        errors=total.errors,
        latency=latency(total.took),
        admitted_each_second=per_second(
            total.ends, outcome.began, outcome.seconds
        ),
        client_busy_share=round(outcome.busy_share, 3),
        is_client_bound=outcome.is_client_bound,
        phases=total.spreads(),
        histogram=histogram(total.took),
        latency_each_second=means_each_second(
            zip(total.ends, map(_in_ms, total.all_took), strict=True),
            outcome.began,
            outcome.seconds,
        ),
        bytes_sent=total.bytes_sent,
        bytes_received=total.bytes_received,
        by_operation={
            outcome.kinds[kind]: _operation(tally)
            for kind, tally in sorted(by_kind.items())
            if len(outcome.kinds) > 1
        },
        done=total.done,
        steady_seconds=outcome.steady_seconds,
    )


def errors(samples: Iterable[Sample]) -> dict[str, int]:
    """How often each error came: neither admitted nor refused."""
    return _errors_of(Counter(each.status for each in samples))


def errors_text(counts: Mapping[str, int]) -> str:
    """Errors as a cell of a table has them."""
    return ', '.join(f'{n} × {what}' for what, n in counts.items()) or '0'


class _Tally:
    """What a summary takes of operations, which may be millions.

    ``ends`` and ``all_took`` are of what was admitted in time, in seconds,
    ``took`` and the phases of what of it tells how long operations take;
    ``shares`` are of all that was admitted: how much of each lay in the
    steady time.
    """

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.refused = self.bytes_sent = self.bytes_received = 0
        self.ends, self.all_took, self.took, self.shares = _arrays(4)
        #: of what has all phases
        self.request, self.response, self.transfer = _arrays(3)

    @property
    def offered(self) -> int:
        return self.statuses.total()

    @property
    def admitted(self) -> int:
        return len(self.ends)

    @property
    def errors(self) -> dict[str, int]:
        return _errors_of(self.statuses)

    @property
    def done(self) -> float:
        return math.fsum(self.shares)

    def add(self, sample: Sample, outcome: Outcome) -> None:
        """Add an operation of a load."""
        self.statuses[sample.status] += 1
        if sample.is_admitted:
            self.shares.append(outcome.share_within(sample))
            if outcome.is_in_time(sample):
                self._add_admitted(sample)
                if sample.end >= outcome.timed_from:
                    self._add_times(sample)
        elif sample.is_refused:
            self.refused += outcome.is_in_time(sample)

    def extend(self, other: '_Tally') -> None:
        """Add all of another."""
        self.statuses += other.statuses
        self.refused += other.refused
        self.bytes_sent += other.bytes_sent
        self.bytes_received += other.bytes_received
        self.ends += other.ends
        self.all_took += other.all_took
        self.took += other.took
        self.shares += other.shares
        self.request += other.request
        self.response += other.response
        self.transfer += other.transfer

    def spreads(self) -> dict[str, Spread]:
        """How long each of :data:`PHASES` took.

        An operation whose response began before its request was sent, or
        that got none, only has a total.
        """
        return {
            REQUEST: spread(self.request),
            RESPONSE: spread(self.response),
            TRANSFER: spread(self.transfer),
            TOTAL: spread(self.took),
        }

    def _add_admitted(self, sample: Sample) -> None:
        self.ends.append(sample.end)
        self.all_took.append(sample.end - sample.start)
        self.bytes_sent += sample.sent_bytes
        self.bytes_received += sample.body_bytes

    def _add_times(self, sample: Sample) -> None:
        _, _, start, sent, first_byte, end, *_ = sample
        self.took.append(end - start)
        if sent <= first_byte:
            self.request.append(sent - start)
            self.response.append(first_byte - sent)
            self.transfer.append(end - first_byte)


def _tallies(outcome: Outcome) -> dict[int, _Tally]:
    """The operations of each kind that there are of."""
    found: dict[int, _Tally] = {}
    for each in outcome.samples:
        tally = found.get(each.kind)
        if tally is None:
            tally = found[each.kind] = _Tally()
        tally.add(each, outcome)
    return found


def _total(tallies: Collection[_Tally]) -> _Tally:
    if len(tallies) == 1:
        return next(iter(tallies))
    total = _Tally()
    for each in tallies:
        total.extend(each)
    return total


def _operation(tally: _Tally) -> dict[str, object]:
    return {
        'offered': tally.offered,
        'admitted': tally.admitted,
        'refused': tally.refused,
        'done': tally.done,
        'errors': tally.errors,
        'latency': latency(tally.took)._asdict(),
        'phases': _phases_json(tally.spreads()),
    }


def _errors_of(statuses: Mapping[int, int]) -> dict[str, int]:
    counts = {error_of(status): n for status, n in statuses.items()}
    counts.pop(None, None)
    return dict(sorted(counts.items()))


def _arrays(count: int) -> Iterator[array]:
    return (array('d') for _ in range(count))


def _in_ms(seconds: float) -> float:
    return 1000 * seconds


def _phases(values: Mapping[str, Mapping]) -> dict[str, Spread]:
    return {name: Spread(**each) for name, each in values.items()}


def _phases_json(spreads: Mapping[str, Spread]) -> dict[str, dict]:
    return {name: each._asdict() for name, each in spreads.items()}
