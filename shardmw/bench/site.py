# SPDX-License-Identifier: Apache-2.0
"""Where it is measured: a cluster, and containers made for it.

A site is the benchmark's own cluster (:func:`embedded_site`) or one that an
operator runs (:func:`remote_site`). What it made, it takes away again, and
it touches nothing else.
"""

import contextlib
from collections.abc import Callable, Iterator

from shardmw.bench.account import Account
from shardmw.bench.auth import Auth
from shardmw.bench.clients import Clients
from shardmw.bench.kinds import Kind
from shardmw.bench.load import Load, Outcome
from shardmw.bench.names import Names
from shardmw.saio import Cluster, ClusterOptions

#: Runs a load to its end: ``run(load, label)``, and may show its progress.
Runner = Callable[[Load, str], Outcome]


class Site:
    """A cluster to measure on; made by the two functions below.

    :param cluster: None if it is not the benchmark's own
    """

    account: Account
    cluster: Cluster | None

    @property
    def is_own(self) -> bool:
        """Whether it is the benchmark's own, whose disks it may look at."""
        return self.cluster is not None

    @property
    def urls(self) -> tuple[str, ...]:
        """Of the proxies, as a load takes them."""
        raise NotImplementedError

    @property
    def token(self) -> str:
        """What requests are authorized with."""
        raise NotImplementedError

    @property
    def is_insecure(self) -> bool:
        """Whether certificates are not checked."""
        raise NotImplementedError

    def container_path(self, container: str) -> str:
        """The quoted path of a container, as sources take it."""
        raise NotImplementedError

    def make(
        self,
        kind: Kind,
        names: Names | None = None,
        policy: str | None = None,
        name: str | None = None,
    ) -> str:
        """Make an empty container, ready for loads; returns its name.

        :param names: what it is going to hold: a native container is split
                      so that they fall evenly; without them so that uploads
                      of spread names do. Other kinds need none.
        :param policy: a storage policy; the cluster's default if None
        :param name: the very name; one that's not taken if None
        :raises BenchError: if it can't be made, holds objects already, or
                            the cluster can't have its kind
        """
        raise NotImplementedError

    def fill(
        self, container: str, kind: Kind, names: Names, first: int = 0
    ) -> None:
        """Put rows for names into the databases, without objects.

        :param first: the names before this one are there already
        :raises BenchError: if the cluster is not the benchmark's own
        """
        raise NotImplementedError

    def populate(
        self,
        container: str,
        names: Names,
        size: object = 1,
        clients: int = 16,
    ) -> None:
        """Upload objects of these names.

        :param size: bytes, or a :class:`shardmw.bench.units.SizeMix`
        :param clients: that upload at once
        :raises BenchError: if some can't be uploaded
        """
        raise NotImplementedError

    def remove(self, container: str) -> None:
        """Empty a container that this site made, and delete it.

        What a cluster of the benchmark's own was filled with goes with it.

        :raises BenchError: if it can't be emptied
        """
        raise NotImplementedError

    def cleanup(self) -> None:
        """Remove all containers that this site made and that are there.

        :raises BenchError: if one can't be emptied; the others are
        """
        raise NotImplementedError


@contextlib.contextmanager
def embedded_site(
    options: ClusterOptions, clients: Clients, run: Runner | None = None
) -> Iterator[Site]:
    """A new cluster in a temporary folder, for a ``with`` block.

    :param run: in the place of ``clients.run``, to show progress
    """
    raise NotImplementedError
    yield


@contextlib.contextmanager
def remote_site(
    auth: Auth,
    clients: Clients,
    container_prefix: str = 'shardmw-bench',
    run: Runner | None = None,
) -> Iterator[Site]:
    """A cluster that somebody runs, for a ``with`` block.

    It does not clean up by itself: see :meth:`Site.cleanup`.

    :param container_prefix: what the names of containers begin with
    :param run: in the place of ``clients.run``, to show progress
    :raises BenchError: if the login fails, or the cluster is away
    """
    raise NotImplementedError
    yield
