# SPDX-License-Identifier: Apache-2.0
"""Container databases that stay open from one read to the next.

Opening a database and reading its schema takes longer than reading a few of
its rows. When a client lists page by page, the same databases are read again
and again, so they stay open for a moment. Other processes must not notice:

- An open database is used only while its folder has the same database files:
  Swift's replicator may rename another file over it, and Swift's sharder puts
  another database beside it.
- It holds no lock between reads.
- It is soon closed: an open file keeps its device from being unmounted and,
  when it is removed, its space from being freed.
"""

import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from swift.container.backend import UNSHARDED, ContainerBroker

from shardmw.swift.concurrency import sleep, spawn

#: How long an unused database stays open at least; at most twice as long.
IDLE_SECONDS = 5

#: How many databases a process keeps open.
MOST_OPEN = 256

#: If that many are open, a new one replaces the least recently used one if
#: that has not been used for this time. Databases are read in turns, so one
#: that was used just now is soon read again.
TURN_SECONDS = 1

#: How much of a database an open connection may keep in memory, in KiB.
CACHE_KIB = 256


class _Open(NamedTuple):
    """A broker that has been used.

    :param files: what :func:`_files` returned before the database was opened
    :param connection: to the database; None before it was used
    :param used: when it was used last, by the monotonic clock
    """

    broker: ContainerBroker
    files: dict[str, tuple[int, int]]
    connection: sqlite3.Connection | None = None
    used: float = 0


class OpenBrokers:
    """Keeps brokers, with their databases open, for the next reads.

    :param make: returns a new broker for the same arguments as :meth:`broker`
    """

    def __init__(self, make: Callable[..., ContainerBroker]) -> None:
        self._make = make
        # By the arguments, in the order of their last use.
        self._open: OrderedDict[tuple, _Open] = OrderedDict()
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def broker(self, *where: str) -> Iterator[ContainerBroker]:
        """Yield a container's broker for the block.

        Another green thread that needs it meanwhile gets a broker of its own.

        :param where: the device, the partition, the account and the container
        """
        found = self._open.pop(where, None)
        if found and _files(found.broker) != found.files:
            close(found.broker)
            found = None
        if not found:
            broker = self._make(*where)
            found = _Open(broker, _files(broker))
        try:
            yield found.broker
            self._keep(where, found)
        except BaseException:
            close(found.broker)
            raise

    def _keep(self, where: tuple, found: _Open) -> None:
        broker = found.broker
        if not broker.conn or broker.conn is not found.connection:
            # The broker is new, or it has reopened its database.
            if not self._is_lasting(found):
                close(broker)
                return
            broker.conn.execute(f'PRAGMA cache_size = -{CACHE_KIB}')
        other = self._open.pop(where, None)
        if other:
            close(other.broker)
        self._open[where] = _Open(
            broker, found.files, broker.conn, time.monotonic()
        )
        while len(self._open) > MOST_OPEN:
            self._close_first()
        if not self._is_closing:
            self._is_closing = True
            spawn(self._close_idle)

    def _is_lasting(self, found: _Open) -> bool:
        """Return True if a newly opened database can stay open."""
        broker = found.broker
        return (
            self._has_room()
            and bool(broker.conn)
            and broker.get_db_state() == UNSHARDED
            # It may have been replaced while it was being opened.
            and _files(broker) == found.files
        )

    def _has_room(self) -> bool:
        """Return True if one more database can be open."""
        return len(self._open) < MOST_OPEN or self._first_is_unused(
            TURN_SECONDS
        )

    def _close_idle(self) -> None:
        """Close databases that are not used any more, until none is open."""
        try:
            while self._open:
                sleep(IDLE_SECONDS)
                while self._open and self._first_is_unused(IDLE_SECONDS):
                    self._close_first()
        finally:
            self._is_closing = False

    def _first_is_unused(self, seconds: float) -> bool:
        first = next(iter(self._open.values()))
        return first.used < time.monotonic() - seconds

    def _close_first(self) -> None:
        _where, first = self._open.popitem(last=False)
        close(first.broker)


def _files(broker: ContainerBroker) -> dict[str, tuple[int, int]]:
    """Return the device and inode numbers of a container's databases."""
    with suppress(FileNotFoundError), os.scandir(broker.db_dir) as entries:
        return {
            entry.name: (entry.stat().st_dev, entry.stat().st_ino)
            for entry in entries
            if entry.name.endswith('.db')
        }
    return {}


def close(broker: ContainerBroker) -> None:
    """Close a broker's database, if it is open."""
    # From Swift 2.38 on, brokers do this themselves.
    if broker.conn:
        broker.conn.close()
