# SPDX-License-Identifier: Apache-2.0
"""A cluster to measure, and the containers made on it.

A site is a temporary cluster (:func:`embedded_site`) or an existing one
(:func:`remote_site`). It removes what it made, and nothing else.
"""

import contextlib
import functools
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from shardmw_saio import Cluster, ClusterOptions

from shardmw_bench import signals
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import Kind
from shardmw_bench.load.outcome import Outcome, errors_of
from shardmw_bench.load.sources import Deletes, Load, NamedUploads, Source
from shardmw_bench.names import Names, one_name_each
from shardmw_bench.options import MOST_SHARDS
from shardmw_bench.preload import preload, stagger
from shardmw_bench.results.summary import errors_text
from shardmw_bench.targets import native
from shardmw_bench.targets.account import Account, Auth
from shardmw_bench.units import SizeMix

#: Runs a load to its end: ``run(load, label)``, and may show its progress.
Runner = Callable[[Load, str], Outcome]

DEFAULT_PREFIX = 'shardmw-bench'

# Clients that fill and empty containers.
_CLIENTS = 16
_ATTEMPTS = 3

# A container may be refused as not empty until its servers agree.
_DELETE_PAUSES_SECONDS = (0, 0.5, 1, 2, 5, 10)

# The prefix of names of objects that do not exist.
_MISSING = 'shardmw-bench-misses-this'

# How long the one-time work of a proxy takes.
_SETTLE_SECONDS = 0.5

_SETTINGS = {
    # containers of any number of shards are compared
    'shardmw.client_max_shards': str(MOST_SHARDS),
    # one run of the sharder splits a container, and not two ranges of it
    'container-sharder.cleave_batch_size': '100000',
    # all servers are up: one that is busy with large objects must be slow in
    # the figures, and not fail
    'proxy-server.node_timeout': '60',
    'proxy-server.recoverable_node_timeout': '60',
    # a proxy that does not reach memcached in time answers 401
    'memcache.connect_timeout': '60',
    'memcache.pool_timeout': '60',
    # the marks of writes last longer by this; sums of HEADs are cached after
    'memcache.io_timeout': '10',
}


class Site:
    """A cluster to measure.

    :param run: runs the loads that fill and empty containers
    :param prefix: of the names of containers
    :param cluster: None if the cluster is not temporary
    """

    def __init__(
        self,
        account: Account,
        run: Runner,
        prefix: str,
        cluster: Cluster | None = None,
    ) -> None:
        self.account = account
        self.urls = account.proxy_urls
        self.container_path = account.container_path
        self.cluster = cluster
        self.is_own = cluster is not None
        self._run = run
        self._prefix = prefix
        #: the kinds of the containers that are there, by name
        self._made: dict[str, Kind] = {}
        self._count = 0

    @property
    def containers(self) -> tuple[str, ...]:
        """Return the containers that this site made and did not remove."""
        return tuple(self._made)

    @property
    def swift_version(self) -> str:
        """Return the version of Swift, or '' if the cluster hides it."""
        return str(self._features.get('swift', {}).get('version', ''))

    @property
    def longest_page(self) -> int:
        """Return the largest limit of a listing."""
        swift = self._features.get('swift', {})
        return int(swift.get('container_listing_limit', 10_000))

    @cached_property
    def _features(self) -> Mapping[str, Mapping]:
        return self.account.features()

    def load(self, source: Source, clients: int, **fields: object) -> Load:
        """Return a load for this site; ``fields`` are fields of ``Load``."""
        return Load(
            *(self.urls, self.account.token, source, clients),
            insecure=self.account.is_insecure,
            **fields,
        )

    def make(
        self,
        kind: Kind,
        names: Names | None = None,
        policy: str | None = None,
        name: str | None = None,
    ) -> str:
        """Make an empty container, and return its name.

        :param names: the names that it is going to hold, to split a native
                      container evenly; without them, it is split for spread
                      names
        :param name: None for a free one
        :raises BenchError: if the container exists, or cannot be made
        """
        self._check(kind)
        self._count += 1
        name = name or f'{self._prefix}-{self._count:03d}-{kind.word}'
        if there := self.account.head(name):
            raise BenchError(
                f'container {name} is in use, with {there.objects} objects: '
                'choose another name, because the benchmark writes only to '
                'containers that it made'
            )
        # an interrupted PUT could make a container that is never removed
        with signals.held_back():
            self._made[name] = kind
            self.account.put(name, kind, policy)
        head = self.account.head(name)
        shards = head.shards if head else None
        if shards != kind.shards:
            raise BenchError(
                f'container {name} has {shards or "no"} shards and not '
                f'{kind.shards or "none"}: check default_shards and '
                'shard_rules of the cluster'
            )
        if kind.is_native:
            bounds = native.spread_bounds(kind.parts)
            if names is not None:
                bounds = native.even_bounds(names, kind.parts)
            account = self.account.name
            native.shard_natively(self.cluster, account, name, bounds)
            # the proxies cached that it was not sharded
            self.account.refresh(name)
        return name

    def fill(
        self, container: str, kind: Kind, names: Names, first: int = 0
    ) -> None:
        """Put rows for names into the databases, without objects.

        :param first: the index of the first name that has no row yet
        :raises BenchError: if the cluster is not temporary
        """
        if not self.is_own:
            raise BenchError(
                'rows can only be put into databases of the temporary '
                'cluster: upload objects, or leave the URL out'
            )
        preload(self.cluster, self.account.name, container, kind, names, first)
        self._settle_usage(container)

    def populate(
        self,
        container: str,
        names: Names,
        size: int | SizeMix = 1,
        clients: int = _CLIENTS,
    ) -> None:
        """Upload objects of these names; raise BenchError if some fail."""
        self._do_all(
            functools.partial(NamedUploads, size=size),
            *(container, names, f'upload into {container}', clients),
        )
        self._settle_usage(container)

    def reconfigure(self, settings: Mapping[str, str | None]) -> None:
        """Change settings of the temporary cluster; None removes one."""
        if self.cluster.reconfigure(settings):
            _settle(self.account)

    def prepare(
        self, container: str, writes: bool, phase: float | None
    ) -> None:
        """Prepare a container for a load, as if it had been in use.

        The proxies look up what they look up once a minute. On a temporary
        cluster, :func:`~shardmw_bench.preload.stagger` puts rows beside the
        databases before writes.

        :param phase: how full the files beside the databases are, from 0 to
                      below 1; different for each round. None: they stay
                      empty, as listings leave them
        """
        kind = self._made[container]
        shards = (kind.shards if writes else None) or 1
        self.account.miss(container, one_name_each(shards, _MISSING), writes)
        if writes and phase is not None and self.is_own:
            stagger(self.cluster, self.account.name, container, kind, phase)

    def remove(self, container: str) -> None:
        """Empty and delete a container; raise BenchError if that fails."""
        if container not in self._made:
            raise ValueError(f'{container} was not made here')
        for pause in _DELETE_PAUSES_SECONDS:
            time.sleep(pause)
            status = 404
            if self.account.head(container) is not None:
                # each time: requests of an interrupted load may still come
                if names := self.account.names(container):
                    label = f'empty {container}'
                    self._do_all(Deletes, container, names, label, good=404)
                self._settle_usage(container)
                status = self.account.delete(container)
            if status in (204, 404):
                del self._made[container]
                return
        raise BenchError(
            f'container {container} cannot be deleted: the response was '
            f'{status}'
        )

    def cleanup(self) -> None:
        """Remove all containers that this site made on an existing cluster.

        :raises BenchError: if the token expired, or some cannot be emptied
        """
        if self._made:
            self.account.renew()
        failures = []
        for container in self.containers:
            try:
                self.remove(container)
            except BenchError as err:
                failures.append(str(err))
        if failures:
            left = ', '.join(self._made)
            raise BenchError(f'{"; ".join(failures)}; left there: {left}')

    def _check(self, kind: Kind) -> None:
        if kind.is_native and not self.is_own:
            raise BenchError(
                'native sharding needs the temporary cluster, whose '
                'container-sharder it runs: add --native 0'
            )
        if kind.shards is None:
            return
        feature = self._features.get('shardmw', {})
        most = feature.get('client_max_shards', feature.get('max_shards'))
        if not most:
            raise BenchError(
                f'{self.urls[0]} has no shardmw filter: add it to the '
                "proxies' pipeline, or measure with --shards 0"
            )
        if kind.shards > int(most):
            raise BenchError(
                f'{self.urls[0]} allows up to {most} shards, and not '
                f'{kind.shards}: raise client_max_shards there, or ask for '
                'fewer'
            )

    def _settle_usage(self, container: str) -> None:
        """Update the usage that the container and the proxies know."""
        if self._made[container].is_native:
            native.report_usage(self.cluster)
        self.account.refresh(container)

    def _do_all(
        self,
        source_of: Callable[[str, Names], Source],
        container: str,
        names: Names,
        label: str,
        clients: int = _CLIENTS,
        good: int = 0,
    ) -> None:
        """Send a request for each name, and repeat those that fail.

        :param source_of: makes requests for names in the path of a container
        :param good: another status that is no failure
        """
        path, left = self.container_path(container), names
        for _ in range(_ATTEMPTS):
            count = len(left)
            source = source_of(path, left)
            load = self.load(source, min(clients, count), count=count)
            outcome = self._run(load, label)
            left = sorted(
                left[sample.number]
                for sample in outcome.samples
                if not sample.is_admitted and sample.status != good
            )
            if not left:
                return
        failed = errors_text(errors_of(outcome.table['status'].tolist()))
        raise BenchError(
            f'{label}: {len(left)} of {len(names)} objects failed ({failed})'
        )


@contextlib.contextmanager
def embedded_site(options: ClusterOptions, run: Runner) -> Iterator[Site]:
    """Start a cluster in a temporary folder for a ``with`` block."""
    options = options.with_settings({**_SETTINGS, **options.settings})
    with (
        tempfile.TemporaryDirectory(
            prefix='shardmw-bench-', ignore_cleanup_errors=True
        ) as path,
        Cluster(path, options) as cluster,
    ):
        account = Account.of_cluster(cluster)
        _settle(account)
        yield Site(account, run, 'bench', cluster)


def remote_site(
    auth: Auth, run: Runner, container_prefix: str = DEFAULT_PREFIX
) -> Site:
    """Return the site of an existing cluster, which the caller cleans up.

    :raises BenchError: if the login fails, or the cluster does not answer
    """
    account = Account(auth)
    account.check()
    # unlike the names of other runs
    return Site(account, run, f'{container_prefix}-{secrets.token_hex(3)}')


def _settle(account: Account) -> None:
    """Make each proxy do its one-time work."""
    account.warm_up('first')
    time.sleep(_SETTLE_SECONDS)
