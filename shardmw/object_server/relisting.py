# SPDX-License-Identifier: Apache-2.0
"""Write the rows of objects that no container server lists.

This rebuilds the index of a container whose databases were lost. An object
gets its row back only if

- all of its primary servers answer, at least one has it as this node has it,
  and none knows of a later upload, a later POST, a deletion or an expiry;
- the container exists, has the storage policy of the object, and was not
  deleted after the object was written;
- the replicas of the root agree on the layout.

The row is the one that Swift's object server would send, with the object's own
timestamps. So a newer row or tombstone in the database wins, and writing the
row again changes nothing. No database is created for it: the container servers
have just answered with theirs, and they create none in the account of shards.
"""

from collections.abc import Sequence
from typing import NamedTuple

from swift.common.direct_client import (
    direct_head_object,
    direct_put_container_object,
)
from swift.common.exceptions import ClientException
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import HTTP_NOT_FOUND
from swift.common.ring import Ring
from swift.common.utils import Timestamp

from shardmw.backend.containers import RECORD_HEADER, LogicalContainer
from shardmw.backend.nodes import DELETE_TIMESTAMP
from shardmw.core.layout import PLAIN, parse_record
from shardmw.core.paths import Place
from shardmw.swift import SPLIT_STATES
from shardmw.swift.object_audit import (
    StoredObject,
    StoredObjects,
    object_ring,
)

POLICY_HEADER = 'X-Backend-Storage-Policy-Index'
SHARDING_STATE = 'X-Backend-Sharding-State'
CHANGED_HEADER = 'X-Backend-Timestamp'
WRITTEN_HEADER = 'X-Backend-Data-Timestamp'


class UnknownError(Exception):
    """Raised if a watcher cannot determine now what to do with an object."""


class Copy(NamedTuple):
    """The answer of one primary server to a HEAD of an object.

    :param exists: True if the server has the object, and it has not expired
    :param newest: the latest time that the server knows of: of the upload, a
                   POST or the deletion; 0 if it knows nothing of the object
    :param written: when its data was written, 0 if it does not exist
    """

    exists: bool
    newest: Timestamp
    written: Timestamp


class Relisting:
    """Writes the missing rows of objects on this node.

    :param conf: the configuration of the watcher
    :param swift_dir: the folder of the rings
    """

    def __init__(
        self, conf: dict, logger, swift_dir: str, container_ring: Ring
    ) -> None:
        self.container_ring = container_ring
        self._swift_dir = swift_dir
        self._object_rings: dict[int, Ring] = {}
        self._objects = StoredObjects(conf, logger)

    def relist(
        self,
        data_file_path: str,
        place: Place,
        name: str,
        heads: Sequence[HeaderKeyDict],
    ) -> bool:
        """Write the row of an object to all replicas of where it belongs.

        :param data_file_path: a file of the object, which is not listed
        :param place: the container of its path
        :param heads: the answer of each replica of the root to a HEAD
        :returns: False if the object does not belong to the container
        :raises UnknownError: if that cannot be determined now
        :raises ClientException: if a server refuses a request
        :raises DiskFileError: if the object is no longer there
        """
        stored = self._objects.read(data_file_path)
        target = target_of(stored, place, name, heads)
        if target is None:
            return False
        if not is_current(stored, self._copies(stored, place, name)):
            raise UnknownError
        part, nodes = self.container_ring.get_nodes(*target)
        for node in nodes:
            direct_put_container_object(
                node, part, *target, name, headers=stored.row
            )
        return True

    def _copies(
        self, stored: StoredObject, place: Place, name: str
    ) -> list[Copy]:
        """Ask all primary servers of an object for it."""
        index = stored.policy_index
        if index not in self._object_rings:
            self._object_rings[index] = object_ring(self._swift_dir, index)
        part, nodes = self._object_rings[index].get_nodes(*place, name)
        return [_copy(node, part, place, name, index) for node in nodes]


def target_of(
    stored: StoredObject,
    place: Place,
    name: str,
    heads: Sequence[HeaderKeyDict],
) -> Place | None:
    """Return the container whose database the row of an object belongs to.

    :param place: the container of its path
    :param heads: the answer of each replica of the root to a HEAD
    :returns: None if the container has another storage policy, or was deleted
              after the object was written
    :raises UnknownError: if the replicas differ, or if Swift's own sharder has
                          split the container
    :raises LayoutError: if the record cannot be read
    """
    records = {head.get(RECORD_HEADER) for head in heads}
    policies = {int(head[POLICY_HEADER]) for head in heads}
    is_split = any(head.get(SHARDING_STATE) in SPLIT_STATES for head in heads)
    if len(records) > 1 or len(policies) > 1 or is_split:
        raise UnknownError
    deleted = max(Timestamp(head.get(DELETE_TIMESTAMP, 0)) for head in heads)
    if policies != {stored.policy_index} or stored.written <= deleted:
        return None
    (record,) = records
    layout = parse_record(record) if record else PLAIN
    return LogicalContainer(place.path, {}, layout).place_of(name)


def is_current(stored: StoredObject, copies: Sequence[Copy]) -> bool:
    """Return True if a primary has an object, and none knows a newer state.

    A server that knows nothing of the object proves nothing. An object that
    has expired counts as deleted.
    """
    return any(
        each.exists and each.written == stored.written for each in copies
    ) and not any(
        each.newest > stored.changed
        if each.exists
        else each.newest >= stored.written
        for each in copies
    )


def _copy(
    node: dict, part: int, place: Place, name: str, policy_index: int
) -> Copy:
    """Ask one server for an object.

    :raises ClientException: if it answers neither with the object nor 404
    """
    headers = {POLICY_HEADER: str(policy_index)}
    try:
        found = direct_head_object(node, part, *place, name, headers=headers)
    except ClientException as err:
        if err.http_status != HTTP_NOT_FOUND:
            raise
        newest = err.http_headers.get(CHANGED_HEADER, 0)
        return Copy(False, Timestamp(newest), Timestamp(0))
    return Copy(
        True,
        Timestamp(found[CHANGED_HEADER]),
        Timestamp(found[WRITTEN_HEADER]),
    )
