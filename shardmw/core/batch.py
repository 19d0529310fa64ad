# SPDX-License-Identifier: Apache-2.0
"""A batch: reads of several containers in one request to a server. Pure.

The request has the method :data:`METHOD`, which container servers without the
filter answer with 405. Its body is a JSON list of :class:`Read`. The answer
has two lines for each read, in the same order: the headers as a JSON object,
and the listing as Swift writes it, empty for a HEAD. The headers are ``null``
if the proxy has to send a separate request for the read.
"""

from collections import defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import orjson

METHOD = 'REPORT'

#: The method of a :class:`Read` of the tombstones in a database. The listing
#: has the name and the timestamp of each, in the order of the names.
TOMBSTONES = 'TOMBSTONES'

#: The most reads in a request.
MOST_READS = 128

#: The IP and the port of a server.
Address = tuple[str, int]


class Source(NamedTuple):
    """A shard and a server to read it from.

    :param shard: the index of the shard
    :param node: a server that has it, as a ring describes it; None if the
                 replicas are to be asked one after the other
    :param part: its partition
    """

    shard: int
    node: dict | None = None
    part: int = 0


class Read(NamedTuple):
    """A read of one container.

    :param device: the name of the device
    :param part: the partition
    :param account: a native string, like `container`
    :param method: GET, HEAD or TOMBSTONES
    :param query: the quoted query string
    """

    device: str
    part: int
    account: str
    container: str
    method: str
    query: str = ''


class Found(NamedTuple):
    """The figures of one container, and the rows of its listing.

    :param headers: the headers that proxies use: the figures, and the time of
                    the container's creation
    :param body: the listing in JSON, empty for a HEAD
    """

    headers: dict[str, str]
    body: bytes


def grouped(
    sources: Mapping[int, Mapping[Address, Source]], size: int
) -> list[list[Source]]:
    """Group shards by server, servers with the most shards first.

    Servers that have equally many take turns.

    :param sources: by shard and by the address of the server
    :param size: the most shards to read together
    :returns: the groups to read together. A shard without a source is in a
              group of its own, with no node
    """
    rest: dict[Address, dict[int, Source]] = defaultdict(dict)
    for shard, of_shard in sources.items():
        for address, source in of_shard.items():
            rest[address][shard] = source
    batches = []
    alone = [
        [Source(shard)] for shard, of_shard in sources.items() if not of_shard
    ]
    # The server with the most shards comes first. Its shards may be in groups
    # of other servers by then, so its rank is computed again.
    ranked = [
        (-min(size, len(here)), 0, order, address)
        for order, (address, here) in enumerate(rest.items())
    ]
    heapify(ranked)
    while ranked:
        shards, used, order, address = heappop(ranked)
        here = rest[address]
        count = min(size, len(here))
        if -shards != count:
            heappush(ranked, (-count, used, order, address))
            continue
        batch = list(here.values())[:count]
        if batch:
            batches.append(batch)
        for source in batch:
            for other in sources[source.shard]:
                del rest[other][source.shard]
        if here:
            rank = -min(size, len(here)), used + 1
            heappush(ranked, (*rank, order, address))
    return batches + alone


def encode_reads(reads: list[Read]) -> bytes:
    """Return the body of a request."""
    return orjson.dumps([list(read) for read in reads])


def decode_reads(body: bytes) -> list[Read]:
    """Return the reads that a request asks for.

    :raises ValueError: if the body is invalid
    """
    try:
        reads = [Read(*each) for each in orjson.loads(body)]
    except TypeError as err:
        raise ValueError(str(err)) from None
    if not 0 < len(reads) <= MOST_READS:
        raise ValueError(f'{len(reads)} reads')
    for read in reads:
        texts = (read.device, read.account, read.container, read.query)
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f'no text: {read}')
        if not isinstance(read.part, int) or read.part < 0:
            raise ValueError(f'no partition: {read}')
        if read.method not in ('GET', 'HEAD', TOMBSTONES):
            raise ValueError(f'no method: {read}')
    return reads


def encode_found(found: Found | None) -> bytes:
    """Return the part of an answer for one read."""
    if found is None:
        return b'null\n\n'
    return orjson.dumps(found.headers) + b'\n' + found.body + b'\n'


def decode_found(body: bytes, count: int) -> list[Found | None]:
    """Return what a server has found, in the order of the reads.

    :param count: the number of reads
    :raises ValueError: if the answer has fewer or more lines, or no headers
                        for a read
    """
    *lines, rest = body.split(b'\n', 2 * count)
    if len(lines) != 2 * count or rest:
        raise ValueError(f'{len(body)} bytes are no answer to {count} reads')
    found = []
    for number in range(0, 2 * count, 2):
        headers = orjson.loads(lines[number])
        if headers is None:
            found.append(None)
            continue
        if not _are_headers(headers):
            raise ValueError(f'no headers in line {number}')
        found.append(Found(headers, lines[number + 1]))
    return found


def _are_headers(value: object) -> bool:
    """Return True if a JSON value is an object whose values are texts."""
    return isinstance(value, dict) and all(
        isinstance(each, str) for each in value.values()
    )
