# SPDX-License-Identifier: Apache-2.0
"""Comparing the answers of a plain and of a sharded container."""

import re

from test.functional.client import Answer, Client
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
    SHARDS,
    Pair,
    unique,
)

#: What differs between any two answers: when, and to which request.
MASKED_HEADERS = {
    'date',
    'last-modified',
    'x-copied-from-last-modified',
    # Counted from the time of an upload if the client gives X-Delete-After.
    'x-delete-at',
    'x-openstack-request-id',
    'x-put-timestamp',
    'x-timestamp',
    'x-trans-id',
}
LAST_MODIFIED = re.compile(
    rb'("last_modified": "|<last_modified>|<td class="coldate">)[0-9T:. -]+'
    rb'("|</last_modified>|</td>)'
)
#: What only a sharded container shows.
SHARDING_HEADERS = {SHARD_COUNT_HEADER.lower(), SHARD_DEPTH_HEADER.lower()}
#: Errors name the request that they are of.
TRANSACTION = re.compile(rb'tx[0-9a-f]{21}-[0-9a-f]{10}[\w-]*')


def twin_names() -> Pair:
    """Names of one length, so that what holds them is of one length, too."""
    return Pair(unique('pl'), unique('sh'))


def make_twins(client: Client, shards: int = SHARDS) -> Pair:
    """Create a plain and a sharded container whose names are as long."""
    twins = twin_names()
    count = {SHARD_COUNT_HEADER: str(shards)}
    assert client.put(twins.plain).status == 201
    assert client.put(twins.sharded, headers=count).status == 201
    return twins


def masked(answer: Answer, container: str) -> Answer:
    """An answer without what differs between those of any two containers."""
    headers = {
        name: '*' if name in MASKED_HEADERS else value.replace(container, '*')
        for name, value in answer.headers.items()
        if name not in SHARDING_HEADERS
    }
    body = answer.body.replace(container.encode(), b'*')
    body = LAST_MODIFIED.sub(rb'\1*\2', body)
    return Answer(answer.status, headers, TRANSACTION.sub(b'*', body))
