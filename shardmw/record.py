# SPDX-License-Identifier: Apache-2.0
"""The layout record: how many shards a container has, and which. Pure.

The record is one sysmeta header of the root. Writing it is the commit of a
new sharded container. Its text is JSON::

    {"version": 2, "id": "65a1b2c3d4e5f", "shards": 32}
"""

import functools
import json
import re
from dataclasses import dataclass

#: The format that this release writes, and the only one that it can read.
RECORD_VERSION = 2

#: The most shards that a container can have. The names of backing containers
#: leave room for this many.
SHARD_COUNT_LIMIT = 1024

#: Ids are microseconds since 1970, in hexadecimal; 13 digits last until 2112.
ID_DIGITS = 13
MICROSECONDS = 1_000_000

_ID = re.compile(f'[0-9a-f]{{{ID_DIGITS}}}')
_FIELDS = {'version', 'id', 'shards'}


class LayoutError(ValueError):
    """A record that cannot be read. The filter never guesses a placement."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a sharded container.

    :param id: tells the backing containers of this container from those of
               another one that had the same name
    :param shards: the number of backing containers, at least 1
    """

    id: str
    shards: int

    def to_record(self) -> str:
        """Return the text that :func:`parse_record` reads."""
        fields = {
            'version': RECORD_VERSION,
            'id': self.id,
            'shards': self.shards,
        }
        return json.dumps(fields)


@functools.lru_cache(maxsize=1024)
def parse_record(text: str) -> Layout:
    """Return the layout that a record describes.

    :param text: the record, as :meth:`Layout.to_record` wrote it
    :raises LayoutError: if its version is another one or it is damaged
    """
    try:
        fields = json.loads(text)
    except ValueError as err:
        raise LayoutError(f'not JSON: {text!r}') from err
    if not isinstance(fields, dict):
        raise LayoutError(f'not an object: {text!r}')
    if fields.get('version') != RECORD_VERSION:
        raise LayoutError(
            f'version {fields.get("version")!r}, this release reads '
            f'{RECORD_VERSION}'
        )
    if set(fields) != _FIELDS:
        raise LayoutError(f'fields {sorted(fields)}, not {sorted(_FIELDS)}')
    layout_id, shards = fields['id'], fields['shards']
    if not (isinstance(layout_id, str) and _ID.fullmatch(layout_id)):
        raise LayoutError(f'id {layout_id!r}, not {ID_DIGITS} hex digits')
    if type(shards) is not int or not 1 <= shards <= SHARD_COUNT_LIMIT:
        raise LayoutError(
            f'shards {shards!r}, not a number from 1 to {SHARD_COUNT_LIMIT}'
        )
    return Layout(layout_id, shards)


def id_of_time(seconds: float) -> str:
    """Return the id of a layout that is drawn at a time.

    :param seconds: since 1970
    """
    return f'{int(seconds * MICROSECONDS):0{ID_DIGITS}x}'


def time_of_id(layout_id: str) -> float:
    """Return when an id was drawn, in seconds since 1970."""
    return int(layout_id, 16) / MICROSECONDS
