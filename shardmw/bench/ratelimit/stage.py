# SPDX-License-Identifier: Apache-2.0
"""What experiments are made on: clusters, containers, loads."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from shardmw.bench.load import stage
from shardmw.bench.load.definition import Load
from shardmw.bench.load.sources import Uploads
from shardmw.bench.names import one_name_each
from shardmw.bench.ratelimit.limits import (
    SECRET_BYTES,
    base_settings,
    limit_settings,
    without_unset,
)
from shardmw.bench.targets.account import Account
from shardmw.saio import Cluster, ClusterOptions

#: Time for a proxy to begin to work, after its start.
_SETTLE_SECONDS = 0.5

_FIRST_OBJECT = 'first'


@dataclass(frozen=True)
class Bed:
    """A cluster that is up, and the account that is written to."""

    cluster: Cluster
    account: Account

    def limit(
        self, limiter: str | None, rate: float | None, least_size: int = 0
    ) -> None:
        """Set a limit in the place of the one before.

        See :func:`shardmw.bench.ratelimit.limits.limit_settings`.
        """
        if self.cluster.reconfigure(limit_settings(limiter, rate, least_size)):
            self.settle()

    def settle(self) -> None:
        """Have each proxy do what it does only once."""
        for url in self.account.proxy_urls:
            own = replace_first(self.account, url)
            own.store(own.create(None), _FIRST_OBJECT)
        time.sleep(_SETTLE_SECONDS)

    def filled(self, shards: int | None) -> str:
        """A new container that is known to hold an object in each shard.

        Swift's filter limits no container that seems to be empty.
        """
        container = self.account.create(shards)
        for name in one_name_each(shards or 1, _FIRST_OBJECT):
            self.account.store(container, name)
        self.account.refresh(container)
        return container


class Stage(stage.Stage):
    """Where all experiments are made: on clusters with limits."""

    @contextlib.contextmanager
    def bed(
        self,
        limiter: str | None = None,
        rate: float | None = None,
        least_size: int = 0,
    ) -> Iterator[Bed]:
        """A new cluster in a temporary folder, for a ``with`` block."""
        limits = limit_settings(limiter, rate, least_size)
        options = ClusterOptions(
            proxies=self.parameters.proxies,
            settings={
                **base_settings(self.parameters, os.urandom(SECRET_BYTES)),
                **without_unset(limits),
            },
        )
        with (
            tempfile.TemporaryDirectory(
                prefix='shardmw-bench-', ignore_cleanup_errors=True
            ) as path,
            Cluster(path, options) as cluster,
        ):
            bed = Bed(cluster, Account.login(cluster))
            bed.settle()
            yield bed

    def load(self, bed: Bed, container: str, **changes: object) -> Load:
        """The load that most experiments have: all clients write at once.

        :param changes: of the fields of a load
        """
        parameters = self.parameters
        load = Load(
            urls=bed.account.proxy_urls,
            token=bed.account.token,
            source=Uploads(
                bed.account.container_path(container), parameters.size
            ),
            clients=parameters.clients,
            seconds=parameters.seconds,
            on_refusal=parameters.on_refusal,
            backoff_seconds=parameters.backoff_seconds,
            drain_seconds=parameters.max_sleep_seconds + 10,
        )
        return replace(load, **changes)

    def begin(self, load: Load):
        """Begin a load: see :mod:`shardmw.bench.load.clients`."""
        return self.clients.begin(load)


def replace_first(account: Account, url: str) -> Account:
    """The account by way of another proxy."""
    return Account((url,), account.path, account.token)
