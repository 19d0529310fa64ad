# SPDX-License-Identifier: Apache-2.0
"""How many writes each backing container took, in any window. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.sources import Uploads
from shardmw.bench.results.figures import most_in_window
from shardmw.placement import shard_of

WINDOWS_SECONDS = (1, 10)


def admission_times(
    outcome: Outcome, uploads: Uploads, stored: Mapping[str, float]
) -> dict[str, float]:
    """When each write was let through, on the wall clock, by object name.

    :param stored: as the container's listing has it; what it lacks yet is
                   taken to have been admitted when the answer came
    """
    answered = {
        uploads.name(each.number): outcome.wall_time(each.end)
        for each in outcome.samples
        if each.is_admitted
    }
    return {**answered, **stored}


def rate_since_first(times: Mapping[str, float], end: float) -> float:
    """Admitted writes a second, from the first one to an end.

    How long a burdened machine takes until the first write is none of a
    limit's doing.

    :param times: by object name
    :param end: when writes were no longer offered, on the wall clock
    :returns: 0 if there were none
    """
    first = min(times.values(), default=end)
    if end <= first:
        return 0.0
    return sum(first < when <= end for when in times.values()) / (end - first)


def most_by_window(
    times: Mapping[str, float],
    shards: int,
    windows: Iterable[float] = WINDOWS_SECONDS,
) -> dict[str, int]:
    """``{seconds: writes}``: the most of any backing container.

    :param times: by object name
    """
    by_shard = defaultdict(list)
    for name, when in times.items():
        by_shard[shard_of(name, shards)].append(when)
    return {
        f'{seconds:g}': max(
            (most_in_window(own, seconds) for own in by_shard.values()),
            default=0,
        )
        for seconds in windows
    }
