# SPDX-License-Identifier: Apache-2.0
"""The layout record: what the root says about its shards.

Pure: text in, layout out. The record is one sysmeta header of the root
container, written last when a container becomes sharded.
"""

import functools
import json
from dataclasses import dataclass

from shardmw.placement import SHARD_COUNT_LIMIT

#: The record's format. A reader that meets another one refuses to place.
RECORD_VERSION = 1


class LayoutError(ValueError):
    """A record that can't be read: never guess where objects lie."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How many shards a container has.

    :param shards: the number of backing containers, at least 1
    :param previous: the number before, while objects are still moving
    """

    shards: int
    previous: int | None = None

    def counts(self) -> tuple[int, ...]:
        """The shard counts that objects may lie by, the newest first."""
        if self.previous is None:
            return (self.shards,)
        return self.shards, self.previous

    def to_record(self) -> str:
        """The record's text, for :func:`parse_record`."""
        fields = {'version': RECORD_VERSION, 'shards': self.shards}
        if self.previous is not None:
            fields['previous'] = self.previous
        return json.dumps(fields)


@functools.lru_cache(maxsize=1024)
def parse_record(text: str) -> Layout:
    """Read a layout record.

    :param text: the record, as :meth:`Layout.to_record` wrote it
    :raises LayoutError: if it is of another version, or damaged
    """
    try:
        fields = json.loads(text)
    except ValueError as err:
        raise LayoutError(f'not JSON: {text!r}') from err
    if not isinstance(fields, dict):
        raise LayoutError(f'not an object: {text!r}')
    if fields.get('version') != RECORD_VERSION:
        raise LayoutError(
            f'version {fields.get("version")!r}, can read {RECORD_VERSION}'
        )
    unknown = set(fields) - {'version', 'shards', 'previous'}
    if unknown:
        raise LayoutError(f'unknown fields {sorted(unknown)}')
    previous = None
    if 'previous' in fields:
        previous = _count(fields, 'previous')
    return Layout(_count(fields, 'shards'), previous)


def _count(fields: dict, name: str) -> int:
    count = fields.get(name)
    if type(count) is not int or not 1 <= count <= SHARD_COUNT_LIMIT:
        raise LayoutError(f'{name} is {count!r}')
    return count
