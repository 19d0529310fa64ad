# SPDX-License-Identifier: Apache-2.0
"""The clusters that tests run on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmw_saio import ClusterOptions

DEFAULT_SHARDS = 'shardmw.default_shards'

#: With fewer than two storage policies, tests of policies would be skipped.
_POLICIES = 2


@dataclass(frozen=True)
class Variant:
    """A kind of cluster.

    :param shards: the shards of every container that a test creates on the
                   sharded cluster
    :param about: the description in reports
    :param options: the options of both clusters
    """

    name: str
    shards: int
    about: str
    options: ClusterOptions = field(
        default_factory=lambda: ClusterOptions(policies=_POLICIES)
    )

    def cluster_options(
        self, is_sharded: bool, settings: Mapping[str, str]
    ) -> ClusterOptions:
        """Return the options of one of the two clusters.

        :param settings: the settings that the tests expect
        """
        shards = self.shards if is_sharded else 0
        return self.options.with_settings(
            {**settings, DEFAULT_SHARDS: str(shards)}
        )

    @property
    def has_balancer(self) -> bool:
        """Return True if requests go to several proxies in turn."""
        return self.options.proxies > 1


def _options(**changes: object) -> ClusterOptions:
    return ClusterOptions(policies=_POLICIES, **changes)


_ALL = (
    Variant('base', 4, 'one replica, one proxy'),
    Variant('n1', 1, 'one shard'),
    Variant('n32', 32, 'many shards'),
    Variant('encryption', 4, 'encryption at rest', _options(encryption=True)),
    Variant(
        'replicas', 4, 'three replicas, on three nodes', _options(replicas=3)
    ),
    Variant(
        'proxies',
        4,
        'two proxies, request by request in turn',
        _options(proxies=2),
    ),
)

#: The variants by name, in the order in which they run.
VARIANTS = {each.name: each for each in _ALL}


def plain_twin(variant: Variant) -> Variant:
    """Return the first variant with the same plain cluster."""
    return next(v for v in _ALL if v.options == variant.options)
