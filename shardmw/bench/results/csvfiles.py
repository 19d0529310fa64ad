# SPDX-License-Identifier: Apache-2.0
"""Figures as CSV, with a row for each run. Pure."""

import csv
import io
from collections.abc import Mapping, Sequence


def entries_of(figures: Mapping) -> Sequence[Mapping]:
    """Return what makes rows of an experiment's figures, if anything."""
    return figures.get('runs') or figures.get('rows') or []


def flat(entry: Mapping, prefix: str = '') -> dict[str, object]:
    """Return the numbers and words of an entry by dotted names.

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
    """Return a head, and a row for each entry."""
    rows = [flat(each) for each in entries]
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, columns, lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
