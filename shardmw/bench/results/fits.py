# SPDX-License-Identifier: Apache-2.0
"""Straight lines through what was measured. Pure."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import linear_regression, stdev
from typing import NamedTuple

import numpy as np

Point = tuple[float, float]

#: A line's interval is told by leaving out each of so many pieces in turn,
BLOCKS = 10
#: whose nine degrees of freedom have this quantile of Student's t at 95 %.
_STUDENT_T = 2.262

# Unknowns that only so little tells apart are not told apart.
_LEAST_SINGULAR_VALUE = 1e-5


class Slope(NamedTuple):
    """How steep a line is.

    :param low, high: where it lies with a confidence of 95 %; None if there
                      are too few points to tell
    """

    value: float
    low: float | None = None
    high: float | None = None


def least_squares(
    equations: Sequence[Sequence[float]], values: Sequence[float]
) -> list[float] | None:
    """Return the unknowns that fit linear equations best.

    :param equations: the factors of the unknowns, in each of the equations
    :param values: what each equation should give
    :returns: None if they don't tell the unknowns apart
    """
    factors = np.atleast_2d(np.array(equations, float))
    # columns of one length: units must not decide what is small
    lengths = np.linalg.norm(factors, axis=0)
    if not (factors.size and lengths.all()):
        return None
    found, _, rank, _ = np.linalg.lstsq(
        factors / lengths, values, rcond=_LEAST_SINGULAR_VALUE
    )
    return (found / lengths).tolist() if rank == len(lengths) else None


def slope(points: Sequence[Point]) -> float | None:
    """Return how steep the line through points is; None of one place."""
    if len({x for x, _ in points}) < 2:
        return None
    return linear_regression(*zip(*points, strict=True)).slope


def slope_interval(points: Sequence[Point]) -> Slope | None:
    """Return the same, and where it lies.

    By a jackknife of neighbours: points that follow each other are alike, so
    each of :data:`BLOCKS` pieces of the line is left out in turn.

    :param points: in the order of x
    """
    whole = slope(points)
    if whole is None or len(points) < 2 * BLOCKS:
        return None if whole is None else Slope(whole)
    cuts = [len(points) * i // BLOCKS for i in range(BLOCKS + 1)]
    without = [
        slope([*points[:begin], *points[end:]])
        for begin, end in pairwise(cuts)
    ]
    error = stdev(without) * (BLOCKS - 1) / math.sqrt(BLOCKS)
    reach = _STUDENT_T * error
    return Slope(whole, whole - reach, whole + reach)
