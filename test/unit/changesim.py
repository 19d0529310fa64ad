# SPDX-License-Identifier: Apache-2.0
"""Clients, faults and changes of layout, in one process and in random order.

Everything but the objects is real: the filter in two proxies, the container
servers of three replicas with their databases, and what changes the layout.
All of them are green threads, and any of them may go on whenever one sends a
request to a server. Time is simulated, so waits cost nothing.

What a world checks: a name that nobody writes while it is listed is in the
listing, once, if its object exists, and not if it has been deleted.
"""

import random
from collections import Counter
from types import SimpleNamespace
from urllib.parse import quote

import orjson
from greenlet import GreenletExit
from swift.common.exceptions import LockTimeout
from swift.common.swob import Request, Response
from swift.common.utils import Timestamp
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend.concurrency import sleep, spawn
from shardmw.backend.requests import Backend
from shardmw.config import parse_options
from shardmw.layout import adoption, lookup, moving, resharding
from shardmw.layout.resharding import (
    ChangeRefusedError,
    MoveOptions,
    Resharding,
)
from shardmw.middleware import ShardMiddleware
from shardmw.paths import Path
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    FakeSwift,
    Logger,
    Memcached,
)

PATH = Path('v1', ACCOUNT, 'c')
ROOT = f'/{ACCOUNT}/c'
NAMES = [f'n{i}' for i in range(8)]
COUNTS = (0, 1, 2, 3, 5)
METHODS = ('PUT', 'PUT', 'PUT', 'DELETE', 'DELETE')

#: Simulated seconds: for how long proxies cache, old places settle, and rows
#: and tombstones are late.
CACHE_SECONDS = 15
SETTLE_SECONDS = 45
LATE_SECONDS = (3, 10, 20)
SLOW_SECONDS = 2

#: So few rows a second that they move two by two.
ROWS_PER_SECOND = 20


PROXIES = 2
CLIENTS = 3
READERS = 4
STEP_SECONDS = 1
INFINITY = NEVER = float('inf')


class Violation(AssertionError):
    """A listing that shows what it must not, or lacks what it must show."""


class World:
    """A container, its clients and what changes its layout.

    :param swift: with three replicas
    """

    def __init__(self, swift: FakeSwift, seed: int, monkeypatch) -> None:
        self.swift = swift
        self.random = random.Random(seed)
        self.seconds = 0.0
        self.started = float(Timestamp.now())
        self.history: list[str] = []
        # What the object servers have: when it was written; deleted or not.
        self.objects: dict[str, tuple[float, bool]] = {}
        self.busy: Counter[str] = Counter()
        # Names of which a replica may lack a row until it is replicated.
        self.stale: set[str] = set()
        self.losses = 0
        # When a write began that has failed, and was not repeated yet.
        self.doubtful: dict[str, float] = {}
        self.late: list[tuple] = []
        self.violations: list[str] = []
        self.changes = self.checked = 0
        self.movers: list = []
        self.threads: list = []
        self.is_closing, self.is_over = False, True
        self._simulate_time(monkeypatch)
        monkeypatch.setattr(swift.servers, 'answer', self._interleaved())
        monkeypatch.setattr(swift, 'answer_object', self._object)
        monkeypatch.setattr(swift, 'sort_nodes', self._shuffled)
        self.logger = Logger()
        self.proxies = [
            ShardMiddleware(swift, parse_options({}), self.logger)
            for _ in range(PROXIES)
        ]
        self.memcacheds = [Memcached() for _ in range(PROXIES)]
        self._request(0, 'PUT', f'/v1{ROOT}')

    def _simulate_time(self, monkeypatch) -> None:
        clock = SimpleNamespace(
            time=lambda: self.started + self.seconds,
            monotonic=lambda: self.seconds,
        )
        for module in (adoption, lookup, resharding):
            monkeypatch.setattr(module, 'time', clock)
        monkeypatch.setattr(resharding, 'sleep', self.sleep)
        monkeypatch.setattr(moving, 'AT_A_TIME', 2)
        monkeypatch.setattr(
            self.swift, 'recheck_container_existence', CACHE_SECONDS
        )
        for timeout in ('node_timeout', 'conn_timeout'):
            monkeypatch.setattr(self.swift, timeout, 5)

    def _shuffled(self, nodes, policy=None) -> list[dict]:
        return self.random.sample(nodes, len(nodes))

    def _interleaved(self):
        answer = self.swift.servers.answer

        def later(*args):
            if not self.is_over and self.random.random() < 0.2:
                self.sleep(self.random.random() * SLOW_SECONDS)
            return answer(*args)

        return later

    def now(self) -> float:
        return self.started + self.seconds

    def sleep(self, seconds: float) -> None:
        """Wait for simulated seconds."""
        end = self.seconds + seconds
        while self.seconds < end:
            sleep(0)
            if self.is_over:
                raise GreenletExit

    def note(self, text: str) -> None:
        self.history.append(f'{self.seconds:6.0f} {text}')

    # What the servers do

    def _request(
        self, proxy: int, method: str, path: str, query='', headers=None
    ):
        return self.swift.send(
            self.proxies[proxy],
            method,
            path,
            headers,
            {'swift.cache': self.memcacheds[proxy]},
            query,
        )

    def _object(self, call) -> Response:
        """Answer like an object server, which sends rows to containers."""
        name = call.path.rpartition('/')[2]
        at, is_deleted = self.objects.get(name, (0.0, True))
        if call.method == 'HEAD':
            headers = {'X-Backend-Timestamp': Timestamp(at).internal}
            status = 404 if is_deleted else 200
            return Response(status=status, headers=headers)
        written = float(Timestamp(call.headers['X-Timestamp']))
        if written > at:
            self.objects[name] = written, call.method == 'DELETE'
        key = get_cache_key(ACCOUNT, 'c', shard='updating')
        bounds = call.infocache.get(key)
        place = f'/{bounds.bounds[0][1]}' if bounds else ROOT
        for replica in range(3):
            self._deliver(replica, call.method, place, name, written)
        is_missing = call.method == 'DELETE' and is_deleted
        return Response(status=404 if is_missing else 201)

    def _deliver(self, replica, method, place, name, at) -> None:
        """Send a row to a replica, now or later."""
        is_soon = self.random.random() < 0.85
        if is_soon and self._put_row(replica, method, place, name, at):
            return
        self.busy[name] += 1
        due = self.seconds + self.random.choice(LATE_SECONDS)
        self.late.append((due, replica, method, place, name, at))

    def _put_row(self, replica, method, place, name, at) -> bool:
        if f'd{replica}' in self.swift.servers.away:
            return False
        headers = {
            'X-Timestamp': Timestamp(at).internal,
            'X-Size': '1',
            'X-Etag': 'etag',
            'X-Content-Type': 'text/plain',
        }
        path = f'{place}/{name}'
        (answer,) = self.swift.direct(method, path, headers, b'', [replica])
        return answer.status // 100 == 2 or answer.status == 404

    def deliver_late(self) -> None:
        while True:
            self.sleep(1)
            for each in list(self.late):
                due, *rest = each
                if due <= self.seconds and self._put_row(*rest):
                    self.late.remove(each)
                    self.busy[rest[3]] -= 1

    def expire_caches(self, proxy: int) -> None:
        """Let a proxy's memcached forget, as late as it may."""
        while True:
            self.sleep(CACHE_SECONDS)
            self.memcacheds[proxy].values.clear()

    def replicate(self) -> None:
        while True:
            self.sleep(25)
            if not self.swift.servers.away:
                self.replicate_all()

    def replicate_all(self) -> None:
        replicated = {name for name in self.stale if not self.busy[name]}
        containers = {('c', ACCOUNT)}
        for name in self.swift.containers(HIDDEN):
            containers.add((name, HIDDEN))
        for container, account in sorted(containers):
            self.swift.replicate(account, container)
        self.stale -= replicated

    def lose_replicas(self) -> None:
        while True:
            self.sleep(self.random.choice((20, 60)))
            device = f'd{self.random.randrange(3)}'
            self.swift.servers.away = {device}
            self.losses += 1
            self.note(f'{device} is away')
            self.sleep(self.random.choice((5, 20)))
            self.swift.servers.away = set()

    # What clients do

    def write(self, client: int) -> None:
        while not self.is_closing:
            name = self.random.choice(NAMES)
            proxy = self.random.randrange(PROXIES)
            method = self.random.choice(
                ('PUT', 'PUT', 'PUT', 'DELETE', 'DELETE')
            )
            self.busy[name] += 1
            losses = self.losses - bool(self.swift.servers.away)
            at = Timestamp(self.now() + self.random.random() / 2)
            resp = self._request(
                proxy,
                method,
                f'/v1{ROOT}/{name}',
                headers={'X-Timestamp': at.internal},
            )
            self.note(
                f'client {client}: {method} {name} by proxy {proxy}: '
                f'{resp.status_int}'
            )
            if resp.status_int == 503:
                # A repeated request completes it.
                self.doubtful[name] = float(at)
            elif self.doubtful.get(name, INFINITY) < float(at):
                del self.doubtful[name]
            if losses < self.losses:
                self.stale.add(name)
            self.busy[name] -= 1
            self.sleep(self.random.randrange(20))

    def read(self) -> None:
        while True:
            proxy = self.random.randrange(PROXIES)
            limit = self.random.choice((2, 4, 100))
            calm = {
                name: self.objects.get(name, (0.0, True))
                for name in NAMES
                if not self.busy[name]
            }
            names = self._walk(proxy, limit)
            if names is not None:
                self._check(calm, names, proxy)
            self.sleep(self.random.randrange(4))

    def _walk(self, proxy: int, limit: int) -> list[str] | None:
        names: list[str] = []
        for _ in range(len(NAMES) + 1):
            marker = quote(names[-1]) if names else ''
            query = f'format=json&limit={limit}&marker={marker}'
            resp = self._request(proxy, 'GET', f'/v1{ROOT}', query)
            if resp.status_int != 200:
                reason = self.logger.lines[-1:]
                self.note(f'listing by proxy {proxy}: {reason}')
                return None
            page = [row['name'] for row in orjson.loads(resp.body)]
            names += page
            if len(page) < limit:
                break
        return names

    def _check(self, calm: dict, names: list[str], proxy: int) -> None:
        if names != sorted(set(names)):
            self._violated(f'proxy {proxy} listed {names}')
        for name, state in calm.items():
            if self.busy[name] or name in {*self.doubtful, *self.stale}:
                continue
            if self.objects.get(name, (0.0, True)) != state:
                continue
            self.checked += 1
            is_deleted = state[1]
            if is_deleted == (name in names):
                what = 'shows deleted' if is_deleted else 'lacks'
                self._violated(f'a listing by proxy {proxy} {what} {name}')

    def _violated(self, text: str) -> None:
        self.note(f'VIOLATION: {text}')
        self.violations.append(text)

    # What changes the layout

    def change(self) -> None:
        while True:
            try:
                self._change()
            except ChangeRefusedError as err:
                self.note(str(err))
            except (resharding.BackendError, LockTimeout) as err:
                self.note(f'change: {err}')
            self.sleep(10)

    def _change(self) -> None:
        resharder = Resharding(
            Backend(self.swift, Logger(), 2),
            Request.blank('/').environ,
            PATH,
            MoveOptions(CACHE_SECONDS, SETTLE_SECONDS, ROWS_PER_SECOND),
            lambda progress: None,
        )
        write = resharder._write

        def noted(layout, former):
            write(layout, former)
            self.note(f'record: {layout}')

        resharder._write = noted
        root = resharding.read_root(resharder.backend, resharder.env, PATH)
        is_changing = root.record is not None and root.record.is_changing
        if is_changing and self.random.random() < 0.3:
            resharder.cancel()
        elif not is_changing:
            resharder.begin(self.random.choice(COUNTS))
        mover = spawn(resharder.run)
        self.movers.append(mover)
        life = self.random.choice((15, 60, *[NEVER] * 3))
        end = self.seconds + life
        while not mover.dead and self.seconds < end and not self.is_over:
            sleep(0)
        if mover.dead:
            self.changes += 1
            mover.wait()
        else:
            self.note('the mover is killed')
            mover.kill()

    def run(self, seconds: float) -> None:
        """Let everything happen, then check what is left when all is calm."""
        actors = [
            *((self.write, client) for client in range(CLIENTS)),
            *((self.read,) for _ in range(READERS)),
            (self.deliver_late,),
            (self.replicate,),
            (self.lose_replicas,),
            (self.change,),
            *((self.expire_caches, proxy) for proxy in range(PROXIES)),
        ]
        self.is_over = False
        threads = [spawn(*actor) for actor in actors]
        try:
            while not all(writer.dead for writer in threads[:CLIENTS]):
                self.is_closing = self.seconds >= seconds or self.violations
                self.seconds += STEP_SECONDS / 10
                sleep(0)
                for thread in threads:
                    if thread.dead:
                        thread.wait()  # raises what has ended it
        finally:
            self.is_over = True
            for thread in [*threads, *self.movers]:
                if not thread.dead:
                    thread.kill()
            sleep(0)
        if not self.violations:
            self._check_when_calm()
        if self.violations:
            raise Violation('\n'.join([*self.history[-60:], *self.violations]))

    def _check_when_calm(self) -> None:
        self.swift.servers.away = set()
        for _, replica, method, place, name, at in self.late:
            self._put_row(replica, method, place, name, at)
        self.replicate_all()
        live = [n for n in NAMES if not self.objects.get(n, (0, True))[1]]
        for proxy in range(PROXIES):
            self.seconds += 2 * CACHE_SECONDS
            self.memcacheds[proxy].values.clear()
            names = self._walk(proxy, 100) or []
            names = [n for n in names if n not in self.doubtful]
            if names != [n for n in live if n not in self.doubtful]:
                self._violated(
                    f'at last proxy {proxy} lists {names}, not {live}'
                )
