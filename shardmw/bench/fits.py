# SPDX-License-Identifier: Apache-2.0
"""Straight lines through what was measured. Pure."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from shardmw.bench.figures import deviation, mean

Point = tuple[float, float]

#: A line's interval is told by leaving out each of so many pieces in turn,
BLOCKS = 10
#: whose nine degrees of freedom have this quantile of Student's t at 95 %.
_STUDENT_T = 2.262

# Unknowns that only so little tells apart are not told apart.
_LEAST_PIVOT = 1e-9


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
    """The unknowns that fit linear equations best.

    :param equations: the factors of the unknowns, in each of the equations
    :param values: what each equation should give
    :returns: None if they don't tell the unknowns apart
    """
    count = len(equations[0]) if equations else 0
    if not count or len(equations) < count:
        return None
    # columns of one length, lest the size of a unit decides what is small
    lengths = [
        math.sqrt(math.fsum(each[i] ** 2 for each in equations))
        for i in range(count)
    ]
    if not all(lengths):
        return None
    scaled = [
        [factor / length for factor, length in zip(each, lengths, strict=True)]
        for each in equations
    ]
    normal = [
        [
            *(_product(scaled, i, j) for j in range(count)),
            math.fsum(
                row[i] * value
                for row, value in zip(scaled, values, strict=True)
            ),
        ]
        for i in range(count)
    ]
    solved = _solved(normal)
    if solved is None:
        return None
    return [
        each / length for each, length in zip(solved, lengths, strict=True)
    ]


def slope(points: Sequence[Point]) -> float | None:
    """How steep the line is that fits points best; None of one place."""
    if not points:
        return None
    middle_x = mean([x for x, _ in points])
    middle_y = mean([y for _, y in points])
    width = math.fsum((x - middle_x) ** 2 for x, _ in points)
    if not width:
        return None
    height = math.fsum((x - middle_x) * (y - middle_y) for x, y in points)
    return height / width


def slope_interval(points: Sequence[Point]) -> Slope | None:
    """The same, and where it lies.

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
        for begin, end in zip(cuts, cuts[1:], strict=False)
    ]
    error = deviation(without) * (BLOCKS - 1) / math.sqrt(BLOCKS)
    reach = _STUDENT_T * error
    return Slope(whole, whole - reach, whole + reach)


def _product(rows: Sequence[Sequence[float]], i: int, j: int) -> float:
    return math.fsum(row[i] * row[j] for row in rows)


def _solved(rows: list[list[float]]) -> list[float] | None:
    """Solve equations, each of which ends with its value; Gauss-Jordan."""
    count = len(rows)
    for column in range(count):
        best = max(range(column, count), key=lambda i: abs(rows[i][column]))
        rows[column], rows[best] = rows[best], rows[column]
        pivot = rows[column][column]
        if abs(pivot) < _LEAST_PIVOT:
            return None
        rows[column] = [each / pivot for each in rows[column]]
        for other in range(count):
            if other != column:
                factor = rows[other][column]
                rows[other] = [
                    each - factor * own
                    for each, own in zip(
                        rows[other], rows[column], strict=True
                    )
                ]
    return [row[-1] for row in rows]
