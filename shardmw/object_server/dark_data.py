# SPDX-License-Identifier: Apache-2.0
"""Swift's audit watcher ``dark_data``, for clusters with sharded containers.

Swift's watcher takes an object for dark data if its container does not list
it. The root of a sharded container lists nothing, so this watcher asks the
shard before it logs, quarantines or deletes an object, and leaves objects
alone while rows of their container have yet to be moved. It runs in
object-auditors and has the same options as Swift's watcher. With its own
action ``relist``, it writes missing rows
(:mod:`shardmw.object_server.relisting`).
"""

from collections.abc import Collection, Iterable, Iterator
from http.client import HTTPException

from swift.common.constraints import ACCOUNT_LISTING_LIMIT
from swift.common.direct_client import (
    direct_get_account,
    direct_head_container,
)
from swift.common.exceptions import ClientException, DiskFileError
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import HTTP_NOT_FOUND
from swift.common.utils import split_path

from shardmw.backend.backing_containers import backing_among, backing_range
from shardmw.backend.containers import RECORD_HEADER, LogicalContainer
from shardmw.backend.rows import row_at
from shardmw.core.layout import Layout, LayoutError, parse_record
from shardmw.core.paths import Place
from shardmw.core.placement import hidden_account
from shardmw.object_server.relisting import Relisting, UnknownError
from shardmw.swift import SPLIT_STATES, object_audit
from shardmw.swift.concurrency import Timeout

#: The folder of the rings, the same as in Swift's watcher.
SWIFT_DIR = '/etc/swift'

#: The action that only this watcher has.
RELIST = 'relist'

#: The errors after which an object is left alone until the next pass.
NO_ANSWER = (
    *(ClientException, HTTPException, OSError, Timeout),
    *(DiskFileError, LayoutError, UnknownError, object_audit.ContainerError),
)


class DarkDataWatcher(object_audit.DarkDataWatcher):
    """Finds objects that neither a container nor a shard lists.

    :ivar tot_relisted: the objects whose row was written in this pass
    """

    def __init__(self, conf: dict, logger) -> None:
        relists = conf.get('action') == RELIST
        # Objects that get no row are logged.
        swifts_conf = {**conf, 'action': 'log'} if relists else conf
        super().__init__(swifts_conf, logger)
        self.account_ring = object_audit.account_ring(SWIFT_DIR)
        self.relisting = (
            Relisting(conf, logger, SWIFT_DIR, self.container_ring)
            if relists
            else None
        )

    def start(self, audit_type: str, **others: object) -> None:
        """Begin a pass."""
        super().start(audit_type, **others)
        self.tot_relisted = 0

    def policy_based_object_handling(
        self, data_file_path: str, metadata: dict
    ) -> None:
        """Handle an object that its container does not list.

        Like Swift's watcher, do nothing unless all container servers answer.
        """
        self.tot_dark -= 1
        path = metadata['name']
        account, container, name = split_path(path, 3, 3, True)
        place = Place(account, container)
        try:
            heads = self._heads(place)
            if self._is_listed(place, name, heads):
                self.tot_okay += 1
                return
            if self.relisting and self.relisting.relist(
                data_file_path, place, name, heads
            ):
                self.tot_relisted += 1
                self.logger.info('relisted %s', path)
                return
        except NO_ANSWER:
            self.tot_unknown += 1
            return
        self.tot_dark += 1
        super().policy_based_object_handling(data_file_path, metadata)

    def end(self, **others: object) -> None:
        """Log what the pass has found and done."""
        super().end(**others)
        if self.relisting and not self.is_zbf:
            self.logger.info('total relisted %d', self.tot_relisted)

    def _is_listed(
        self, place: Place, name: str, heads: Iterable[HeaderKeyDict]
    ) -> bool:
        """Return True if an object is in the shard where it belongs.

        :param heads: the answer of each replica of the root to a HEAD
        :raises UnknownError: if rows are moving, or have yet to be moved
        """
        records = _records_in(heads)
        layouts = {parse_record(each) for each in records if each}
        if any(layout.is_changing for layout in layouts):
            raise UnknownError
        if self._has_late_rows(place, layouts):
            raise UnknownError
        for layout in layouts:
            target = LogicalContainer(place.path, {}, layout)
            if self._has_row(target.place_of(name), name):
                return True
        # A late row may have been moved to the root since Swift's watcher
        # looked there.
        path = f'/{place}/{name}'
        if object_audit.get_info_1(self.container_ring, path):
            return True
        # Another change may have moved the row since the records were read.
        if _records_in(self._heads(place)) != records:
            raise UnknownError
        return False

    def _has_late_rows(
        self, place: Place, layouts: Collection[Layout]
    ) -> bool:
        """Return True if a shard of an earlier layout has rows.

        Such rows are listed once they have been moved. If a proxy without the
        filter has deleted a sharded container, all of its rows are such rows.
        """
        hidden = hidden_account(place.account)
        start, end = backing_range(place.container)
        part, nodes = self.account_ring.get_nodes(hidden)
        return any(
            listed.object_count
            and not any(
                layout.has(listed.name.layout_id, listed.name.shard)
                for layout in layouts
            )
            for node in nodes
            for listed in backing_among(
                _account_rows(node, part, hidden, start, end),
                place.container,
            )
        )

    def _heads(self, place: Place) -> list[HeaderKeyDict]:
        """Return the answer of each replica of a root to a HEAD.

        :raises ClientException: if one does not have the container
        """
        part, nodes = self.container_ring.get_nodes(*place)
        return [direct_head_container(node, part, *place) for node in nodes]

    def _has_row(self, place: Place, name: str) -> bool:
        """Return True if a replica of a container lists an object.

        :raises UnknownError: if Swift's own sharder has split the container
        """
        part, nodes = self.container_ring.get_nodes(*place)
        for node in nodes:
            headers, row = row_at(node, part, place, name)
            if headers.get('X-Backend-Sharding-State') in SPLIT_STATES:
                raise UnknownError
            if row:
                return True
        return False


def _records_in(heads: Iterable[HeaderKeyDict]) -> set[str | None]:
    """Return the layout records that replicas of a root have."""
    return {head.get(RECORD_HEADER) for head in heads}


def _account_rows(
    node: dict, part: int, account: str, start: str, end: str
) -> Iterator[dict]:
    """Yield the containers of an account between two names, from one server.

    A server without the account yields none.

    :raises ClientException: if the server does not answer
    :raises UnknownError: if it ignores markers: it would be asked without end
    """
    marker = start
    while True:
        try:
            _, rows = direct_get_account(
                node, part, account, marker=marker, end_marker=end
            )
        except ClientException as err:
            if err.http_status == HTTP_NOT_FOUND:
                return
            raise
        yield from rows
        if len(rows) < ACCOUNT_LISTING_LIMIT:
            return
        if rows[-1]['name'] <= marker:
            raise UnknownError
        marker = rows[-1]['name']
