# SPDX-License-Identifier: Apache-2.0
"""The cells: what fails, how it fails, and what is under way. Pure."""

from typing import NamedTuple

#: A fault, after how many seconds it begins, and how many seconds it lasts.
Span = tuple['Cell', float, float]

#: The kind of storage server that fails, and how many of the three.
STORAGE = {
    'container': ('container', 1),
    'containers': ('container', 2),
    'databases': ('container', 3),
    'object': ('object', 1),
    'objects': ('object', 2),
    'account': ('account', 1),
}

#: How many of the three storage nodes lose power at one moment.
POWER = {'node': 1, 'nodes': 2, 'all': 3}

#: The changes of layout that go on meanwhile: the shard count at first, and
#: the counts that the container changes to, again and again.
CHANGES = {
    'reshard': (4, (7, 3)),
    'convert': (0, (5, 2)),
    'unshard': (4, (0, 6)),
}
SHARDS = 4

#: What is under way in addition to the work on objects, as in all cells.
WORKS = ('objects', 'names', *CHANGES, 'limits', 'expire')


class Cell(NamedTuple):
    """A cell of the matrix.

    :param what: what fails
    :param how: how it fails
    :param work: what is under way meanwhile
    """

    what: str
    how: str
    work: str

    def __str__(self) -> str:
        return '-'.join(self)

    @property
    def stales_rows(self) -> bool:
        """Return True if rows may be late until the daemons have run."""
        parts = (*STORAGE, *POWER, 'device', 'ring', NET)
        return self.what in parts and self.what != 'account'

    @property
    def stales_objects(self) -> bool:
        """Return True if replicas of objects may be stale."""
        if self.what == NET:
            return self.how != 'replication'
        parts = ('object', 'objects', *POWER, 'device', 'ring')
        return self.what in parts

    @property
    def forgets_rows(self) -> bool:
        """Return True if rows from before the fault may be listed late, too.

        A database that was restored from a copy lacks the rows that have moved
        into it since. A database that a PUT of its container has created anew
        has no rows at first.
        """
        is_old = self.how == 'old' and self.what in ('container', 'device')
        is_made_anew = self.lacks_databases and self.work == 'names'
        return is_made_anew or (is_old and self.work in CHANGES)

    @property
    def loses_rows(self) -> bool:
        """Return True if no replica may have the rows of the last writes.

        Rows are acknowledged before they are synced.
        """
        return self.what in POWER and POWER[self.what] == REPLICAS

    @property
    def lacks_databases(self) -> bool:
        """Return True if primaries lack databases for a while."""
        return self.how == 'new' or self.what == 'ring'

    @property
    def lacks_data(self) -> bool:
        """Return True if no replica with the data may answer for a while."""
        return False

    @property
    def faults(self) -> tuple['Cell', ...]:
        """Return what fails: one thing."""
        return (self,)

    def spans(self, seconds: float) -> tuple[Span, ...]:
        """Return when the fault begins, and for how long it lasts."""
        return ((self, 0, seconds),)

    @property
    def slack_seconds(self) -> float:
        """Return by how much the clocks of two proxies differ."""
        return CLOCK_SECONDS if self.how == 'clock' else 0

    @property
    def early_seconds(self) -> float:
        """Return how long before a fault writes may be late, or lost."""
        return UNSYNCED_SECONDS if self.what in POWER else EARLY_SECONDS


CLOCK_SECONDS = 2

#: Some writes were under way when the fault began. Disks write back what is
#: not synced 5 s later, which may take some time.
EARLY_SECONDS, UNSYNCED_SECONDS = 5, 8

REPLICAS = 3

#: What fails in cells that need a network of their own.
NET = 'net'

#: What fails, how, and what is under way; each combination is a cell.
_ROWS = (
    (
        'container',
        'killed stopped slow full old loop cut',
        'objects names reshard convert unshard',
    ),
    ('container', 'killed stopped', 'limits expire'),
    ('containers', 'killed stopped slow', 'objects names reshard'),
    ('databases', 'killed slow loop', 'objects reshard'),
    ('object', 'killed stopped slow full old loop cut', 'objects'),
    ('object', 'stopped old', 'reshard expire'),
    ('objects', 'killed stopped', 'objects'),
    ('account', 'killed stopped slow full old', 'names'),
    ('account', 'stopped', 'reshard'),
    ('proxy', 'killed stopped slow clock loop', 'objects reshard'),
    ('memcached', 'killed stopped', 'objects limits names'),
    ('memcacheds', 'killed stopped', 'objects limits reshard names'),
    ('device', 'gone old', 'objects reshard'),
    ('device', 'new', 'objects names reshard'),
    ('ring', 'moved grown', 'objects names reshard'),
    ('node', 'power', 'objects names reshard convert unshard'),
    ('nodes', 'power', 'objects names reshard convert unshard'),
    ('all', 'power', 'objects names reshard convert unshard'),
    ('mover', 'killed stopped cancelled', 'reshard convert unshard'),
    (
        NET,
        'halved oneway replication one halfopen reset',
        'objects names reshard',
    ),
)

CELLS = tuple(
    Cell(what, how, work)
    for what, hows, works in _ROWS
    for how in hows.split()
    for work in works.split()
)


def chosen(patterns: list[str]) -> list[Cell]:
    """Return the cells that match one of some patterns; all without patterns.

    :raises ValueError: if no cell matches a pattern
    """
    for pattern in patterns:
        if not any(_is_named(cell, pattern) for cell in CELLS):
            raise ValueError(f'no cell {pattern!r}: {CELLS[0]} is one')
    return [
        cell
        for cell in CELLS
        if not patterns or any(_is_named(cell, each) for each in patterns)
    ]


def _is_named(cell: Cell, pattern: str) -> bool:
    """Return True if each part of a pattern equals the cell's, or is '*'."""
    parts = pattern.split('-')
    pairs = zip(parts, cell, strict=False)
    return len(parts) <= len(cell) and all(a in ('*', b) for a, b in pairs)
