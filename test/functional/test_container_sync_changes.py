# SPDX-License-Identifier: Apache-2.0
"""Changes of layout while containers of two clusters sync to each other."""

import contextlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from shardmw_saio import Cluster

from test.functional.conftest import SHARD_COUNT_HEADER
from test.functional.operating import Admin, wait_for_phase, wait_until
from test.functional.syncing import (
    Container,
    Pair,
    Side,
    errors,
    make_pair,
    send,
    sync,
    two_clusters,
)

# Rows that returned to a root are refused in every pass, one after the other.
# A pass must have the time for all of them.
CONTAINER_TIME = '20'

# The daemons revisit a container within this time, or within this many times
# the longest pass so far.
LEAST_SYNC_SECONDS = 5
PASSES_TO_WAIT = 3

#: The pause between two passes.
PAUSE_SECONDS = 1

SETTINGS = {
    'proxy-server.recheck_container_existence': '1',
    'proxy-server.recheck_account_existence': '1',
    'internal-client.node_timeout': '4',
    'internal-client.conn_timeout': '1',
    'container-sync.container_time': CONTAINER_TIME,
}
SETTLE = ('--settle-seconds', '1')

#: Clients are writing when a change begins.
DESPITE = '--despite-backlog'

OLD_NAMES = [f'old-{i}' for i in range(12)]
BUSY_NAMES = [f'busy-{i}' for i in range(12)]
SEED = int(time.time())


@pytest.fixture(scope='module')
def sides(tmp_path_factory) -> Iterator[tuple[Side, Side]]:
    with two_clusters(tmp_path_factory.mktemp('sync'), SETTINGS) as sides:
        yield sides


class Traffic:
    """Clients of both sides, one request at a time, and both daemons.

    :ivar expected: the objects that both sides must have in the end, by name
    :ivar pass_seconds: the longest pass of a daemon, by side
    """

    def __init__(self, sides: tuple[Side, Side], pair: Pair) -> None:
        self.sides = sides
        self.pair = pair
        self.expected: dict[str, bytes] = {}
        self.pass_seconds: dict[str, float] = {}
        self._random = random.Random(SEED)
        self._is_over = threading.Event()
        self._failures: list[BaseException] = []

    def put(self, name: str, body: bytes, to: int) -> None:
        assert self._status(to, 'PUT', name, body) in (201, 202)
        self.expected[name] = body

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Send requests and run the daemons during the block."""
        loops = [self._write]
        loops += [partial(self._send, side) for side in self.sides]
        threads = [
            threading.Thread(target=self._guarded, args=(what,))
            for what in loops
        ]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: len(self.pass_seconds) == len(self.sides))
            yield
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()
        assert self._failures == []

    def check(self) -> None:
        """Check that both sides have the results of the last writes."""
        sync(self.sides)
        print(*errors(self.sides), sep='\n')
        assert self.pair.here.bodies() == self.expected
        assert self.pair.there.bodies() == self.expected
        self.pair.assert_alike()

    def _guarded(self, what: Callable) -> None:
        try:
            while not self._is_over.is_set():
                what()
        except BaseException as err:
            self._failures.append(err)

    def _write(self) -> None:
        """Send one request to one side."""
        name = self._random.choice(BUSY_NAMES)
        to = self._random.randrange(2)
        if self._random.random() < 0.7:
            self.put(name, f'{name} {time.time()}'.encode(), to)
        else:
            assert self._status(to, 'DELETE', name) in (204, 404)
            self.expected.pop(name, None)
        time.sleep(0.05)

    def _status(
        self, to: int, method: str, name: str, body: bytes | None = None
    ) -> int:
        """Return the status of a request for an object.

        Send it again if the only object server failed: Swift's answers 503 if
        a daemon replaces a file that the request has found. Print the
        servers' log lines of the failed request.
        """
        container = self.pair[to]
        client, cluster = container.side.client, container.side.cluster
        while True:
            answer = client.request(method, container.name, name, body=body)
            if answer.status < 500:
                return answer.status
            lines = logged(cluster, answer.headers['x-trans-id'])
            print(method, name, answer, *lines, sep='\n')
            failed = re.compile(rf'object-server: .*"{method} /\S+" 5\d\d ')
            assert any(map(failed.search, lines)), (method, name, answer)

    def _send(self, side: Side) -> None:
        began = time.monotonic()
        send(side)
        took = time.monotonic() - began
        longest = max(took, self.pass_seconds.get(side.name, 0))
        self.pass_seconds[side.name] = longest
        time.sleep(PAUSE_SECONDS)

    @property
    def sync_seconds(self) -> str:
        """Return how long the daemons may take to revisit a container."""
        longest = max(self.pass_seconds.values())
        return str(max(LEAST_SYNC_SECONDS, PASSES_TO_WAIT * longest))


@pytest.fixture
def traffic(sides, kinds) -> Traffic:
    """A pair of containers whose objects have already been sent."""
    traffic = Traffic(sides, make_pair(sides, kinds))
    for i, name in enumerate(OLD_NAMES):
        traffic.put(name, name.encode(), i % 2)
    traffic.check()
    return traffic


def reshard(traffic: Traffic, shards: int) -> None:
    """Change the shard count of the container on this side."""
    here = traffic.pair.here
    admin = Admin(here.side.cluster)
    options = (*SETTLE, '--sync-seconds', traffic.sync_seconds, DESPITE)
    ran = admin('reshard', admin_name(here), str(shards), *options)
    assert ran.returncode == 0, ran.stderr


CHANGES = [
    ('plain-to-sharded', 4),
    ('sharded-to-plain', 7),
    ('sharded-to-sharded', 2),
]


@pytest.mark.parametrize(('kinds', 'shards'), CHANGES)
def test_last_write_wins_during_a_change(traffic, kinds, shards):
    with traffic.running():
        reshard(traffic, shards)
        time.sleep(2)
    traffic.check()
    shown = traffic.pair.here.ask('HEAD').headers
    assert int(shown.get(SHARD_COUNT_HEADER.lower(), 0)) == shards


@pytest.mark.parametrize('kinds', ['plain-to-plain'])
def test_container_that_becomes_plain_again_goes_on_syncing(traffic):
    with traffic.running():
        for shards in (4, 0):
            reshard(traffic, shards)
            shown = traffic.pair.here.ask('HEAD').headers
            assert int(shown.get(SHARD_COUNT_HEADER.lower(), 0)) == shards
    traffic.put('at last', b'x', 0)
    traffic.check()


@pytest.mark.parametrize('kinds', ['plain-to-sharded', 'sharded-to-plain'])
def test_cancelled_change_loses_nothing(traffic):
    here = traffic.pair.here
    admin, name = Admin(here.side.cluster), admin_name(here)
    never = ('--settle-seconds', '1000')
    with traffic.running():
        sync = ('--sync-seconds', traffic.sync_seconds)
        started = admin.start('reshard', name, '3', DESPITE, *never, *sync)
        try:
            wait_for_phase(started, 'settling')
        finally:
            started.kill()
            started.communicate()
        # The daemons run while the rows return.
        slowly = ('--rows-per-second', '5')
        cancelled = admin('cancel', name, *SETTLE, *sync, *slowly)
        assert cancelled.returncode == 0, cancelled.stderr
    traffic.put('at last', b'x', 0)
    traffic.check()


def logged(cluster: Cluster, transaction: str) -> list[str]:
    """Return the servers' log lines of a transaction."""
    return [
        line
        for server in cluster.servers
        for line in cluster.log_path(server).read_text().splitlines()
        if transaction in line
    ]


def admin_name(container: Container) -> str:
    """Return a container's name for ``shardmw-admin``."""
    return f'{container.side.client.account}/{container.name}'
