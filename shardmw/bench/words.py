# SPDX-License-Identifier: Apache-2.0
"""Conditions of runs and durations as text. Pure."""

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta

from shardmw.bench.results.runs import Run
from shardmw.bench.tables import number, plain
from shardmw.bench.units import size_text

# The heads of columns of conditions whose names are not clear.
_HEADS = {
    'size': 'object size',
    'rows': 'rows in container',
    'page': 'page size',
    'limit': 'limit /s',
}


def head(condition: str) -> str:
    """Return the column head of a condition."""
    return _HEADS.get(condition, condition)


def value_text(condition: str, value: object) -> str:
    """Return the value of a condition as a cell."""
    if value is None:
        return 'none'
    if condition == 'size' and isinstance(value, int):
        return size_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return number(value) if isinstance(value, int) else plain(value)


def objects_text(size: int) -> str:
    """Return ``1-byte objects`` or ``4K objects``."""
    text = size_text(size)
    return f'{text}-byte objects' if text.isdecimal() else f'{text} objects'


def conditions_text(conditions: Mapping[str, object]) -> str:
    """Return conditions in one line, such as ``clients 16, size 4K``."""
    return ', '.join(
        f'{name} {value_text(name, value)}'
        for name, value in conditions.items()
    )


def varying(runs: Sequence[Run]) -> list[str]:
    """Return the conditions that differ between some of the runs."""
    names = dict.fromkeys(name for run in runs for name in run.conditions)
    return [
        name
        for name in names
        if len({run.conditions.get(name) for run in runs}) > 1
    ]


def duration_text(seconds: float) -> str:
    """Return hours, minutes and seconds as ``0:07:30``."""
    return str(timedelta(seconds=round(seconds)))


def about_text(seconds: float) -> str:
    """Return a rounded duration such as ``about 5 minutes``."""
    if seconds < 90:
        return f'about {max(5, 5 * round(seconds / 5))} s'
    minutes = math.ceil(seconds / 60)
    if minutes < 90:
        return f'about {minutes} minutes'
    return f'about {plain(round(minutes / 60, 1))} hours'
