# SPDX-License-Identifier: Apache-2.0
"""How a load goes, while it does. Pure."""

from dataclasses import dataclass

from shardmw.bench.load.progress import Progress
from shardmw.bench.tables import Table, figure, number

_COLUMNS = (
    *('ops', 'ops/s', 'MB/s', 'p50 ms', 'p95 ms', 'p99 ms'),
    *('refused', 'errors', 'left'),
)
_MEGABYTE = 1_000_000
_NOTHING_LEFT = '—'


@dataclass(frozen=True)
class LiveLoad:
    """What is known of a load under way.

    :param label: what runs
    :param seconds: for how long it will; None if it ends otherwise
    :param count: how many operations it has; None likewise
    :param elapsed: seconds since it began
    :param total: of all the time
    :param recent: of the last moments, which took
    :param recent_seconds: so long
    """

    label: str
    seconds: float | None
    count: int | None
    elapsed: float = 0.0
    total: Progress = Progress()
    recent: Progress = Progress()
    recent_seconds: float = 0.0

    def advanced(self, part: Progress, elapsed: float) -> 'LiveLoad':
        """The load when another part of it is known."""
        return LiveLoad(
            self.label,
            self.seconds,
            self.count,
            elapsed,
            self.total + part,
            part,
            elapsed - self.elapsed,
        )

    @property
    def rate(self) -> float | None:
        """Operations a second, in the last moments."""
        if not self.recent_seconds:
            return None
        return self.recent.operations / self.recent_seconds

    @property
    def seconds_left(self) -> float | None:
        """Until its end, if that can be told."""
        by_time = by_count = None
        if self.seconds is not None:
            by_time = max(0.0, self.seconds - self.elapsed)
        if self.count is not None and self.total.operations:
            missing = max(0, self.count - self.total.operations)
            by_count = missing * self.elapsed / self.total.operations
        known = [each for each in (by_time, by_count) if each is not None]
        return min(known, default=None)


def live_cells(load: LiveLoad) -> tuple[str, ...]:
    """The cells of a load's row, below :data:`_COLUMNS`.

    Rates and latencies are those of the last moments.
    """
    recent = load.recent
    took = recent.histogram
    bandwidth = None
    if load.recent_seconds:
        carried = recent.bytes_sent + recent.bytes_received
        bandwidth = carried / load.recent_seconds / _MEGABYTE
    return (
        number(load.total.operations),
        figure(load.rate),
        figure(bandwidth),
        *(figure(took.percentile(share)) for share in (0.5, 0.95, 0.99)),
        number(load.total.refused),
        number(load.total.failed),
        time_text(load.seconds_left),
    )


def live_table(load: LiveLoad) -> Table:
    """A load as a table for the terminal."""
    return Table(load.label, _COLUMNS, [live_cells(load)], names=0)


def time_text(seconds: float | None) -> str:
    """A time as a clock shows it: 0:07, 12:30, 1:02:03."""
    if seconds is None:
        return _NOTHING_LEFT
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f'{hours}:{minutes:02d}:{rest:02d}'
    return f'{minutes}:{rest:02d}'
