# SPDX-License-Identifier: Apache-2.0
"""The Swift cluster that the commands work on."""

import configparser
from pathlib import Path as FilePath
from typing import NamedTuple

from swift.common import direct_client
from swift.common.exceptions import ClientException
from swift.common.internal_client import InternalClient
from swift.common.ring import RingData
from swift.common.swob import Request
from swift.common.utils import (
    generate_trans_id,
    get_logger,
    hash_path,
    storage_directory,
)
from swift.common.wsgi import ConfigFileError
from swift.proxy.server import Application

from shardmw.backend.answers import require_success
from shardmw.backend.config import Options
from shardmw.backend.containers import FLOOR_HEADER, LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.backend.roots import RootState, read_root
from shardmw.backend.rows import row_at
from shardmw.core.paths import Path, Place
from shardmw.core.placement import (
    hidden_account,
    is_reserved,
    versions_container,
)
from shardmw.proxy.filter import ShardMiddleware
from shardmw.reshard.errors import AdminError
from shardmw.reshard.swift_folder import in_one_line
from shardmw.swift.concurrency import Timeout
from shardmw.swift.loading import pipeline_of

USER_AGENT = 'shardmw-admin'

#: How many shards to ask at once.
CONCURRENCY = 8

#: Errors whose text alone says what is wrong with a configuration.
_TELLING = (
    OSError,
    LookupError,
    ValueError,
    ConfigFileError,
    configparser.Error,
)


def database_path(partition: int, place: Place) -> str:
    """Return the path of a container's database, below the device."""
    name_hash = hash_path(*place)
    folder = storage_directory('containers', partition, name_hash)
    return f'{folder}/{name_hash}.db'


class Replica(NamedTuple):
    """One of the places where a database or an object should be.

    :param has_it: True if it is there, None if the server did not answer
    """

    server: str
    device: str
    has_it: bool | None


class SwiftCluster:
    """A Swift cluster, read through the proxy app without the filter.

    :param unfiltered: the configuration of the app if its pipeline lacks the
                       filter, None otherwise
    :param options: those of the filter
    :param client: sends requests through the filter
    """

    def __init__(
        self,
        app: Application,
        unfiltered: FilePath | None = None,
        options: Options | None = None,
        client: InternalClient | None = None,
    ) -> None:
        self.app = app
        self.options = options
        self.client = client
        self._unfiltered = unfiltered
        logger = get_logger({}, USER_AGENT)
        self.backend = Backend(app, logger, CONCURRENCY)
        trans_id = generate_trans_id(f'-{USER_AGENT}')
        self._env = Request.blank('/', {'swift.trans_id': trans_id}).environ
        self.base = self.backend.owner_env(self.env)

    @property
    def env(self) -> dict:
        """Return the environment of a new request.

        Swift caches account and container info in it. The daemon runs for
        months, so it takes a new environment for each container.
        """
        return dict(self._env)

    @property
    def info_cache_seconds(self) -> float:
        """Return how long Swift caches container and account info, at most."""
        return max(
            self.app.recheck_container_existence,
            self.app.recheck_account_existence,
        )

    @property
    def kept_seconds(self) -> float:
        """Return how long proxies cache what they read from shards."""
        return self.options.head_cache_seconds if self.options else 0

    def check_filter(self) -> None:
        """Check that the configuration has the filter.

        Swift's daemons use the same file. Without the filter, they leave rows
        in wrong places, or do not remove them.

        :raises AdminError: if the filter is missing
        """
        if self._unfiltered:
            raise AdminError(
                f'{self._unfiltered}: the pipeline has no filter shardmw: '
                'add it as its last filter, as internal-client.conf-sample '
                'has it'
            )

    def check_account(self, account: str) -> None:
        """Check that an account or its hidden account exists.

        :raises AdminError: if neither does
        """
        names = (account, hidden_account(account))
        if not any(self.backend.account_exists(self.env, n) for n in names):
            raise AdminError(f'{account}: no such account')

    def root(self, path: Path) -> RootState:
        """Return the state of a root that its replicas prove.

        :raises AdminError: if it does not exist
        :raises BackendError: if too few replicas answer
        :raises LayoutError: if its record cannot be read
        """
        root = read_root(self.backend, self.env, path)
        if not root.exists:
            raise AdminError(f'{path.place}: no such container')
        return root

    def with_versions(self, path: Path) -> list[Path]:
        """Return a container, and the one of its old versions if it exists."""
        if is_reserved(path.container):
            return [path]
        versions = path.of_container(versions_container(path.container))
        root = read_root(self.backend, self.env, versions)
        return [path, versions] if root.exists else [path]

    def set_floor(self, path: Path, shards: int) -> None:
        """Set the least number of shards that ``auto_shrink`` leaves.

        :param shards: 0 for any number
        :raises BackendError: if it cannot be stored
        """
        headers = {FLOOR_HEADER: str(shards) if shards else ''}
        answer = self.backend.send(
            self.base, 'POST', path.to_wsgi(), headers=headers
        )
        require_success([answer])

    def logical(self, path: Path, root: RootState) -> LogicalContainer | None:
        """Return the sharded container of a root, None if it is plain."""
        if root.layout is None:
            return None
        return LogicalContainer(path, root.answer.info(), root.layout)

    def primaries(self, place: Place) -> tuple[int, list[dict]]:
        """Return the partition and the primary nodes of a container."""
        return self.app.container_ring.get_nodes(*place)

    def row_replicas(
        self, place: Place, name: str
    ) -> tuple[int, list[Replica]]:
        """Return the partition and the replicas of an object's row.

        :param place: the container whose database has the row
        """
        part, nodes = self.primaries(place)

        def has_row(node: dict) -> bool:
            return row_at(node, part, place, name)[1] is not None

        return part, [_replica(node, has_row) for node in nodes]

    def object_replicas(
        self, policy_index: int, place: Place, name: str
    ) -> tuple[int, list[Replica]]:
        """Return the partition and the replicas of an object."""
        ring = self.app.get_object_ring(policy_index)
        part, nodes = ring.get_nodes(*place, name)
        headers = {'X-Backend-Storage-Policy-Index': str(policy_index)}

        def has_object(node: dict) -> bool:
            direct_client.direct_head_object(
                node, part, *place, name, headers=headers
            )
            return True

        return part, [_replica(node, has_object) for node in nodes]


def open_cluster(conf: FilePath, swift_dir: FilePath) -> SwiftCluster:
    """Return the cluster of a configuration.

    :param conf: the file ``internal-client.conf``
    :param swift_dir: the folder of ``swift.conf`` and the rings
    :raises AdminError: if the file does not exist or cannot be used
    """
    if not conf.is_file():
        raise AdminError(f'{conf}: no such file: name one with --conf')
    try:
        client = InternalClient(
            str(conf.absolute()),
            USER_AGENT,
            1,
            global_conf={'swift_dir': str(swift_dir.absolute())},
        )
    except Exception as err:
        _check_rings(swift_dir)
        raise AdminError(f'{conf}: {_reason(err)}') from err
    pipeline = pipeline_of(client.app)
    for each in pipeline:
        if isinstance(each, ShardMiddleware):
            return SwiftCluster(
                pipeline[-1], options=each.options, client=client
            )
    return SwiftCluster(pipeline[-1], conf)


def _check_rings(swift_dir: FilePath) -> None:
    """Check that the rings of a folder can be read.

    :raises AdminError: names the first ring that cannot be read
    """
    for path in sorted(swift_dir.glob('*.ring.gz')):
        try:
            RingData.load(str(path))
        except Exception as err:
            raise AdminError(f'{path}: damaged: {in_one_line(err)}') from err


def _reason(err: Exception) -> str:
    """Return the text of Swift's error, with its type if that helps."""
    text = in_one_line(err)
    if isinstance(err, _TELLING):
        return text
    return f'cannot be used: {type(err).__name__}: {text}'


def server_of(node: dict) -> str:
    """Return the address of a node's server."""
    return f'{node["ip"]}:{node["port"]}'


def _replica(node: dict, has_it) -> Replica:
    try:
        found = has_it(node)
    except ClientException as err:
        found = False if err.http_status == 404 else None
    except (Exception, Timeout):
        found = None
    return Replica(server_of(node), node['device'], found)
