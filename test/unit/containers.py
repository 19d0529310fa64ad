# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests that need sharded containers."""

from shardmw.backend.containers import (
    RECORD_HEADER,
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
)
from shardmw.core.layout import Layout, id_of_time, parse_record
from shardmw.core.placement import backing_container, shard_of
from test.unit.fakeswift import ACCOUNT, HIDDEN, FakeSwift

CONTAINER = '/v1/AUTH_test/c'

#: Ids of layouts, in the order of their times.
OLD_ID, NEW_ID = id_of_time(1_700_000_000), id_of_time(1_700_003_600)


def create(
    swift: FakeSwift, filter_app, shards: int, name: str = 'c', depth: int = 0
) -> None:
    """Create a sharded container as a client, and forget the requests."""
    headers = {SHARD_COUNT_HEADER: str(shards)}
    if depth:
        headers[SHARD_DEPTH_HEADER] = str(depth)
    resp = swift.send(filter_app, 'PUT', f'/v1/{ACCOUNT}/{name}', headers)
    assert resp.status_int == 201, resp.status
    forget_requests(swift)


def forget_requests(swift: FakeSwift) -> None:
    """Forget the requests that were recorded while a test was prepared."""
    swift.calls.clear()
    swift.servers.asked.clear()


def layout_of(swift: FakeSwift, name: str = 'c', replica: int = 0) -> Layout:
    """Return the layout that a replica of a root has recorded."""
    metadata = swift.broker(ACCOUNT, name, replica).metadata
    return parse_record(metadata[RECORD_HEADER.title()][0])


def backing(
    swift: FakeSwift, shard: int, name: str = 'c', replica: int = 0
) -> str:
    """Return the name of a backing container, as a replica has recorded."""
    layout = layout_of(swift, name, replica)
    return backing_container(name, layout.id, shard)


def shard_for(swift: FakeSwift, obj: str, name: str = 'c') -> str:
    """Return the name of the backing container that lists an object."""
    layout = layout_of(swift, name)
    shard = shard_of(obj, *layout.sharding)
    return backing_container(name, layout.id, shard)


def put_sharded_row(
    swift: FakeSwift, obj: str, name: str = 'c', **row
) -> None:
    """Write the row of an object to its shard."""
    swift.put_row(f'/{HIDDEN}/{shard_for(swift, obj, name)}/{obj}', **row)
