# SPDX-License-Identifier: Apache-2.0
"""Look at and change backing containers, past the filter.

Tests use this to create the states that a killed process leaves behind.
"""

import configparser
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

from shardmw_saio import Cluster
from swift.common.memcached import MemcacheRing
from swift.common.utils import Timestamp, get_logger
from swift.container.backend import ContainerBroker

from shardmw.core.placement import (
    backing_container,
    backing_prefix,
    hidden_account,
    parse_backing,
    shard_of,
)
from test.functional.client import Answer, Client

RESERVED_NAMES = {'X-Allow-Reserved-Names': 'true'}
EMPTY_ETAG = hashlib.md5(b'').hexdigest()
RECORD_HEADER = 'X-Container-Sysmeta-Shardmw-Layout'


class Backing:
    """The root and the shards of containers.

    :param unfiltered: a client of a proxy that has no shardmw and lets it
                       into every account
    """

    def __init__(self, unfiltered: Client) -> None:
        self._unfiltered = unfiltered
        url = unfiltered.storage_url.rpartition('/')[0]
        self.hidden = Client(
            f'{url}/{hidden_account(unfiltered.account)}', unfiltered.token
        )

    def layout_ids(self, container: str) -> list[str]:
        """Return the ids of all layouts that have shards."""
        names = map(parse_backing, self.shards(container))
        return sorted({name.layout_id for name in names})

    def shard_name(self, container: str, shard: int) -> str:
        """Return the name of a shard of a container's latest layout."""
        layout_id = self.layout_ids(container)[-1]
        return backing_container(container, layout_id, shard)

    def _shard(self, method: str, container: str, shard: int, **headers):
        return self.hidden.request(
            method,
            self.shard_name(container, shard),
            headers={**RESERVED_NAMES, **headers},
        )

    def put_shard(self, container: str, name: str, **headers) -> None:
        """Create a backing container."""
        headers = {k.replace('_', '-'): v for k, v in headers.items()}
        answer = self.hidden.put(name, headers={**RESERVED_NAMES, **headers})
        assert answer.status == 201

    def delete_shard(self, container: str, shard: int) -> None:
        assert self._shard('DELETE', container, shard).status == 204

    def head_shard(self, container: str, shard: int) -> Answer:
        return self._shard('HEAD', container, shard)

    def list_shard(self, container: str, shard: int) -> list[str]:
        """Return the names that a shard lists."""
        answer = self.hidden.get(
            self.shard_name(container, shard),
            query={'format': 'json'},
            headers=RESERVED_NAMES,
        )
        return answer.names()

    def latest_shards(self, container: str) -> list[str]:
        """Return the names of the shards of the latest layout."""
        names = self.shards(container)
        latest = max(parse_backing(name).layout_id for name in names)
        return [n for n in names if parse_backing(n).layout_id == latest]

    def list_all_shards(self, container: str) -> list[str]:
        """Return the names that the shards of the latest layout list."""
        names = []
        for shard in self.latest_shards(container):
            answer = self.hidden.get(
                shard, query={'format': 'json'}, headers=RESERVED_NAMES
            )
            names += answer.names()
        return sorted(names)

    def root_names(self, container: str) -> list[str]:
        """Return the names that the root lists: strays."""
        answer = self._unfiltered.get(
            container, query={'format': 'json'}, headers=RESERVED_NAMES
        )
        return answer.names()

    def delete_root(self, container: str) -> None:
        assert self._unfiltered.delete(container).status == 204

    def has_root(self, container: str) -> bool:
        return self._unfiltered.head(container).status == 204

    def shards(self, container: str) -> list[str]:
        """Return the names of a container's shards, of all its layouts."""
        answer = self.hidden.get(
            query={'format': 'json', 'prefix': backing_prefix(container)},
            headers=RESERVED_NAMES,
        )
        if answer.status == 404:
            return []
        # Object versioning adds names that it takes for versions containers.
        prefix = backing_prefix(container)
        return [
            name
            for name in answer.names()
            if name.startswith(prefix) and parse_backing(name)
        ]

    def shard_indices(self, container: str) -> list[int]:
        """Return the indices of a container's shards, of all its layouts."""
        return sorted(parse_backing(n).shard for n in self.shards(container))

    def forget(self, container: str) -> None:
        """Have the proxies forget what they know of a container."""
        assert self._unfiltered.post(container).status == 204


def name_in_shard(shard: int, count: int) -> str:
    """Return an object name that belongs to a shard."""
    return next(
        name
        for name in map('object-{}'.format, range(10_000))
        if shard_of(name, count) == shard
    )


def write_record(
    cluster: Cluster, account: str, container: str, record: str
) -> None:
    """Write a layout record into the databases of a root."""
    write_metadata(cluster, account, container, RECORD_HEADER, record)


def write_metadata(
    cluster: Cluster, account: str, container: str, header: str, value: str
) -> None:
    """Write a header, even an internal one, into a container's databases."""
    for path in databases(cluster, account, container):
        written = (value, Timestamp.now().internal)
        ContainerBroker(str(path)).update_metadata({header: written})


def put_rows(
    cluster: Cluster,
    account: str,
    container: str,
    names: list[str],
    at: float | None = None,
) -> None:
    """Write rows of empty objects into the databases of a container.

    :param at: the time of the uploads, now by default
    """
    created_at = Timestamp(at or time.time()).internal
    rows = [
        {
            'name': name,
            'created_at': created_at,
            'size': 0,
            'content_type': 'application/octet-stream',
            'etag': EMPTY_ETAG,
            'deleted': 0,
            'storage_policy_index': 0,
        }
        for name in names
    ]
    for path in databases(cluster, account, container):
        ContainerBroker(str(path)).merge_items(rows)


def forget_rows(
    cluster: Cluster, account: str, container: str, names: list[str]
) -> None:
    """Delete rows and tombstones from a container's databases."""
    for path in databases(cluster, account, container):
        with ContainerBroker(str(path)).get() as connection:
            for name in names:
                connection.execute('DELETE FROM object WHERE name = ?', [name])
            connection.commit()


def databases(
    cluster: Cluster, account: str, container: str
) -> Iterator[Path]:
    """Return the databases of all replicas of a container."""
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
    """Return a client of a cluster's memcached."""
    port = cluster.servers['memcached'].port
    return MemcacheRing([f'127.0.0.1:{port}'], logger=get_logger({}))
