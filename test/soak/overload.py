# SPDX-License-Identifier: Apache-2.0
"""``python -m test.soak.overload``: more listings than a proxy can handle.

Clients of one account list a container of many shards, all at the same time.
Clients of another account, and of another container in the same account,
upload objects meanwhile. More connections send a request now and then.
"""

import argparse
import asyncio
import bisect
import json
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlencode

import orjson
from shardmw_bench.kinds import sharded
from shardmw_bench.names import FlatNames
from shardmw_bench.preload import preload
from shardmw_bench.targets.usage import PROXY, processes_of, resident_bytes
from shardmw_saio import Cluster, ClusterOptions
from shardmw_saio.options import parse_setting

from test.functional.client import Client
from test.soak.wire import Connection

LISTED = 'listed'
WRITTEN = 'written'
SHARD_COUNT_HEADER = 'X-Container-Shard-Count'

#: Statuses that tell a client to retry.
LATER = (498, 503)
RETRY_SECONDS = 1

#: The time between two requests of an idle connection.
IDLE_SECONDS = 30

LOOK_SECONDS = 0.2
MEGABYTE = 1_000_000

#: How long the proxy has for the requests under way when the overload ends.
DRAIN_SECONDS = 60

#: The least share of their rate that other clients must keep.
LEAST_SHARE = 0.5


class Overload:
    """The clients of one run.

    :ivar statuses: the statuses of all responses, by kind of request
    :ivar wrong: the wrong responses, as text
    """

    def __init__(self, cluster: Cluster, options) -> None:
        self.options = options
        self.names = list(FlatNames(options.rows))
        self.statuses: dict[str, Counter] = defaultdict(Counter)
        self.wrong: list[str] = []
        self.acknowledged: dict[str, list[str]] = defaultdict(list)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.most_bytes = 0
        self._pids = processes_of(cluster, PROXY)
        self._users = {
            'same account': _login(cluster, 'test:tester'),
            'other account': _login(cluster, 'test2:tester2'),
        }
        self._chance = random.Random(options.seed)

    @property
    def lister(self) -> Client:
        return self._users['same account']

    def make(self, cluster: Cluster) -> None:
        """Create the containers."""
        shards = {SHARD_COUNT_HEADER: str(self.options.shards)}
        assert self.lister.put(LISTED, headers=shards).status == 201
        kind = sharded(self.options.shards)
        names = FlatNames(self.options.rows)
        preload(cluster, self.lister.account, LISTED, kind, names)
        for user in self._users.values():
            few = {SHARD_COUNT_HEADER: '8'}
            assert user.put(WRITTEN, headers=few).status == 201
        assert self.lister.head(LISTED).status == 204

    async def run(self) -> dict[str, object]:
        """Measure, and return the figures."""
        options = self.options
        figures: dict[str, object] = {'bytes before': self._resident()}
        looks = asyncio.create_task(self._look())
        others = options.connections - options.listers - 2 * options.writers
        until = time.monotonic() + options.quiet_seconds + options.seconds
        idle = [self._idle(until) for _ in range(max(0, others))]
        load = [asyncio.create_task(each) for each in idle]
        quiet = await self._write(options.quiet_seconds)
        figures['PUTs/s without overload'] = quiet
        load += [
            asyncio.create_task(self._list(until))
            for _ in range(options.listers)
        ]
        # Until all listers are connected.
        await asyncio.sleep(options.quiet_seconds / 2)
        busy = await self._write(until - time.monotonic())
        figures['PUTs/s with overload'] = busy
        figures['share'] = {
            who: busy[who] / quiet[who] for who in quiet if quiet[who]
        }
        done, late = await asyncio.wait(load, timeout=DRAIN_SECONDS)
        for task in done:
            task.result()
        for task in (*late, looks):
            task.cancel()
        figures['unanswered'] = len(late)
        figures['bytes at most'] = self.most_bytes
        figures['bytes after'] = self._resident()
        for who, user in self._users.items():
            await self._check_written(who, user)
        figures['answers'] = {
            what: {str(status): n for status, n in sorted(found.items())}
            for what, found in self.statuses.items()
        }
        figures['seconds'] = {
            what: _quantiles(found) for what, found in self.seconds.items()
        }
        figures['wrong'] = self.wrong
        return figures

    async def _look(self) -> None:
        while True:
            self.most_bytes = max(self.most_bytes, self._resident())
            await asyncio.sleep(LOOK_SECONDS)

    def _resident(self) -> int:
        return resident_bytes(self._pids)

    async def _write(self, seconds: float) -> dict[str, float]:
        """Upload to both accounts; return their rates."""
        done: Counter[str] = Counter()
        until = time.monotonic() + seconds
        began = time.monotonic()
        await asyncio.gather(
            *(
                self._upload(who, user, until, done)
                for who, user in self._users.items()
                for _ in range(self.options.writers)
            )
        )
        took = time.monotonic() - began
        return {who: done[who] / took for who in self._users}

    async def _upload(self, who, user, until: float, done: Counter) -> None:
        connection = Connection(user.storage_url, user.token)
        number = self._chance.getrandbits(60)
        while time.monotonic() < until:
            number += 1
            name = f'{number:020}'
            path = user.path(WRITTEN, name)
            status = await self._send(f'PUT {who}', connection, 'PUT', path)
            if status and status[0] == 201:
                done[who] += 1
                self.acknowledged[who].append(name)
        connection.close()

    async def _list(self, until: float) -> None:
        connection = Connection(self.lister.storage_url, self.lister.token)
        path = self.lister.path(LISTED)
        while time.monotonic() < until:
            at = self._chance.randrange(len(self.names))
            query = {
                'format': 'json',
                'limit': self.options.limit,
                'marker': self.names[at],
            }
            answer = await self._send(
                'listing', connection, 'GET', f'{path}?{urlencode(query)}'
            )
            if answer and answer[0] == 200:
                wanted = self.names[at + 1 : at + 1 + self.options.limit]
                if _names(answer[1]) != wanted:
                    self.wrong.append(f'a page after {self.names[at]}')
            elif answer and answer[0] in LATER:
                await asyncio.sleep(RETRY_SECONDS)
        connection.close()

    async def _idle(self, until: float) -> None:
        """Keep a connection, and send a request now and then."""
        user = self._users['other account']
        connection = Connection(user.storage_url, user.token)
        await asyncio.sleep(self._chance.uniform(0, IDLE_SECONDS))
        while time.monotonic() < until:
            path = user.path(WRITTEN, 'missing')
            await self._send('HEAD object', connection, 'HEAD', path)
            await asyncio.sleep(
                max(0, min(IDLE_SECONDS, until - time.monotonic()))
            )
        connection.close()

    async def _send(self, what, connection, method, path):
        began = time.monotonic()
        answer = await connection.request(method, path)
        self.seconds[what].append(time.monotonic() - began)
        self.statuses[what][answer.status if answer else 'closed'] += 1
        return answer and (answer.status, answer.body)

    async def _check_written(self, who: str, user: Client) -> None:
        """Check that all uploads are listed once and in order."""
        connection = Connection(user.storage_url, user.token)
        listed: list[str] = []
        while True:
            query = {'format': 'json', 'marker': listed[-1] if listed else ''}
            path = f'{user.path(WRITTEN)}?{urlencode(query)}'
            answer = await connection.request('GET', path)
            assert answer.status == 200, answer
            page = _names(answer.body)
            if not page:
                break
            listed += page
        connection.close()
        if listed != sorted(set(listed)):
            self.wrong.append(f'the order of what the {who} has written')
        for name in self.acknowledged[who]:
            at = bisect.bisect_left(listed, name)
            if listed[at : at + 1] != [name]:
                self.wrong.append(f'{who}: {name} is not listed')


def _login(cluster: Cluster, user: str) -> Client:
    return Client.login(cluster.auth_url, user, cluster.users[user])


def _names(body: bytes) -> list[str]:
    return [row['name'] for row in orjson.loads(body)]


def _quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        name: round(ordered[int(share * (len(ordered) - 1))], 3)
        for name, share in (('p50', 0.5), ('p99', 0.99), ('most', 1))
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        'python -m test.soak.overload', description=__doc__
    )
    for name, default, text in (
        ('seconds', 60, 'how long clients list'),
        ('quiet-seconds', 15, 'how long clients write before that'),
        ('connections', 1000, 'connections in all'),
        ('listers', 100, 'connections that list'),
        ('writers', 8, 'connections that upload, for each account'),
        ('shards', 512, 'shards of the container that is listed'),
        ('rows', 200_000, 'its rows'),
        ('limit', 10_000, 'rows of a page'),
        ('workers', 0, 'worker processes of each server; 0: it serves itself'),
        ('seed', 1, 'decides what clients ask for'),
    ):
        parser.add_argument(
            f'--{name}',
            type=int,
            default=default,
            help=f'{text} (%(default)s)',
        )
    parser.add_argument('--dir', type=Path, help='the folder of the cluster')
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        help='a setting, such as shardmw.account_fanout_concurrency=4',
    )
    return parser.parse_args()


def main() -> int:
    options = _options()
    folder = options.dir or Path(tempfile.mkdtemp(prefix='overload-'))
    settings = {
        'shardmw.client_max_shards': str(options.shards),
        # With fewer, tempauth fails to read tokens, and answers 401.
        'memcache.memcache_max_connections': '20',
        **dict(map(parse_setting, options.set)),
    }
    wanted = ClusterOptions(workers=options.workers, settings=settings)
    with Cluster(folder, wanted) as cluster:
        overload = Overload(cluster, options)
        overload.make(cluster)
        figures = asyncio.run(overload.run())
    print(json.dumps(figures, indent=1))
    shares = figures['share'].values()
    is_kept = min(shares, default=0) >= LEAST_SHARE
    print(f'logs in {folder}/log')
    return int(not is_kept or bool(figures['wrong']))


if __name__ == '__main__':
    sys.exit(main())
