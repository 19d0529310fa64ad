# SPDX-License-Identifier: Apache-2.0
"""The layout record: how many shards a container has, and which. Pure.

The record is one sysmeta header of the root. Writing it is the commit of a
new sharded container, and of every step of a change of its layout. Its text is
JSON::

    {"version": 2, "id": "65a1b2c3d4e5f", "shards": 32}

During a change it also has the number and the id of the shards before, the
phase, and the time at which it was written. A shard count of 0 stands for the
root itself, so a container is converted from 0 shards, and changes back to a
plain one by going to 0. Each change draws an id, so it has new backing
containers: no row has ever been removed from them, and a row can move to them
with its own timestamp.

A container that is sharded by directory has version 3 and a depth, and during
a change the depth before, ``former_depth``. Fields that are 0 are left out. A
release that does not know of depths refuses version 3.

:mod:`shardmw.core.phases` says what each phase means for requests.
"""

import functools
import json
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardmw.core.phases import (
    ANNOUNCED,
    DONE,
    MOVING,
    PHASES,
    RETURNING,
    Phase,
    Side,
)

#: The formats that this release writes and reads: of records without a depth,
#: and with one.
RECORD_VERSION = 2
DEPTH_VERSION = 3

#: The most shards that a container can have. The names of backing containers
#: leave room for this many.
SHARD_COUNT_LIMIT = 1024

#: The greatest depth that a container can have.
DEPTH_LIMIT = 16

#: Ids are microseconds since 1970, in hexadecimal; 13 digits last until 2112.
ID_DIGITS = 13
MICROSECONDS = 1_000_000

#: The least time between two records of a container, two ticks of Swift's
#: timestamps.
TICKS_SECONDS = 0.00002

#: How many parsed records to keep.
CACHED_RECORDS = 256

_ID = re.compile(f'[0-9a-f]{{{ID_DIGITS}}}')
_FIELDS = {'version', 'id', 'shards'}
_CHANGED_FIELDS = {*_FIELDS, 'changed'}
_CHANGING_FIELDS = {*_CHANGED_FIELDS, 'former', 'former_id', 'phase'}
_DEPTH_FIELDS = {'depth': 'shards', 'former_depth': 'former'}


class LayoutError(ValueError):
    """A record that cannot be read. The filter never guesses a placement."""


class Sharding(NamedTuple):
    """The number of backing containers, and how rows are spread over them.

    :param shards: the number of backing containers, 0 for the root itself
    :param depth: how many components of a name select its shard, 0 for the
                  whole name
    """

    shards: int
    depth: int = 0

    def __str__(self) -> str:
        if not self.shards:
            return 'plain'
        depth = f', depth {self.depth}' if self.depth else ''
        return f'{self.shards} shards{depth}'


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a container.

    :param id: distinguishes the backing containers of this container from
               those of another one that had the same name
    :param shards: the number of backing containers; 0 if the rows lie in the
                   root, or will after a change
    :param former: the number before the change that is under way; None if
                   there is none
    :param former_id: the id of the shards before that change
    :param phase: the phase of that change
    :param changed: when the record was written, in the form of an id; None if
                    the layout has been the same since the id was drawn
    :param depth: how many components of a name select its shard
    :param former_depth: the same before that change
    """

    id: str
    shards: int
    former: int | None = None
    former_id: str | None = None
    phase: str | None = None
    changed: str | None = None
    depth: int = 0
    former_depth: int = 0

    @property
    def serial(self) -> str:
        """Return an id that grows with each record of a container."""
        return self.changed or self.id

    @property
    def offset(self) -> int:
        """Return the offset on the timestamps of rows that move.

        It grows with each record of a container, whatever the clocks of the
        processes that move the rows show. So a row can return to a place that
        it was removed from in an earlier layout.
        """
        return int(self.serial, 16)

    @property
    def is_changing(self) -> bool:
        """Return True while a change is under way."""
        return self.former is not None

    @property
    def is_plain(self) -> bool:
        """Return True if all rows are to be in the root."""
        return self.shards == 0 and not self.is_changing

    @property
    def sharding(self) -> Sharding:
        """Return how rows are spread, or will be after a change."""
        return Sharding(self.shards, self.depth)

    @property
    def former_sharding(self) -> Sharding:
        """Return how rows were spread before the change that is under way."""
        return Sharding(self.former or 0, self.former_depth)

    @property
    def rules(self) -> Phase:
        """Return what the phase means."""
        return PHASES[self.phase]

    def sharding_of(self, side: Side) -> Sharding:
        """Return how rows are spread on one side of a change."""
        return self.former_sharding if side is Side.OLD else self.sharding

    def first_shard(self, side: Side) -> int:
        """Return the index of a side's first backing container."""
        return self.shards if side is Side.OLD else 0

    @property
    def written_sharding(self) -> Sharding:
        """Return how rows of new uploads are spread."""
        return self.sharding_of(self.rules.rows_to)

    @property
    def written(self) -> int:
        """Return the number of shards that new rows are spread over."""
        return self.written_sharding.shards

    @property
    def synced(self) -> int | None:
        """Return the number of shards whose rows container sync reads.

        :returns: 0 for the root; None while no place is synced
        """
        rules = self.rules
        if rules.syncs is None:
            return None
        shards = self.sharding_of(rules.syncs).shards
        return shards if shards or rules.syncs_root else None

    @property
    def backing_count(self) -> int:
        """Return how many backing containers may have rows."""
        return self.shards + (self.former or 0)

    def backing(self, shard: int) -> tuple[str, int]:
        """Return the id and the number in the name of a backing container.

        :param shard: an index; those from before a change follow the new ones
        """
        if shard < self.shards:
            return self.id, shard
        return self.former_id, shard - self.shards

    def has(self, layout_id: str, number: int) -> bool:
        """Return True if a backing container may have rows.

        :param number: the number in its name
        """
        return (layout_id == self.id and number < self.shards) or (
            layout_id == self.former_id and number < self.former
        )

    def announced(self, shards: int, now: float, depth: int = 0) -> 'Layout':
        """Return the first record of a change.

        :param shards: the number of shards to change to
        :param now: in seconds since 1970
        :param depth: the depth to change to
        :raises ValueError: if a change is under way, or is not needed
        """
        sharding = Sharding(shards, depth)
        if self.is_changing or sharding == self.sharding:
            raise ValueError(f'{self} cannot change to {sharding}')
        if not 0 <= shards <= SHARD_COUNT_LIMIT:
            raise ValueError(f'{shards} is no number of shards')
        if not 0 <= depth <= (DEPTH_LIMIT if shards else 0):
            raise ValueError(f'{depth} is no depth of {shards} shards')
        changed = self._later(now)
        former_id = self.id if self.shards else changed
        return Layout(
            changed,
            shards,
            self.shards,
            former_id,
            ANNOUNCED,
            changed,
            depth,
            self.depth,
        )

    def moving(self, now: float) -> 'Layout':
        """Return the record that follows the announcement of a change."""
        if self.rules.next != MOVING:
            raise ValueError(f'{self} announces no change')
        return replace(self, phase=MOVING, changed=self._later(now))

    def done(self, now: float) -> 'Layout':
        """Return the record that ends a change."""
        if not self.is_changing or self.rules.next is not DONE:
            raise ValueError(f'{self} is not moving rows')
        return Layout(
            self.id, self.shards, changed=self._later(now), depth=self.depth
        )

    def cancelled(self, now: float) -> 'Layout':
        """Return the record that cancels a change and moves the rows back.

        It needs no announcement: proxies that know this record, and proxies
        that know the one before it, write tombstones to both places and list
        both, so they may run side by side.
        """
        if not self.is_changing or self.rules.is_cancelled:
            raise ValueError(f'{self} cannot be cancelled')
        return Layout(
            self.former_id,
            self.former,
            self.shards,
            self.id,
            RETURNING,
            self._later(now),
            self.former_depth,
            self.depth,
        )

    def _later(self, now: float) -> str:
        """Return a serial of about `now` that is later than this one's."""
        return id_of_time(max(now, time_of_id(self.serial) + TICKS_SECONDS))

    def to_record(self) -> str:
        """Return the text that :func:`parse_record` reads."""
        has_depth = self.depth or self.former_depth
        fields = {
            'version': DEPTH_VERSION if has_depth else RECORD_VERSION,
            'id': self.id,
            'shards': self.shards,
            'former': self.former,
            'former_id': self.former_id,
            'phase': self.phase,
            'changed': self.changed,
            'depth': self.depth or None,
            'former_depth': self.former_depth or None,
        }
        return json.dumps({k: v for k, v in fields.items() if v is not None})


#: The layout of a container that has never been sharded.
PLAIN = Layout('0' * ID_DIGITS, 0)


@functools.lru_cache(maxsize=CACHED_RECORDS)
def parse_record(text: str) -> Layout:
    """Return the layout that a record describes.

    :param text: the record, as :meth:`Layout.to_record` wrote it
    :raises LayoutError: if its version is unknown or it is damaged
    """
    try:
        fields = json.loads(text)
    except (RecursionError, ValueError) as err:
        raise LayoutError(f'not JSON: {text!r}') from err
    if not isinstance(fields, dict):
        raise LayoutError(f'not an object: {text!r}')
    version = fields.get('version')
    if version not in (RECORD_VERSION, DEPTH_VERSION):
        raise LayoutError(
            f'version {version!r}, this release reads {RECORD_VERSION} and '
            f'{DEPTH_VERSION}'
        )
    depths = _depths(fields) if version == DEPTH_VERSION else {}
    names = fields.keys() - depths.keys()
    if names not in (_FIELDS, _CHANGED_FIELDS, _CHANGING_FIELDS):
        raise LayoutError(f'fields {sorted(fields)}, not {sorted(_FIELDS)}')
    layout_id = fields['id']
    for name in ('id', 'changed', 'former_id'):
        each = fields.get(name, layout_id)
        if not (isinstance(each, str) and _ID.fullmatch(each)):
            raise LayoutError(f'id {each!r}, not {ID_DIGITS} hex digits')
    _check_counts(fields)
    return Layout(
        layout_id,
        fields['shards'],
        fields.get('former'),
        fields.get('former_id'),
        fields.get('phase'),
        fields.get('changed'),
        **depths,
    )


def _depths(fields: dict) -> dict[str, int]:
    """Return the depths of a record that has some.

    :raises LayoutError: if it has none, an invalid one, or one without shards
    """
    depths = {name: fields[name] for name in _DEPTH_FIELDS if name in fields}
    if not depths:
        raise LayoutError(f'version {DEPTH_VERSION} without a depth')
    for name, depth in depths.items():
        if type(depth) is not int or not 1 <= depth <= DEPTH_LIMIT:
            raise LayoutError(
                f'{name} {depth!r}, not a number from 1 to {DEPTH_LIMIT}'
            )
        if not fields.get(_DEPTH_FIELDS[name]):
            raise LayoutError(f'{name} {depth} without shards')
    return depths


def _check_counts(fields: dict) -> None:
    """Check the shard counts and the phase of a record.

    :raises LayoutError: if they describe no layout
    """
    least = 0 if 'changed' in fields else 1
    counts = [fields[name] for name in ('shards', 'former') if name in fields]
    for count in counts:
        if type(count) is not int or not least <= count <= SHARD_COUNT_LIMIT:
            raise LayoutError(
                f'shards {count!r}, not a number from {least} to '
                f'{SHARD_COUNT_LIMIT}'
            )
    if 'former' in fields:
        depths = [fields.get(name, 0) for name in _DEPTH_FIELDS]
        if counts[0] == counts[1] and depths[0] == depths[1]:
            raise LayoutError(
                f'a change from {counts[0]} to {counts[0]} shards'
            )
        if fields['phase'] not in [*filter(None, PHASES)]:
            raise LayoutError(f'phase {fields["phase"]!r}')
        # Rows would move into the containers that they are deleted from.
        if all(counts) and fields['id'] == fields['former_id']:
            raise LayoutError(f'id {fields["id"]!r} on both sides of a change')


def id_of_time(seconds: float) -> str:
    """Return the id of a layout that is created at a time.

    :param seconds: since 1970
    """
    return f'{int(seconds * MICROSECONDS):0{ID_DIGITS}x}'


def time_of_id(layout_id: str) -> float:
    """Return when an id was drawn, in seconds since 1970."""
    return int(layout_id, 16) / MICROSECONDS
