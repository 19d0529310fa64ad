# SPDX-License-Identifier: Apache-2.0
"""The order of measurements in rounds. Pure."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar('T')


def rotated(some: Sequence[T], turn: int) -> list[T]:
    """Return all items; each round begins with another one.

    The last one in a round finds fuller disks.
    """
    first = turn % len(some) if some else 0
    return [*some[first:], *some[:first]]


def phase_of(turn: int, rounds: int) -> float:
    """Return the place of a round among all, between 0 and 1."""
    return (turn + 0.5) / rounds
