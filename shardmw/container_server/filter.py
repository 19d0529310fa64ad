# SPDX-License-Identifier: Apache-2.0
"""Read several containers for one request: a filter that only reads.

A listing of a sharded container reads a few rows of each shard. Most of the
cost of such a read is its HTTP request and the opening of the database. With
this filter in a container server, a proxy reads several shards with one
request, their databases stay open for a moment, and a few pending rows can be
listed without being merged first::

    [pipeline:main]
    pipeline = healthcheck recon shardmw-container container-server

    [filter:shardmw-container]
    use = egg:shardmw#shardmw_container

What it buys (doc/performance.md): a listing of 32 shards in pages of 1,000
rows has 1.70 times the rate of a plain container's instead of 0.55 times, in
pages of 100 rows 0.61 instead of 0.17.

Proxies find out by themselves which servers have the filter. It returns what a
GET or HEAD of an existing, unsplit container would return. For any other
container, the proxy has to send a separate request. The filter must be the
last one before ``container-server``.

The filter's own code writes nothing: it opens databases read-only. Pending
rows that it has listed are merged some seconds later by Swift's code, which
otherwise merges them before each listing. Reads that need merged rows are left
to Swift's code.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from itertools import chain

from swift.common.constraints import check_drive
from swift.common.exceptions import LockTimeout
from swift.common.request_helpers import validate_container_params
from swift.common.swob import HTTPBadRequest, HTTPException, Request, Response
from swift.common.utils import Timestamp, config_true_value, get_logger

from shardmw.backend.config import ConfigError, check_option_names
from shardmw.backend.gc_freeze import leave_out_lasting_objects
from shardmw.container_server.background_merges import BackgroundMerges
from shardmw.core.batch import (
    METHOD,
    TOMBSTONES,
    Found,
    Read,
    decode_reads,
    encode_found,
)
from shardmw.swift import SPLIT_STATES
from shardmw.swift.concurrency import Timeout, TimeSlice
from shardmw.swift.container_rows import listed_rows, simple_text
from shardmw.swift.container_server import (
    ContainerBroker,
    ContainerController,
    swift_broker,
)
from shardmw.swift.open_brokers import OpenBrokers
from shardmw.swift.pending_file import (
    PendingRowsError,
    ReadingBroker,
    Snapshot,
)

#: The largest ``.pending`` file, in bytes, whose rows are listed without a
#: merge. That is about 100 rows with short names.
MOST_PENDING_BYTES = 16384

#: After this time, send what was found before the next read. A proxy waits
#: ``node_timeout`` for the first part, and again for the rest.
SEND_SECONDS = 0.1

#: If this key is 0, eventlet sends each part at once.
SEND_AT_ONCE_ENV = 'eventlet.minimum_write_chunk_size'

#: The most bytes to read of a request's body. No proxy sends as many.
MOST_BODY_BYTES = 2 * 1024 * 1024

#: The device, the partition, the account and the container.
Where = tuple[str, str, str, str]


class ContainerFilter:
    """The filter ``shardmw-container``.

    :param app: the container server
    :param logger: the filter's logger
    """

    def __init__(self, app: ContainerController, logger) -> None:
        self.app = app
        self.logger = logger
        self._brokers = OpenBrokers(self._reading_broker)
        self._merges = BackgroundMerges(self._merge_or_log)

    def __call__(self, env: dict, start_response: Callable):
        """WSGI entry point."""
        if env['REQUEST_METHOD'] != METHOD:
            return self.app(env, start_response)
        leave_out_lasting_objects()
        env[SEND_AT_ONCE_ENV] = 0
        req = Request(env)
        self.logger.txn_id = req.headers.get('X-Trans-Id')
        try:
            reads = decode_reads(req.body_file.read(MOST_BODY_BYTES))
        except ValueError as err:
            response = HTTPBadRequest(request=req, body=str(err))
        else:
            response = self._answer(reads, req)
        return response(env, start_response)

    def _reading_broker(self, *where: str) -> ReadingBroker:
        with swift_broker(self.app, *where) as broker:
            return ReadingBroker(
                broker.db_file,
                account=broker.account,
                container=broker.container,
                logger=broker.logger,
            )

    def _merge(self, *where: str) -> None:
        """Merge pending rows by Swift's code, if it gets their lock."""
        with (
            swift_broker(self.app, *where) as broker,
            suppress(FileNotFoundError),
        ):
            if os.path.getsize(broker.pending_file):
                broker.get_info()

    def _merge_or_log(self, *where: str) -> None:
        try:
            self._merge(*where)
        except (Exception, LockTimeout, Timeout):
            _device, _part, account, container = where
            self.logger.exception(
                'shardmw-container: could not merge rows into /%s/%s',
                account,
                container,
            )

    def _answer(self, reads: list[Read], req: Request) -> Response:
        """Return the response: whole, or in parts if reading takes long."""
        began = time.monotonic()
        devices = {read.device for read in reads}
        usable = {device for device in devices if self._is_usable(device)}
        rest = deque(reads)

        def next_found() -> bytes:
            found = self._next_found(rest, usable)
            if found and not rest and self.app.log_requests:
                self.logger.info(
                    'shardmw-container: %d containers read in %.4f s, '
                    'such as %s',
                    len(reads),
                    time.monotonic() - began,
                    req.path,
                )
            return found

        first = next_found()
        if not rest:
            return Response(request=req, body=first)
        more = iter(next_found, b'')
        return Response(request=req, app_iter=chain([first], more))

    def _next_found(self, rest: deque[Read], usable: set[str]) -> bytes:
        """Read containers for about SEND_SECONDS.

        :param rest: the reads that are left; those that are done are removed
        :param usable: the devices that can be read
        :returns: what was found; empty if no reads were left
        """
        began = time.monotonic()
        time_slice = TimeSlice()
        found = []
        while rest and not (found and time.monotonic() - began > SEND_SECONDS):
            read = rest.popleft()
            of_read = self._found(read) if read.device in usable else None
            found.append(encode_found(of_read))
            time_slice.end_in_time()
        return b''.join(found)

    def _is_usable(self, device: str) -> bool:
        """Return True if a device exists, and is mounted if it has to be."""
        try:
            check_drive(self.app.root, device, self.app.mount_check)
        except ValueError:
            return False
        return True

    def _found(self, read: Read) -> Found | None:
        """Return the figures and rows of a container.

        :returns: None if the proxy has to send a request for it alone
        """
        try:
            return self._read(read)
        except (ValueError, HTTPException):
            return None
        except (Exception, LockTimeout, Timeout):
            self.logger.exception(
                'shardmw-container: could not read /%s/%s',
                read.account,
                read.container,
            )
            return None

    def _read(self, read: Read) -> Found | None:
        where = read.device, str(read.part), read.account, read.container
        params = _params(read.query)
        if read.method == TOMBSTONES or _needs_swift(params):
            return self._read_merged(where, read.method, params)
        has_room = self._merges.has_room(*where)
        try:
            most = MOST_PENDING_BYTES if has_room else 0
            return self._read_pending(where, read.method, params, most)
        except PendingRowsError:
            self._merge(*where)
            # If another process holds the lock, the rows are still pending.
            # Rows that earlier reads have listed must stay listed.
            return self._read_pending(where, read.method, params, None)

    def _read_pending(
        self, where: Where, method: str, params: dict, most: int | None
    ) -> Found | None:
        """Read a container with its pending rows.

        :param most: as for :meth:`ReadingBroker.snapshot`
        :raises PendingRowsError: if they have to be merged first
        """
        rows: list[tuple] = []
        with self._brokers.broker(*where) as broker:
            if not os.path.exists(broker.db_file):
                return None
            with broker.snapshot(most) as snapshot:
                if snapshot.is_deleted:
                    return None
                if method == 'GET':
                    rows = _rows(snapshot, params)
            # This may open the database once more, so do it after the
            # transaction: another process may wait for its end.
            if broker.get_db_state() in SPLIT_STATES:
                return None
        if snapshot.rows_wait:
            self._merges.add(*where)
        body = b'' if method == 'HEAD' else self._listing(rows)
        return Found(_headers(snapshot.info), body)

    def _read_merged(
        self, where: Where, method: str, params: dict
    ) -> Found | None:
        """Read a container by Swift's code, which merges its rows first."""
        with swift_broker(self.app, *where) as broker:
            info, is_deleted = broker.get_info_is_deleted()
            if is_deleted or info['db_state'] in SPLIT_STATES:
                return None
            body = b''
            if method == TOMBSTONES:
                body = _tombstones(broker, params)
            elif method == 'GET':
                body = self._listing(_rows_of_swift(broker, params, info))
        return Found(_headers(info), body)

    def _listing(self, rows: list[tuple]) -> bytes:
        texts = [
            simple_text(row) or json.dumps(self.app.update_object_record(row))
            for row in rows
        ]
        return f'[{", ".join(texts)}]'.encode('ascii')


def _headers(info: dict) -> dict[str, str]:
    """Return the headers of an answer that proxies use.

    :param info: the figures of the container
    """
    return {
        'X-Container-Object-Count': str(info['object_count']),
        'X-Container-Bytes-Used': str(info['bytes_used']),
        'X-PUT-Timestamp': _normal(info['put_timestamp']),
    }


@lru_cache(maxsize=1024)
def _normal(timestamp: str) -> str:
    return Timestamp(timestamp).normal


@lru_cache
def _params(query: str) -> dict:
    # Most reads of a batch have the same query.
    return validate_container_params(Request({'QUERY_STRING': query}))


def _needs_swift(params: dict) -> bool:
    """Return True if only Swift's broker can make a listing."""
    return 'path' in params or config_true_value(params.get('reverse'))


def _rows(snapshot: Snapshot, params: dict) -> list[tuple]:
    """Return the rows of a listing.

    :param params: the parameters of the request
    """
    return listed_rows(
        snapshot.connection,
        snapshot.info['storage_policy_index'],
        params['limit'],
        params.get('delimiter', ''),
        params.get('prefix', ''),
        params.get('marker', ''),
        params.get('end_marker', ''),
        snapshot.pending,
    )


def _tombstones(broker: ContainerBroker, params: dict) -> bytes:
    """Return a page of tombstones in JSON: their names and timestamps."""
    rows = broker.get_objects(
        params['limit'], params.get('marker', ''), include_deleted=True
    )
    found = [(row['name'], row['created_at']) for row in rows]
    return json.dumps(found).encode('ascii')


def _rows_of_swift(
    broker: ContainerBroker, params: dict, info: dict
) -> list[tuple]:
    """Return the rows of a listing that Swift's broker makes.

    :param params: the parameters of the request
    :param info: the figures of the container
    """
    return broker.list_objects_iter(
        params['limit'],
        params.get('marker', ''),
        params.get('end_marker'),
        params.get('prefix'),
        params.get('delimiter'),
        params.get('path'),
        storage_policy_index=info['storage_policy_index'],
        reverse=config_true_value(params.get('reverse')),
        allow_reserved=True,
    )


def filter_factory(
    global_conf: dict[str, str], **local_conf: str
) -> Callable[[Callable], ContainerFilter]:
    """Return the filter's constructor, for PasteDeploy.

    :raises ConfigError: if an option is wrong, or the filter does not stand
                         next to a container server
    """
    check_option_names(local_conf, 'shardmw-container', names=(), prefixes=())
    conf = {**global_conf, **local_conf}
    logger = get_logger(conf, log_route='shardmw-container')

    def make(app: Callable) -> ContainerFilter:
        if not isinstance(app, ContainerController):
            raise ConfigError(
                'shardmw-container: it must stand next to container-server, '
                'at the end of the pipeline of container-server.conf'
            )
        return ContainerFilter(app, logger)

    return make
