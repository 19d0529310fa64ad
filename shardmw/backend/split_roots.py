# SPDX-License-Identifier: Apache-2.0
"""Roots that Swift's own sharder has split.

The rows of such a root are in *shard containers*, one for each shard range of
names. The sharder changes the ranges while clients use them: it splits a range
further, or shrinks it into a neighbour or into the root. Meanwhile, a row may
be in a database that no listing reads, and a tombstone in another database
than its row. So rows move out of shard containers, or into them, only while
all replicas of the root have the same ranges, all active, and are removed only
if these have stayed the same since the rows were copied:

- :func:`split_root` proves that, or raises an error: the mover waits. It is
  asked before each pass, and again before rows are removed, by an answer that
  is at most STAY_SECONDS old. A range that changes meanwhile ends the pass.
- A range becomes inactive in the root before the sharder takes rows out of its
  container. Only a range that an operator splits in its own database becomes
  so later: :func:`require_whole` asks the container itself, after the rows of
  a step were copied into it. So it does with a root that has its rows itself.
- A *former* container is one of a range that was split or shrunk. One of its
  replicas may be split while another one still has rows and tombstones to
  hand over: :func:`require_split` asks all of them. Afterwards it has rows and
  tombstones that came late, until the sharder has moved them. So it may bring
  the tombstone of a move to the container of the present range, when the row
  has returned: rows that move into a split root always get an offset.
- A tombstone of an object that was deleted before the change may have gone to
  a former container, and be there when its row moves. So the object of a row
  is asked for if the row is not in the container of its range, or if a range
  has changed within CALM_SECONDS.

If all ranges have been shrunk into the root, it has its rows itself, and
former containers.
"""

import time
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from swift.common.utils import ShardRange

from shardmw.backend.containers import BackendError
from shardmw.backend.nodes import ask_primaries, replica_of
from shardmw.backend.requests import Backend
from shardmw.core.evidence import Said
from shardmw.core.paths import Place
from shardmw.swift import COLLAPSED

SHARDED, FOUND = 'sharded', 'found'
#: The states of a root that has its rows itself: it was never split, or all
#: ranges have been shrunk into it.
WHOLE_STATES = ('unsharded', COLLAPSED)

#: How long after a change of ranges misplaced tombstones may be left: an hour,
#: for which proxies cache ranges by default, and as much for the sharder. The
#: documentation says what to do if recheck_updating_shard_ranges is larger.
CALM_SECONDS = 7200

#: What operators do about ranges that a change waits for.
RUN = 'run container-replicator and container-sharder'
ENABLE = 'run swift-manage-shard-ranges enable where they were found'
REPAIR = 'run swift-manage-shard-ranges repair, or repair --gaps'

_HEADERS = {
    'X-Backend-Record-Type': 'shard',
    'X-Backend-Include-Deleted': 'true',
}


class Range(NamedTuple):
    """The names that a shard container has: above `lower`, up to `upper`.

    :param upper: '' for no limit
    """

    lower: str
    upper: str
    place: Place


@dataclass(frozen=True)
class SplitRoot:
    """The databases of a root that Swift's sharder has split.

    :param root: the root
    :param ranges: the shard ranges, in the order of their names; none if the
                   root has the rows itself
    :param former: the shard containers of earlier ranges
    :param changed: when a range has changed last, in seconds since 1970
    """

    root: Place
    ranges: tuple[Range, ...]
    former: frozenset[Place]
    changed: float

    @property
    def is_calm(self) -> bool:
        """Return True if no range has changed for CALM_SECONDS."""
        return time.time() - self.changed > CALM_SECONDS

    @cached_property
    def listed(self) -> frozenset[Place]:
        """Return the places that listings read."""
        return frozenset(each.place for each in self.ranges) or {self.root}

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Return all places that may have rows, the root last."""
        return (*sorted((self.listed | self.former) - {self.root}), self.root)

    def is_misplaced_in(self, place: Place) -> bool:
        """Return True if Swift's sharder moves all rows out of a place."""
        return place in self.places and place not in self.listed

    def may_lack_tombstone(self, place: Place, name: str) -> bool:
        """Return True if the tombstone of a row may be in another database.

        :param place: where the row is, one of :attr:`places`
        """
        return not self.is_calm or self.place_of(name) != place

    def place_of(self, name: str) -> Place:
        """Return the container that has the row of a name."""
        if not self.ranges:
            return self.root
        last = len(self.ranges) - 1
        found = bisect_left(
            self.ranges, name, hi=last, key=lambda each: each.upper
        )
        return self.ranges[found].place


def split_root(backend: Backend, env: dict, root: Place) -> SplitRoot:
    """Ask all replicas of a root that was split for its shard ranges.

    :raises BackendError: if a replica does not answer, if some are split and
                          others are not, or if not all ranges are active
    """
    answers = ask_primaries(
        backend.proxy_app, env, *root, 'GET', _HEADERS, query='format=json'
    )
    told = sum(answer.is_success for answer in answers)
    if told < len(answers):
        raise BackendError(
            None,
            503,
            f'{told} of {len(answers)} replicas of {root} show its shard '
            'ranges',
        )
    states = {answer.sharding_state for answer in answers}
    listed = [
        [ShardRange.from_dict(row) for row in answer.rows()]
        for answer in answers
    ]
    ranges = _agreed_ranges(root, states, listed)
    everything = [each for some in listed for each in some]
    # A range that was only found has never had a container.
    used = {
        _range_of(each).place
        for each in everything
        if each.state != ShardRange.FOUND
    }
    changed = max(
        (
            max(float(each.timestamp), float(each.state_timestamp))
            for each in everything
        ),
        default=0,
    )
    shards = {each.place for each in ranges}
    return SplitRoot(root, ranges, frozenset(used - shards - {root}), changed)


def _agreed_ranges(
    root: Place, states: set[str], listed: list[list[ShardRange]]
) -> tuple[Range, ...]:
    """Return the ranges that all replicas of a root have.

    :param states: what Swift's sharder has made of the replicas
    :param listed: the ranges of each replica, with those that were deleted
    :raises BackendError: if they differ, or do not have each name once, or if
                          not all are active
    """
    is_whole = states.issubset(WHOLE_STATES)
    if not is_whole and states != {SHARDED}:
        raise _waits(root, f'its replicas are {", ".join(sorted(states))}')
    active = [[each for each in some if not each.deleted] for some in listed]
    busy = {
        each.state_text
        for some in active
        for each in some
        if each.state != ShardRange.ACTIVE
    }
    if busy:
        why = f'some of its shard ranges are {", ".join(sorted(busy))}'
        raise _waits(root, why, ENABLE if busy == {FOUND} else RUN)
    found = {tuple(map(_range_of, some)) for some in active}
    if len(found) > 1:
        raise _waits(root, 'its replicas have different shard ranges')
    (ranges,) = found
    ends = ['', *(each.upper for each in ranges)]
    starts = [*(each.lower for each in ranges), '']
    if starts != ends or bool(ranges) == is_whole:
        raise _waits(root, 'its shard ranges overlap, or have gaps', REPAIR)
    return ranges


def require_whole(backend: Backend, env: dict, place: Place) -> None:
    """Check that no replica of a container is being split.

    One that is deleted does not show that. If it is being split, the sharder
    brings the late rows that it takes to their ranges.

    :raises BackendError: if one is, or does not answer
    """
    answers = ask_primaries(backend.proxy_app, env, *place, 'HEAD')
    if any(answer.is_split for answer in answers):
        raise BackendError(None, 503, f"Swift's sharder has split {place}")
    told = sum(
        answer.is_success or replica_of(answer).said is Said.DELETED
        for answer in answers
    )
    if told < len(answers):
        raise BackendError(
            None,
            503,
            f'{told} of {len(answers)} replicas of {place} show whether '
            "Swift's sharder splits them",
        )


def require_split(backend: Backend, env: dict, place: Place) -> None:
    """Check that all replicas of a former container have been split.

    :raises BackendError: if one is not, or does not answer
    """
    for answer in ask_primaries(backend.proxy_app, env, *place, 'HEAD'):
        is_done = answer.sharding_state == SHARDED
        if not (answer.is_missing or (answer.is_success and is_done)):
            raise _waits(place, 'not all replicas are sharded')


def _range_of(each: ShardRange) -> Range:
    place = Place(each.account, each.container)
    return Range(each.lower_str, each.upper_str, place)


def _waits(place: Place, why: str, what_to_do: str = RUN) -> BackendError:
    return BackendError(
        None,
        503,
        f"Swift's sharder is splitting or shrinking {place}: {why} "
        f'({what_to_do})',
    )
