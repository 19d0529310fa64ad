# SPDX-License-Identifier: Apache-2.0
"""Linear fits. Pure."""

import math
from collections.abc import Sequence
from statistics import linear_regression, stdev
from typing import NamedTuple

import numpy as np

Point = tuple[float, float]

#: The jackknife leaves out each of so many blocks in turn,
BLOCKS = 10
#: with this 95 % quantile of Student's t for nine degrees of freedom.
_STUDENT_T = 2.262

# Unknowns that are closer to being dependent are not told apart.
_LEAST_SINGULAR_VALUE = 1e-5


class Slope(NamedTuple):
    """The slope of a line and its 95 % interval, if it is known."""

    value: float
    low: float | None = None
    high: float | None = None


def least_squares(
    equations: Sequence[Sequence[float]], values: Sequence[float]
) -> list[float] | None:
    """Return the unknowns of the best fit of linear equations.

    :param equations: the factors of the unknowns in each equation
    :param values: the right side of each equation
    :returns: None if the unknowns are not determined
    """
    factors = np.atleast_2d(np.array(equations, float))
    # normalized, so that units do not matter
    lengths = np.linalg.norm(factors, axis=0)
    if not (factors.size and lengths.all()):
        return None
    found, _, rank, _ = np.linalg.lstsq(
        factors / lengths, values, rcond=_LEAST_SINGULAR_VALUE
    )
    return (found / lengths).tolist() if rank == len(lengths) else None


def slope_interval(points: Sequence[Point]) -> Slope | None:
    """Return the slope of a line through points and its interval.

    Points that follow each other are correlated, so the jackknife leaves out
    blocks of them.

    :param points: in the order of x
    :returns: None for a single x
    """
    x, y = np.array(points, float).reshape(-1, 2).T
    if len(np.unique(x)) < 2:
        return None
    whole = linear_regression(x, y).slope
    if len(x) < 2 * BLOCKS:
        return Slope(whole)
    without = [
        linear_regression(np.delete(x, block), np.delete(y, block)).slope
        for block in np.array_split(np.arange(len(x)), BLOCKS)
    ]
    reach = _STUDENT_T * stdev(without) * (BLOCKS - 1) / math.sqrt(BLOCKS)
    return Slope(whole, whole - reach, whole + reach)
