# SPDX-License-Identifier: Apache-2.0
"""Figures as CSV: a row for each run, for a spreadsheet. Pure."""

import csv
import io
from collections.abc import Mapping, Sequence

#: Where figures have their runs, in the order of preference.
_LISTS = ('runs', 'rows')


def entries_of(figures: Mapping) -> list[Mapping]:
    """What of an experiment's figures makes rows; may be nothing."""
    lists = (figures.get(name) for name in _LISTS)
    return next((each for each in lists if each), [])


def flat(entry: Mapping, prefix: str = '') -> dict[str, object]:
    """The numbers and words of an entry, by dotted names.

    Series, such as histograms, are left out.
    """
    row: dict[str, object] = {}
    for name, value in entry.items():
        if isinstance(value, Mapping):
            row |= flat(value, f'{prefix}{name}.')
        elif not isinstance(value, list | tuple):
            row[f'{prefix}{name}'] = value
    return row


def csv_text(entries: Sequence[Mapping]) -> str:
    """A head and a row for each entry; what one lacks is empty.

    :param entries: nested as JSON is; see :func:`flat`
    """
    rows = [flat(each) for each in entries]
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, columns, lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
