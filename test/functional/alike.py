# SPDX-License-Identifier: Apache-2.0
"""Compare the answers of a plain and a sharded container."""

import re

from test.functional.client import Answer, Client
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
    SHARDS,
    Pair,
    unique,
)

#: Headers with times and request IDs, which differ between any two answers.
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
#: Headers that only a sharded container has.
SHARDING_HEADERS = {SHARD_COUNT_HEADER.lower(), SHARD_DEPTH_HEADER.lower()}
#: The transaction ID in the body of an error response.
TRANSACTION = re.compile(rb'tx[0-9a-f]{21}-[0-9a-f]{10}[\w-]*')


def twin_names() -> Pair:
    """Return names of equal length, so that answers with them are, too."""
    return Pair(unique('pl'), unique('sh'))


def make_twins(client: Client, shards: int = SHARDS) -> Pair:
    """Create a plain and a sharded container with names of equal length."""
    twins = twin_names()
    count = {SHARD_COUNT_HEADER: str(shards)}
    assert client.put(twins.plain).status == 201
    assert client.put(twins.sharded, headers=count).status == 201
    return twins


def masked(answer: Answer, container: str) -> Answer:
    """Return an answer without what differs between any two containers."""
    headers = {
        name: '*' if name in MASKED_HEADERS else value.replace(container, '*')
        for name, value in answer.headers.items()
        if name not in SHARDING_HEADERS
    }
    body = answer.body.replace(container.encode(), b'*')
    body = LAST_MODIFIED.sub(rb'\1*\2', body)
    return Answer(answer.status, headers, TRANSACTION.sub(b'*', body))
