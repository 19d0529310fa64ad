# SPDX-License-Identifier: Apache-2.0
"""How a load goes on. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmw.bench.load.samples import (
    Samples,
    errors_of,
    is_admitted,
    is_refused,
)
from shardmw.bench.results.figures import Histogram, histogram


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


def progress_of(samples: Samples) -> Progress:
    """What some operations come to."""
    table = samples.table()
    status = table['status']
    admitted = table[is_admitted(status)]
    return Progress(
        len(table),
        len(admitted),
        int(is_refused(status).sum()),
        errors_of(status.tolist()),
        histogram(admitted['end'] - admitted['start']),
        int(admitted['sent_bytes'].sum()),
        int(admitted['body_bytes'].sum()),
    )
