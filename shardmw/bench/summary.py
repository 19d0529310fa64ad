# SPDX-License-Identifier: Apache-2.0
"""What tables say of a load. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from shardmw.bench.figures import Latency, latency, per_second
from shardmw.bench.load import Outcome
from shardmw.bench.samples import NO_STATUS_NAMES, Sample


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
        """All of it, and the rates."""
        return {
            **asdict(self),
            'latency': self.latency._asdict(),
            'offered_rate': self.offered_rate,
            'admitted_rate': self.admitted_rate,
            'refused_rate': self.refused_rate,
        }


def summarize(outcome: Outcome) -> Summary:
    """Figures of a load."""
    ended = outcome.ended_within()
    admitted = [each for each in ended if each.is_admitted]
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
    )


def errors(samples: Iterable[Sample]) -> dict[str, int]:
    """How often each error came: neither admitted nor refused."""
    failed = (s for s in samples if not (s.is_admitted or s.is_refused))
    counts = Counter(
        NO_STATUS_NAMES.get(each.status, str(each.status)) for each in failed
    )
    return dict(sorted(counts.items()))


def errors_text(counts: dict[str, int]) -> str:
    """Errors as a cell of a table has them."""
    return ', '.join(f'{n} × {what}' for what, n in counts.items()) or '0'
