# SPDX-License-Identifier: Apache-2.0
"""What lies behind a sharded container, changed past the filter.

So tests make the states that a process leaves that dies at its work.
"""

import configparser
import hashlib
from collections.abc import Iterator
from pathlib import Path

from swift.common.memcached import MemcacheRing
from swift.common.utils import Timestamp, get_logger
from swift.container.backend import ContainerBroker

from shardmw.placement import (
    backing_container,
    backing_prefix,
    shard_of,
)
from shardmw.saio import Cluster
from test.functional.client import Answer, Client

RESERVED_NAMES = {'X-Allow-Reserved-Names': 'true'}
RECORD_HEADER = 'X-Container-Sysmeta-Shardmw-Layout'


class Backing:
    """The root and the shards of containers.

    :param unfiltered: a client of a proxy that has no shardmw
    """

    def __init__(self, unfiltered: Client) -> None:
        self._unfiltered = unfiltered

    def _shard(self, method: str, container: str, shard: int, **headers):
        return self._unfiltered.request(
            method,
            backing_container(container, shard),
            headers={**RESERVED_NAMES, **headers},
        )

    def put_shard(self, container: str, shard: int, **headers) -> None:
        headers = {k.replace('_', '-'): v for k, v in headers.items()}
        answer = self._shard('PUT', container, shard, **headers)
        assert answer.status == 201

    def delete_shard(self, container: str, shard: int) -> None:
        assert self._shard('DELETE', container, shard).status == 204

    def head_shard(self, container: str, shard: int) -> Answer:
        return self._shard('HEAD', container, shard)

    def delete_root(self, container: str) -> None:
        assert self._unfiltered.delete(container).status == 204

    def has_root(self, container: str) -> bool:
        return self._unfiltered.head(container).status == 204

    def shards(self, container: str) -> list[str]:
        """The names of the shards that there are."""
        return self._unfiltered.get(
            query={'format': 'json', 'prefix': backing_prefix(container)},
            headers=RESERVED_NAMES,
        ).names()

    def forget(self, container: str) -> None:
        """Have the proxies forget what they know of a container."""
        assert self._unfiltered.post(container).status == 204


def shard_names(container: str, count: int) -> list[str]:
    """The names of the shards of a container that is whole."""
    return [backing_container(container, shard) for shard in range(count)]


def name_in_shard(shard: int, count: int) -> str:
    """An object name that lies in a shard."""
    return next(
        name
        for name in map('object-{}'.format, range(10_000))
        if shard_of(name, count) == shard
    )


def write_record(
    cluster: Cluster, account: str, container: str, record: str
) -> None:
    """Write a layout record into the databases of a root."""
    for path in _databases(cluster, account, container):
        written = (record, Timestamp.now().internal)
        ContainerBroker(str(path)).update_metadata({RECORD_HEADER: written})


def _databases(
    cluster: Cluster, account: str, container: str
) -> Iterator[Path]:
    conf = configparser.ConfigParser()
    conf.read(cluster.path / 'etc' / 'swift.conf')
    salt = conf['swift-hash']
    text = (
        f'{salt["swift_hash_path_prefix"]}/{account}/{container}'
        f'{salt["swift_hash_path_suffix"]}'
    )
    digest = hashlib.md5(text.encode()).hexdigest()
    return cluster.devices_path.glob(f'*/*/containers/*/*/{digest}/*.db')


def memcached_of(cluster: Cluster) -> MemcacheRing:
    """A client of a cluster's memcached."""
    port = cluster.servers['memcached'].port
    return MemcacheRing([f'127.0.0.1:{port}'], logger=get_logger({}))
