# SPDX-License-Identifier: Apache-2.0
"""Fuzz the reader of ``.pending`` files, with Swift's merge as the oracle."""

import base64
import logging
import pickle
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from swift.common.utils import Timestamp, encode_timestamps
from swift.container.backend import ContainerBroker

from shardmw.container_server.filter import MOST_PENDING_BYTES
from shardmw.swift.container_rows import listed_rows
from shardmw.swift.pending_file import PendingRowsError, ReadingBroker
from test.fuzz.drawing import Draw

#: The figures that a proxy gets.
FIGURES = ['object_count', 'bytes_used', 'put_timestamp']

#: If the reader raises one of these, Swift reads the container itself.
LEFT_TO_SWIFT = (
    PendingRowsError,
    ValueError,
    TypeError,
    OverflowError,
    sqlite3.Error,
)

POLICY, OTHER = 0, 1
NAMES = ['a', 'b', 'a/b', 'a/c', 'é', 'b\0', '\U0001f600', 'z' * 300]
ETAGS = ['noetag', 'etag', 'é', '']
TYPES = [
    *('text/plain', 'application/deleted', 'a;swift_bytes=5', '', ';;='),
    *('a; b="c;d"', 'a;swift_bytes=x;b=c', 'é', 'a;swift_bytes=5; b'),
]
SIZES = [0, 1, 7, 2**40, -1, 2**63]
WRONG = [
    None,
    True,
    1.5,
    '1',
    b'a',
    '\ud800',
    'x' * 99,
    float('nan'),
    (),
    -(2**70),
]


def _times() -> list[str]:
    """Return timestamps as rows have them, of one and of several times."""
    times = [Timestamp(n) for n in (1, 2, 3, 2.00001)]
    offset = Timestamp(2, offset=3)
    several = [
        encode_timestamps(*each)
        for each in [
            (times[0], times[1], times[2]),
            (times[1], times[1], times[2]),
            (offset, offset, times[2]),
        ]
    ]
    wrong = ['0', '', '1', 'x', '9' * 40, '0000000002.00000+x', '-1']
    return [each.internal for each in (*times, offset)] + several + wrong


TIMES = _times()


class _State(NamedTuple):
    """Holds what a client sees of a container."""

    figures: dict
    is_deleted: bool
    rows: list[tuple]


class _Container:
    """A container database in a folder of its own.

    :param folder: the folder
    """

    def __init__(self, folder: str) -> None:
        self.path = Path(folder, 'c.db')
        self.pending = Path(folder, 'c.db.pending')

    def swifts(self) -> ContainerBroker:
        """Return Swift's broker."""
        logger = logging.getLogger('fuzz-pending')
        logger.propagate = False
        return ContainerBroker(
            str(self.path), account='a', container='c', logger=logger
        )

    def reading(self) -> ReadingBroker:
        """Return a broker that only reads."""
        return ReadingBroker(str(self.path), account='a', container='c')

    def merged(self, query: tuple) -> _State:
        """Return what a client sees after Swift's merge."""
        limit, delimiter, prefix, marker, end_marker = query
        broker = self.swifts()
        with _closing(broker):
            info, is_deleted = broker.get_info_is_deleted()
            rows = broker.list_objects_iter(
                limit,
                marker,
                end_marker,
                prefix,
                delimiter,
                storage_policy_index=info['storage_policy_index'],
                allow_reserved=True,
            )
            return _State(info, is_deleted, [tuple(row[:5]) for row in rows])


@contextmanager
def _closing(broker: ContainerBroker) -> Iterator[None]:
    try:
        yield
    finally:
        if broker.conn:
            broker.conn.close()


@cache
def _database() -> bytes:
    """Return a database with some rows."""
    with tempfile.TemporaryDirectory() as folder:
        container = _Container(folder)
        broker = container.swifts()
        with _closing(broker):
            broker.initialize(Timestamp(1).internal, POLICY)
            for name in NAMES[:4]:
                broker.put_object(name, TIMES[1], 3, 'x/y', 'etag')
            broker.delete_object(NAMES[0], TIMES[2])
            broker.put_object(
                NAMES[1], TIMES[1], 5, 'x', '', storage_policy_index=OTHER
            )
            broker.get_info()
        return container.path.read_bytes()


def pending(data: bytes) -> None:
    """Check that pending rows are listed as after Swift's merge.

    Rows that the reader leaves to Swift are not checked.
    """
    draw = Draw(data)
    query = (
        draw.choice([10_000, 1, 2, 0]),
        draw.choice(['', '/', 'b']),
        *(draw.choice(['', '', '', *NAMES[:6]]) for _ in range(3)),
    )
    text = _text(draw)
    with tempfile.TemporaryDirectory() as folder:
        container = _Container(folder)
        container.path.write_bytes(_database())
        broker = container.reading()
        with _closing(broker):
            # Rows that have been read are kept for the next snapshot.
            for size in (draw.number(1 + min(len(text), 999)), len(text)):
                container.pending.write_bytes(text[:size])
                found = _snapshot(broker, query)
        if found is None:
            return
        try:
            merged = container.merged(query)
        except Exception:
            return
    for name in FIGURES:
        assert found.figures[name] == merged.figures[name], name
    assert found[1:] == merged[1:]


def _snapshot(broker: ReadingBroker, query: tuple) -> _State | None:
    """Return what a listing shows; None if Swift has to merge the rows."""
    try:
        with broker.snapshot(MOST_PENDING_BYTES) as snapshot:
            rows = listed_rows(
                snapshot.connection,
                snapshot.info['storage_policy_index'],
                *query,
                snapshot.pending,
            )
            return _State(snapshot.info, snapshot.is_deleted, rows)
    except LEFT_TO_SWIFT:
        return None


def _text(draw: Draw) -> bytes:
    """Return the content of a file, sometimes a damaged one."""
    if draw.number(8) == 7:
        return draw.rest()
    entries = [_entry(draw) for _ in range(draw.number(9))]
    text = bytearray(b''.join(b':' + entry for entry in entries))
    for _ in range(draw.choice([0, 0, 0, 1, 2])):
        if text:
            text[draw.number(min(len(text), 65_536))] = draw.number(256)
    return bytes(text)


def _entry(draw: Draw) -> bytes:
    row = [
        draw.choice(NAMES),
        draw.choice(TIMES),
        draw.choice(SIZES),
        draw.choice(TYPES),
        draw.choice(ETAGS),
        draw.choice([0, 1, 2]),
        draw.choice([POLICY, OTHER]),
        draw.choice([None, *TIMES]),
        draw.choice([None, *TIMES]),
    ]
    if draw.number(16) == 15:
        row[draw.number(len(row))] = draw.choice(WRONG)
    row = tuple(row[: draw.choice([9, 9, 8, 7, 6, 5])])
    return base64.b64encode(pickle.dumps(row, protocol=2))
