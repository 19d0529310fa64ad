# SPDX-License-Identifier: Apache-2.0
"""Use Swift's own watcher of dark data, and read what its auditor reads."""

import os
from typing import NamedTuple
from urllib.parse import quote

from swift.common.direct_client import direct_get_container
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.request_helpers import (
    OBJECT_SYSMETA_CONTAINER_UPDATE_OVERRIDE_PREFIX as OVERRIDE,
)
from swift.common.ring import Ring
from swift.common.storage_policy import POLICIES, split_policy_string
from swift.common.utils import Timestamp, extract_swift_bytes
from swift.obj.diskfile import AuditLocation, DiskFileRouter
from swift.obj.watchers import dark_data

ContainerError = dark_data.ContainerError
DarkDataWatcher = dark_data.DarkDataWatcher
get_info_1 = dark_data.get_info_1

#: The size and the ETag of an object of which a node has a fragment.
EC_SIZE = 'X-Object-Sysmeta-Ec-Content-Length'
EC_ETAG = 'X-Object-Sysmeta-Ec-Etag'


def _get_container(*args, extra_params: dict[str, str], **options):
    """Ask a container server, with parameters of any characters.

    Swift's function quotes the prefix, but none of these. So servers refuse
    names that are not ASCII, and Swift's watcher counts them as unknown.
    """
    quoted = {name: quote(value) for name, value in extra_params.items()}
    return direct_get_container(*args, extra_params=quoted, **options)


# get_info_1() calls it.
dark_data.direct_get_container = _get_container


class StoredObject(NamedTuple):
    """An object on a device of this node.

    :param written: when its data was written
    :param changed: when its metadata was changed last
    :param row: the headers with which its object server sends its row
    """

    policy_index: int
    written: Timestamp
    changed: Timestamp
    row: HeaderKeyDict


class StoredObjects:
    """Reads the objects on the devices of this node.

    :param conf: the configuration of the object-auditor
    """

    def __init__(self, conf: dict, logger) -> None:
        self._managers = DiskFileRouter(conf, logger)

    def read(self, data_file_path: str) -> StoredObject:
        """Return an object.

        :param data_file_path: a file of the object, as a watcher gets it
        :raises DiskFileError: if the object has been deleted, has expired or
                               cannot be read
        """
        folder = os.path.dirname(data_file_path)
        device, objects, partition, _suffix, _hash = folder.rsplit('/', 4)
        _, policy = split_policy_string(objects)
        place = AuditLocation(
            folder, os.path.basename(device), partition, policy
        )
        manager = self._managers[policy]
        with manager.get_diskfile_from_audit_location(place).open() as found:
            return StoredObject(
                int(policy),
                found.data_timestamp,
                found.timestamp,
                _row_of(found, int(policy)),
            )


def account_ring(swift_dir: str) -> Ring:
    """Return the ring of accounts, as the watcher loads that of containers."""
    return dark_data.Ring(swift_dir, ring_name='account')


def object_ring(swift_dir: str, policy_index: int) -> Ring:
    """Return the ring of a policy's objects, loaded in the same way."""
    name = POLICIES[policy_index].ring_name
    return dark_data.Ring(swift_dir, ring_name=name)


def _row_of(found, policy_index: int) -> HeaderKeyDict:
    """Return the headers that Swift's object server sends for a POST.

    The three timestamps make them right for an object without a POST, too.

    :param found: an open diskfile
    """
    metadata = found.get_metadata()
    content_type = found.content_type
    if found.content_type_timestamp != found.data_timestamp:
        # The size of a large object is in the content type of its PUT.
        first = found.get_datafile_metadata()['Content-Type']
        _, swift_bytes = extract_swift_bytes(first)
        if swift_bytes:
            content_type += f';swift_bytes={swift_bytes}'
    row = HeaderKeyDict(
        {
            'X-Timestamp': found.data_timestamp.internal,
            'X-Content-Type-Timestamp': found.content_type_timestamp.internal,
            'X-Meta-Timestamp': found.timestamp.internal,
            'X-Content-Type': content_type,
            'X-Size': metadata.get(EC_SIZE, metadata['Content-Length']),
            'X-Etag': metadata.get(EC_ETAG, metadata['ETag']),
            'X-Backend-Storage-Policy-Index': policy_index,
        }
    )
    for name, value in metadata.items():
        if name.lower().startswith(OVERRIDE):
            row[f'X-{name[len(OVERRIDE) :]}'] = value
    return row
