# SPDX-License-Identifier: Apache-2.0
"""Swift's audit watcher ``dark_data``, for clusters with sharded containers.

Swift's watcher takes an object for dark data if its container does not list
it. The root of a sharded container lists nothing, so this one asks the shard
before it logs, quarantines or deletes an object. It runs in object-auditors,
with the options of Swift's.
"""

from eventlet import Timeout
from swift.common.direct_client import direct_head_container
from swift.common.exceptions import ClientException
from swift.common.utils import split_path
from swift.obj.watchers import dark_data

from shardmw.backend.containers import RECORD_HEADER, LogicalContainer
from shardmw.backend.requests import SPLIT_STATES
from shardmw.backend.rows import row_at
from shardmw.record import Layout, LayoutError, parse_record

API_VERSION = 'v1'


class UnknownError(Exception):
    """It cannot be told now whether an object is listed."""


class DarkDataWatcher(dark_data.DarkDataWatcher):
    """Finds objects that neither a container nor a shard lists."""

    def policy_based_object_handling(
        self, data_file_path: str, metadata: dict
    ) -> None:
        """Handle an object that its container does not list.

        Like Swift's watcher, do nothing unless all container servers answer.
        """
        self.tot_dark -= 1
        try:
            is_listed = self._is_listed(metadata['name'])
        except (ClientException, LayoutError, Timeout, UnknownError):
            self.tot_unknown += 1
            return
        if is_listed:
            self.tot_okay += 1
            return
        self.tot_dark += 1
        super().policy_based_object_handling(data_file_path, metadata)

    def _is_listed(self, path: str) -> bool:
        """Return True if an object is in the shard where it belongs.

        :raises UnknownError: if rows are moving
        """
        account, container, name = split_path(path, 3, 3, True)
        for layout in self._layouts(account, container):
            if layout.is_changing:
                raise UnknownError
            target = LogicalContainer(
                API_VERSION, account, container, {}, layout
            )
            if self._has_row(target.place_of(name), name):
                return True
        return False

    def _layouts(self, account: str, container: str) -> set[Layout]:
        """Return the layouts that the replicas of a root have recorded."""
        part, nodes = self.container_ring.get_nodes(account, container)
        heads = [
            direct_head_container(node, part, account, container)
            for node in nodes
        ]
        records = {head.get(RECORD_HEADER) for head in heads}
        return {parse_record(each) for each in records if each}

    def _has_row(self, place: str, name: str) -> bool:
        """Return True if a replica of a container lists an object.

        :raises UnknownError: if Swift's own sharder has split the container
        """
        part, nodes = self.container_ring.get_nodes(*place.split('/', 1))
        for node in nodes:
            headers, row = row_at(node, part, place, name)
            if headers.get('X-Backend-Sharding-State') in SPLIT_STATES:
                raise UnknownError
            if row:
                return True
        return False
