# SPDX-License-Identifier: Apache-2.0
"""Write the rows of a container as lines, CSV, JSON or Parquet.

An inventory goes to a file in parts. Beside the unfinished file is another one
that tells where to go on: so the same command continues one that was
interrupted.
"""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path as FilePath
from typing import BinaryIO

from shardmw.reshard.errors import AdminError

#: The columns of CSV and Parquet.
COLUMNS = ('name', 'size', 'etag', 'time', 'type')

#: How many rows to write between two notes of where to go on.
ROWS_A_PART = 50_000

#: A row, with the place that lists it.
Placed = tuple[str, dict]


def columns_of(row: dict) -> tuple:
    """Return the values of :data:`COLUMNS`.

    The ETag is empty if it is encrypted. That of a large object is the one of
    its manifest.

    :param row: of a container server's JSON listing
    """
    etag, _, parameters = row['hash'].partition(';')
    if 'swift_meta=' in parameters:
        etag = ''
    modified = row['last_modified']
    return row['name'], row['bytes'], etag, modified, row['content_type']


class _Echo:
    """Returns what a CSV writer writes."""

    def write(self, text: str) -> str:
        return text


# It quotes a value that has one of the characters that end a line.
_writerow = csv.writer(_Echo(), lineterminator='\r\n').writerow


def _to_csv(values: Iterable) -> bytes:
    return f'{_writerow(values)[:-2]}\n'.encode()


#: By format: the bytes before the rows, and a function that returns the bytes
#: of a row.
FORMATS: dict[str, tuple[bytes, Callable[[dict], bytes]]] = {
    'lines': (b'', lambda row: f'{row["name"]}\n'.encode()),
    'null': (b'', lambda row: f'{row["name"]}\0'.encode()),
    'csv': (
        _to_csv(COLUMNS),
        lambda row: _to_csv(columns_of(row)),
    ),
    'json': (b'', lambda row: f'{json.dumps(row)}\n'.encode()),
}


def write_all(rows: Iterator[Placed], form: str, file: BinaryIO) -> None:
    """Write all rows into a file that cannot be continued."""
    head, encode = FORMATS[form]
    file.write(head)
    for _, row in rows:
        file.write(encode(row))
    file.flush()


def write_parts(
    rows_after: Callable[[Mapping[str, str]], Iterator[Placed]],
    form: str,
    path: FilePath,
    about: Mapping[str, object],
    serial: str,
) -> None:
    """Write all rows into a file, and go on where an earlier run has ended.

    If the layout has changed since, the file begins anew: rows may have moved
    to places that the earlier run has left behind.

    :param rows_after: returns the rows after the last name of each place, in
                       the order of the names of each place
    :param about: what tells this inventory from another one; JSON
    :param serial: tells the present layout from others
    :raises AdminError: if the unfinished file is one of another inventory
    """
    head, encode = FORMATS[form]
    part = path.with_name(f'{path.name}.part')
    state = path.with_name(f'{path.name}.state')
    size, after = 0, {}
    if part.exists() and state.exists():
        size, after = _continued(state, about, serial)
    with part.open('r+b' if size else 'wb') as file:
        file.truncate(size)
        file.seek(size)
        if not size:
            file.write(head)
        for count, (place, row) in enumerate(rows_after(dict(after)), 1):
            file.write(encode(row))
            after[place] = row['name']
            if count % ROWS_A_PART == 0:
                _save(file)
                _note(state, about, serial, file.tell(), after)
        _save(file)
    state.unlink(missing_ok=True)
    part.replace(path)


def _continued(
    state: FilePath, about: Mapping[str, object], serial: str
) -> tuple[int, dict[str, str]]:
    """Return how many bytes are written, and the last name of each place.

    :raises AdminError: if another inventory is unfinished
    """
    try:
        noted = json.loads(state.read_text('utf-8'))
    except ValueError as err:
        raise AdminError(f'{state}: damaged: remove it to begin anew') from err
    if noted['about'] != about:
        raise AdminError(
            f'{state}: an export with other options is unfinished: remove the '
            'file to begin anew'
        )
    if noted['serial'] != serial:
        return 0, {}
    return noted['size'], noted['after']


def _note(
    state: FilePath,
    about: Mapping[str, object],
    serial: str,
    size: int,
    after: Mapping[str, str],
) -> None:
    noted = {'about': about, 'serial': serial, 'size': size, 'after': after}
    new = state.with_name(f'{state.name}.new')
    with new.open('wb') as file:
        file.write(json.dumps(noted).encode())
        _save(file)
    new.replace(state)


def _save(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def write_parquet(rows: Iterator[Placed], path: FilePath) -> None:
    """Write all rows into a Parquet file, with :data:`COLUMNS`.

    The sizes are 64-bit integers, the times microseconds in UTC.

    :raises AdminError: if pyarrow is not installed
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as err:
        raise AdminError(
            'Parquet needs the Python package pyarrow: pip install pyarrow'
        ) from err
    text = pyarrow.string()
    times = pyarrow.timestamp('us', tz='UTC')
    types = (text, pyarrow.int64(), text, times, text)
    schema = pyarrow.schema(list(zip(COLUMNS, types, strict=True)))
    part = path.with_name(f'{path.name}.part')
    with parquet.ParquetWriter(str(part), schema) as writer:
        for columns in _columns_of_parts(rows):
            writer.write_batch(pyarrow.record_batch(columns, schema=schema))
    part.replace(path)


def _columns_of_parts(rows: Iterator[Placed]) -> Iterator[list[list]]:
    """Yield the columns of some rows at a time."""
    columns: list[list] = [[] for _ in COLUMNS]
    for _, row in rows:
        for column, value in zip(columns, columns_of(row), strict=True):
            column.append(value)
        if len(columns[0]) == ROWS_A_PART:
            yield _with_times(columns)
            columns = [[] for _ in COLUMNS]
    if columns[0]:
        yield _with_times(columns)


def _with_times(columns: list[list]) -> list[list]:
    name, size, etag, modified, kind = columns
    times = [
        datetime.fromisoformat(each).replace(tzinfo=timezone.utc)
        for each in modified
    ]
    return [name, size, etag, times, kind]
