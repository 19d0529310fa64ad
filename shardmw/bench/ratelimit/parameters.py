# SPDX-License-Identifier: Apache-2.0
"""What the experiments are made with. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from shardmw.bench.load import RETRY_AFTER

EXPERIMENTS = ('rates', 'seed', 'outage', 'operations', 'latency')


@dataclass(frozen=True)
class Parameters:
    """All of them; rates are writes a second of a backing container.

    :param clients: that write at once
    :param processes: that they are spread over
    :param proxies: of the cluster
    :param seconds: of each load; a phase of the outage takes as long
    :param size: of the objects, in bytes
    :param max_sleep_seconds: ``max_sleep_time_seconds`` of the filters
    :param buffer_seconds: ``rate_buffer_seconds`` of the filters
    :param on_refusal: see :class:`shardmw.bench.load.Load`
    :param backoff_seconds: likewise
    :param rates: limits of ``rates``
    :param shards: shard counts of ``rates``
    :param stock_rates: limits of Swift's own filter in ``rates``
    :param seed_rate: the limit of ``seed``
    :param seed_shards: the shard count of ``seed``
    :param rounds: how often ``seed`` is repeated
    :param middle_rate: the limit of ``outage`` and ``operations``
    :param middle_shards: the shard count of ``outage``, ``operations`` and
                          ``latency``
    :param pairs: how often ``latency`` is repeated
    :param requests: of one client, in each of these
    :param settings: of all clusters, as ``shardmw-saio up --set`` takes them
    """

    clients: int = 128
    processes: int = 2
    proxies: int = 2
    seconds: float = 15.0
    size: int = 1
    max_sleep_seconds: float = 1.0
    buffer_seconds: float = 5.0
    on_refusal: str = RETRY_AFTER
    backoff_seconds: float = 1.0
    rates: tuple[float, ...] = (5.0, 20.0, 100.0)
    shards: tuple[int, ...] = (1, 8, 32)
    stock_rates: tuple[float, ...] = (20.0,)
    seed_rate: float = 100.0
    seed_shards: int = 32
    rounds: int = 3
    middle_rate: float = 20.0
    middle_shards: int = 8
    pairs: int = 20
    requests: int = 50
    settings: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """What :meth:`from_json` takes."""
        return {**asdict(self), 'settings': dict(self.settings)}

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Parameters':
        """The parameters that :meth:`as_json` gave."""
        known = {each.name for each in fields(cls)}
        return cls(
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()
                if name in known
            }
        )
