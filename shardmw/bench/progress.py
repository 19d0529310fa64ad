# SPDX-License-Identifier: Apache-2.0
"""How a load goes on. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shardmw.bench.figures import Histogram, histogram
from shardmw.bench.samples import Sample


@dataclass(frozen=True)
class Progress:
    """What was done of a load, of some processes and in some of its time.

    All parts of a load add up.

    :param operations: answered, or given up
    :param admitted: those answered 2xx
    :param refused: those answered 498, or 429
    :param errors: all others by status, or what went wrong
    :param histogram: of the latency of what was admitted
    :param bytes_sent: in bodies of what was admitted
    :param bytes_received: in bodies of what was admitted
    """

    operations: int = 0
    admitted: int = 0
    refused: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    histogram: Histogram = Histogram()
    bytes_sent: int = 0
    bytes_received: int = 0

    @property
    def failed(self) -> int:
        """How many errors there were."""
        return sum(self.errors.values())

    def __add__(self, other: 'Progress') -> 'Progress':
        return Progress(
            self.operations + other.operations,
            self.admitted + other.admitted,
            self.refused + other.refused,
            dict(Counter(self.errors) + Counter(other.errors)),
            self.histogram + other.histogram,
            self.bytes_sent + other.bytes_sent,
            self.bytes_received + other.bytes_received,
        )


def progress_of(samples: Iterable[Sample]) -> Progress:
    """What some operations come to."""
    ended = list(samples)
    admitted = [each for each in ended if each.is_admitted]
    return Progress(
        len(ended),
        len(admitted),
        sum(each.is_refused for each in ended),
        dict(Counter(each.error for each in ended if each.error)),
        histogram(each.end - each.start for each in admitted),
        sum(each.sent_bytes for each in admitted),
        sum(each.body_bytes for each in admitted),
    )
