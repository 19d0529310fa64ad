# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of rates: the operator, refusals and metrics.

A rate is one write in many seconds, and writes may not wait that long: the
first write of a test succeeds, and the others are refused.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from shardmw_saio import Cluster

from test.functional import conftest
from test.functional.backing import name_in_shard
from test.functional.client import Answer, Client
from test.functional.conftest import RESELLER_ADMIN, make_plain
from test.functional.test_metrics import Statsd

SHARDS = 2

#: Seconds for each write.
INTERVAL = 100

SLOW = f'{1 / INTERVAL}'

FIRST = name_in_shard(0, SHARDS)
SECOND = name_in_shard(1, SHARDS)

SLOW_DOWN = (498, b'Slow down')
RATE_HEADER = 'X-Container-Write-Ratelimit'

PATIENCE_SECONDS = 30


def login(cluster: Cluster, user: str) -> Client:
    return Client.login(cluster.auth_url, user, cluster.users[user])


def make_sharded(client: Client, **headers) -> str:
    """Create a sharded container; return its name."""
    return conftest.make_sharded(client, SHARDS, **headers)


MAKERS = {'plain': make_plain, 'sharded': make_sharded}


class Operator:
    """A reseller admin, who sets containers' rates.

    :param admin: a client that asks for the tests' account
    """

    def __init__(self, admin: Client) -> None:
        self.admin = admin

    @classmethod
    def of(cls, cluster: Cluster, client: Client) -> 'Operator':
        return cls(login(cluster, RESELLER_ADMIN).visiting(client))

    def set_rate(self, container: str, rate: str) -> None:
        """Set a container's own rate; an empty one removes it."""
        answer = self.admin.post(container, headers={RATE_HEADER: rate})
        assert answer.status == 204

    def fill(self, container: str, *names: str) -> None:
        """Store objects without a limit."""
        self.set_rate(container, 'unlimited')
        for name in names:
            assert self.admin.put(container, name, b'body').status == 201
        self.set_rate(container, '')


@contextmanager
def reconfigured(
    cluster: Cluster, settings: Mapping[str, str | None]
) -> Iterator[None]:
    """Change settings until the end of the block."""
    before = cluster.options.settings
    cluster.reconfigure(settings)
    yield
    cluster.reconfigure({name: before.get(name) for name in settings})


def lines_since(cluster: Cluster, server: str, start: int) -> list[str]:
    """Return the filter's lines in a server's log after an offset."""
    written = cluster.log_path(server).read_bytes()[start:].decode()
    return [line for line in written.splitlines() if 'shardmw: ' in line]


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, 'it does not happen'
        time.sleep(0.05)


def log_size(cluster: Cluster, server: str) -> int:
    return cluster.log_path(server).stat().st_size


def assert_refused(answer: Answer, slots: int = 1) -> None:
    """Check a refusal by a rate of one in INTERVAL seconds.

    :param slots: how many slots are taken
    """
    assert (answer.status, answer.body) == SLOW_DOWN
    seconds = int(answer.headers['retry-after'])
    assert (slots - 1) * INTERVAL < seconds <= slots * INTERVAL


class Meter(Statsd):
    """A statsd server that counts permits and other metrics."""

    def __init__(self) -> None:
        super().__init__()
        # A request's metrics arrive before its answer.
        self._socket.settimeout(0.02)

    def restart(self) -> None:
        """Drop the metrics so far."""
        self.counts()

    @property
    def permits(self) -> int:
        """Return how many permits were taken since the last call."""
        counts = self.counts()
        assert counts['ratelimit.alone'] == 0
        return counts['ratelimit.permits']
