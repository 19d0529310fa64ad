# SPDX-License-Identifier: Apache-2.0
"""Tables and sentences that are written as templates in Markdown. Pure.

A template, such as ``markdown/rates.md.j2``, has the titles, the columns and
the notes of the tables of an experiment. Values in it are shown as in cells of
a table: a count in full, a time or a rate with three digits.
"""

from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from shardmw_bench.kinds import Kind
from shardmw_bench.results import comparing
from shardmw_bench.results.figures import Interval
from shardmw_bench.results.runs import Run
from shardmw_bench.results.summary import errors_text
from shardmw_bench.tables import (
    Table,
    bytes_text,
    figure,
    number,
    plain,
    ratio,
    tables_of,
)
from shardmw_bench.units import size_text

# The heads of columns of conditions whose names are not clear.
_HEADS = {
    'size': 'object size',
    'rows': 'rows in container',
    'page': 'page size',
    'limit': 'limit /s',
}


def line(template: str, **values: object) -> str:
    """Return the only line of a template."""
    return _TEMPLATES.get_template(f'{template}.md.j2').render(values)


def lines(template: str, **values: object) -> list[str]:
    """Return the lines of a template that are not empty."""
    text = _TEMPLATES.get_template(f'{template}.md.j2').render(values)
    return [line.strip() for line in text.splitlines() if line.strip()]


def tables(template: str, **values: object) -> list[Table]:
    text = _TEMPLATES.get_template(f'{template}.md.j2').render(values)
    return tables_of(text)


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


def _cell(value: object) -> object:
    if isinstance(value, Interval):
        text = figure(value.median)
        return f'{text} ({_range(value)})' if value.confidence else text
    if isinstance(value, Kind):
        return value.label
    if isinstance(value, float) or value is None:
        return figure(value)
    if isinstance(value, Mapping):
        return errors_text(value)
    return number(value) if isinstance(value, int) else value


def _range(interval: Interval) -> str:
    return f'{figure(interval.low)} to {figure(interval.high)}'


_TEMPLATES = Environment(
    loader=PackageLoader('shardmw_bench', 'markdown'),
    undefined=StrictUndefined,
    finalize=_cell,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    'bytes': bytes_text,
    'condition': lambda value, name: value_text(name, value),
    'figure': figure,
    'head': lambda condition: _HEADS.get(condition, condition),
    'each': lambda rows, value: [*map(value, rows)],
    'interval': comparing.interval_text,
    'number': number,
    'objects': objects_text,
    'over': ratio,
    'plain': plain,
    'range': _range,
    'ratio': comparing.ratio_text,
}
_TEMPLATES.globals['c'] = comparing
