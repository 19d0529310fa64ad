# SPDX-License-Identifier: Apache-2.0
"""The figures of a load. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from shardmw_bench.load.outcome import (
    Outcome,
    errors_of,
    is_admitted,
    is_refused,
)
from shardmw_bench.results import figures
from shardmw_bench.results.figures import Histogram, Latency, Spread

#: The phases of an operation, and all of it.
REQUEST = 'request'  #: until the request was sent
RESPONSE = 'response'  #: from then on, until the response began
TRANSFER = 'transfer'  #: from then on, until the response was complete
TOTAL = 'total'
PHASES = (REQUEST, RESPONSE, TRANSFER, TOTAL)


@dataclass(frozen=True)
class Summary:
    """The figures of a load, over the time in which requests were sent.

    :param offered: requests that were sent
    :param admitted: answered 2xx in time
    :param refused: answered 498 or 429 in time
    :param errors: the count of each other status or failure, also late ones
    :param latency: of operations admitted after ``Outcome.timed_from``
    :param client_busy_share: of the busiest client process
    :param phases: the durations of each of :data:`PHASES`, of the same
    :param histogram: the latency of the same
    :param latency_each_second: the mean in milliseconds by the second in
                                which operations ended; None for none
    :param bytes_sent: in bodies of admitted operations
    :param bytes_received: in bodies of admitted operations
    :param by_operation: ``offered``, ``admitted``, ``refused``, ``done``,
                         ``errors``, ``latency`` and ``phases`` of each
                         operation of a mix, as JSON
    :param done: admitted operations in the steady time, counted by part
    :param steady_seconds: the length of the steady time; None for all
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
    histogram: Histogram = field(default_factory=Histogram)
    latency_each_second: list[float | None] = field(default_factory=list)
    bytes_sent: int = 0
    bytes_received: int = 0
    by_operation: dict[str, dict] = field(default_factory=dict)
    done: float = 0.0
    steady_seconds: float | None = None

    def of(self, operation: str) -> 'Summary':
        return Summary(
            **_from_json(self.by_operation[operation]),
            seconds=self.seconds,
            steady_seconds=self.steady_seconds,
            admitted_each_second=[],
            client_busy_share=self.client_busy_share,
            is_client_bound=self.is_client_bound,
        )

    @property
    def done_rate(self) -> float:
        """Return operations a second in the steady time."""
        return self.per_second(self.done)

    def per_second(self, done: float) -> float:
        """Return the rate of what was done in the steady time."""
        return done / (self.steady_seconds or self.seconds)

    @property
    def offered_rate(self) -> float:
        return self.offered / self.seconds

    @property
    def admitted_rate(self) -> float:
        return self.admitted / self.seconds

    def as_json(self) -> dict[str, object]:
        return {
            **_as_json(vars(self)),
            'histogram': vars(self.histogram),
            'offered_rate': self.offered_rate,
            'admitted_rate': self.admitted_rate,
            'refused_rate': self.refused / self.seconds,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Summary':
        known = [each.name for each in fields(cls)]
        own = {name: values[name] for name in known if name in values}
        own['histogram'] = Histogram(**own['histogram'])
        return cls(**_from_json(own))


def summarize(outcome: Outcome) -> Summary:
    """Return the figures of a load."""
    everything = np.full(len(outcome.table), True)
    is_done = outcome.is_in_time & is_admitted(outcome.table['status'])
    admitted = outcome.table[is_done]
    took = admitted['end'] - admitted['start']
    time = outcome.began, outcome.seconds
    kinds = outcome.table['kind']
    return Summary(
        **_operation(outcome, everything),
        seconds=outcome.seconds,
        admitted_each_second=figures.per_second(admitted['end'], *time),
        client_busy_share=round(outcome.busy_share, 3),
        is_client_bound=outcome.is_client_bound,
        histogram=figures.histogram(
            took[admitted['end'] >= outcome.timed_from]
        ),
        latency_each_second=figures.means_each_second(
            admitted['end'], 1000 * took, *time
        ),
        bytes_sent=int(admitted['sent_bytes'].sum()),
        bytes_received=int(admitted['body_bytes'].sum()),
        by_operation={
            outcome.kinds[kind]: _as_json(_operation(outcome, kinds == kind))
            for kind in np.unique(kinds)
            if len(outcome.kinds) > 1
        },
        steady_seconds=outcome.steady_seconds,
    )


def errors_text(counts: Mapping[str, int]) -> str:
    """Return errors as a cell of a table."""
    return ', '.join(f'{n} × {what}' for what, n in counts.items()) or '0'


def _operation(outcome: Outcome, chosen: np.ndarray) -> dict[str, object]:
    """Return the figures of the chosen samples."""
    status = outcome.table['status']
    admitted = chosen & is_admitted(status)
    refused = chosen & is_refused(status)
    in_time = outcome.is_in_time
    is_timed = outcome.table['end'] >= outcome.timed_from
    timed = outcome.table[admitted & in_time & is_timed]
    took = timed['end'] - timed['start']
    # a response that came before the request was sent has no phases
    whole = timed[timed['sent'] <= timed['first_byte']]
    return {
        'offered': int(chosen.sum()),
        'admitted': int((admitted & in_time).sum()),
        'refused': int((refused & in_time).sum()),
        'done': float(outcome.steady_shares[admitted].sum()),
        'errors': errors_of(status[chosen].tolist()),
        'latency': figures.latency(took),
        'phases': {
            REQUEST: figures.spread(whole['sent'] - whole['start']),
            RESPONSE: figures.spread(whole['first_byte'] - whole['sent']),
            TRANSFER: figures.spread(whole['end'] - whole['first_byte']),
            TOTAL: figures.spread(took),
        },
    }


def _as_json(values: Mapping[str, object]) -> dict[str, object]:
    phases = values['phases'].items()
    return {
        **values,
        'latency': values['latency']._asdict(),
        'phases': {name: each._asdict() for name, each in phases},
    }


def _from_json(values: Mapping[str, object]) -> dict[str, object]:
    phases = values['phases'].items()
    return {
        **values,
        'latency': Latency(**values['latency']),
        'phases': {name: Spread(**each) for name, each in phases},
    }
