# SPDX-License-Identifier: Apache-2.0
"""Tables and sentences that are written as templates in Markdown. Pure.

A template, such as ``markdown/rates.md.j2``, has the titles, the columns and
the notes of the tables of an experiment. Values in it are shown as cells of
a table are: a count in full, a time or a rate with three digits.
"""

from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined

from shardmw.bench.kinds import Kind
from shardmw.bench.results import comparing
from shardmw.bench.results.figures import Interval
from shardmw.bench.results.summary import errors_text
from shardmw.bench.tables import (
    Table,
    bytes_text,
    figure,
    number,
    plain,
    ratio,
    tables_of,
)
from shardmw.bench.words import head, objects_text, value_text


def line(template: str, **values: object) -> str:
    """Return the only line of a template."""
    return _TEMPLATES.get_template(f'{template}.md.j2').render(values)


def lines(template: str, **values: object) -> list[str]:
    """Return the lines of a template that are not empty."""
    text = _TEMPLATES.get_template(f'{template}.md.j2').render(values)
    return [line.strip() for line in text.splitlines() if line.strip()]


def tables(template: str, **values: object) -> list[Table]:
    """Return the tables of a template."""
    text = _TEMPLATES.get_template(f'{template}.md.j2').render(values)
    return tables_of(text)


def _cell(value: object) -> object:
    """Return a value as text."""
    if isinstance(value, Interval):
        return median_text(value)
    if isinstance(value, Kind):
        return value.label
    if isinstance(value, float) or value is None:
        return figure(value)
    if isinstance(value, Mapping):
        return errors_text(value)
    return number(value) if isinstance(value, int) else value


def median_text(interval: Interval | None) -> str:
    """Return a median for a cell, followed by its interval if it has one."""
    if interval is None or not interval.confidence:
        return figure(interval and interval.median)
    return f'{figure(interval.median)} ({range_text(interval)})'


def range_text(interval: Interval) -> str:
    """Return the ends of an interval."""
    return f'{figure(interval.low)} to {figure(interval.high)}'


_TEMPLATES = Environment(
    loader=PackageLoader('shardmw.bench', 'markdown'),
    undefined=StrictUndefined,
    finalize=_cell,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    'bytes': bytes_text,
    'condition': lambda value, name: value_text(name, value),
    'figure': figure,
    'head': head,
    'each': lambda rows, value: [*map(value, rows)],
    'interval': comparing.interval_text,
    'number': number,
    'objects': objects_text,
    'over': ratio,
    'plain': plain,
    'range': range_text,
    'ratio': comparing.ratio_text,
}
_TEMPLATES.globals['c'] = comparing
