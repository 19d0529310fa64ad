# SPDX-License-Identifier: Apache-2.0
"""Clients, faults and a change of layout, in one process and simulated time.

Everything but the objects is real: the filter in two proxies that have a
memcached each, the container servers of three replicas with their databases,
and the mover. A world carries out a plan (:mod:`test.unit.changeplan`) in
simulated time (:mod:`test.unit.simtime`). The same plan always has the same
history, so a plan with a wrong history can be shortened.
"""

import random
from collections import defaultdict
from contextlib import suppress
from unittest import mock
from urllib.parse import quote

import orjson
from greenlet import GreenletExit
from swift.common import bufferedhttp
from swift.common.http import is_success
from swift.common.swob import Request, Response
from swift.common.utils import Timestamp
from swift.proxy.controllers.base import get_cache_key

from shardmw.backend.config import parse_options
from shardmw.backend.containers import (
    RECORD_HEADER,
    SHARD_COUNT_HEADER,
    BackendError,
)
from shardmw.backend.requests import Backend
from shardmw.core.layout import PLAIN, parse_record
from shardmw.core.paths import Path
from shardmw.core.placement import backing_container
from shardmw.proxy.filter import ShardMiddleware
from shardmw.reshard.executor import Executor
from shardmw.reshard.late_rows import NOTHING, settle
from shardmw.reshard.resharding import (
    ChangeRefusedError,
    MoveOptions,
    Resharding,
)
from shardmw.reshard.row_pass import Pace
from shardmw.swift.concurrency import Event, Timeout, sleep, spawn
from test.history import History, Read, Write, smallest
from test.unit.changeplan import (
    BEGIN_SECONDS,
    CACHE_SECONDS,
    EARLIER,
    END_SECONDS,
    FIRST_MOVE,
    NAMES,
    PROXIES,
    REPLICAS,
    Plan,
    Step,
)
from test.unit.fakeswift import (
    ACCOUNT,
    HIDDEN,
    Connection,
    FakeSwift,
    Logger,
    Memcached,
    Ring,
    ServerResponse,
    end_watchdog,
    fake_swift,
)
from test.unit.simtime import SimulatedHub, simulated_time

PATH = Path('v1', ACCOUNT, 'c')
ROOT = f'/{ACCOUNT}/c'

#: The mover is the last of the proxies. It has no clients.
MOVER = PROXIES

#: How long old places must stay empty.
SETTLE_SECONDS = 30

#: The longest delay of a slow answer, and the share of slow answers. Listings
#: are slow more often, and requests of the mover less often, so that rows move
#: while listings are read.
SLOW_SECONDS = 2
SLOW_SHARE = 0.2
SLOW_LISTINGS_SHARE = 0.5
SLOW_MOVERS_SHARE = 0.03

#: How long a replica takes to answer that exceeds the timeout of proxies.
SLOWER_SECONDS = (1.1, 2)

#: The share of the mover's updates that fail.
FAILED_SHARE = 0.03

#: The share of replications that copy rows, too; others copy only metadata.
WHOLE_SHARE = 0.3

#: The rate at which rows are moved; every page has one row.
ROWS_PER_SECOND = 3

#: How long it takes to restart the mover.
RESTART_SECONDS = 1

#: The longest that a change may take.
LONGEST_SECONDS = 1000

#: The most time between the last look at the old place and the last record.
LOOK_SECONDS = 10

#: More records than a change has that is cancelled.
MOST_RECORDS = 10

#: How often the daemon looks for late rows; how many times, and at which
#: interval, it does so before the last walk.
DAEMON_SECONDS = 20
PASSES = 3
PASS_SECONDS = 65

#: The header that tells object servers the number of a step.
STEP_HEADER = 'X-Object-Meta-Step'

INFO_KEY = get_cache_key(ACCOUNT, 'c')
UPDATING_KEY = get_cache_key(ACCOUNT, 'c', shard='updating')


class SimulatedConnection(Connection):
    """A connection that may be slow, or may fail."""

    def __init__(self, world: 'World', address: str) -> None:
        super().__init__(world.swift.servers, address)
        self._world = world

    def endheaders(self, body: bytes | None = None) -> None:
        device = self._path.split('/')[1]
        if self._world.is_cut(self._port // 10, device):
            raise ConnectionRefusedError(device)
        if body:
            self.send(body)

    def getresponse(self) -> ServerResponse:
        return self._world.answer(
            self._port, self._method, self._path, self._headers, self._body
        )


class ExpiringMemcached(Memcached):
    """A memcached whose values expire in simulated time."""

    def __init__(self, hub: SimulatedHub) -> None:
        super().__init__()
        self._hub = hub
        self._expires: dict = {}

    def get(self, key, raise_on_error=False):
        if self._expires.get(key, 0) <= self._hub.now:
            self.values.pop(key, None)
        return super().get(key)

    def set(self, key, value, serialize=True, time=0, raise_on_error=False):
        super().set(key, value)
        self._expires[key] = self._hub.now + (time or float('inf'))


class World:
    """A container, its clients, and the change of its layout.

    :param hub: the hub of simulated time
    :param swift: has three replicas; requests through it are never slow
    """

    def __init__(self, plan: Plan, hub: SimulatedHub, swift: FakeSwift):
        self.plan = plan
        self.hub = hub
        self.swift = swift
        self.random = random.Random(f'{plan.seed} world')
        self.history = History()
        # The objects: when they were written, and if they are deleted.
        self.objects: dict[str, tuple[float, bool]] = {}
        self.writes: dict[int, Write] = {}
        # When replicas got the rows of writes, and the rows that are pending.
        self.delivered: dict[int, list[float]] = defaultdict(list)
        self.late: list[tuple[float, int, tuple]] = []
        # The devices that are away, that a proxy does not reach, that are
        # slow, or that reject records; and the steps that keep replicators
        # from running.
        self.away: list[str] = []
        self.cut: list[tuple[int, str]] = []
        self.slow: list[str] = []
        self.deaf: list[str] = []
        self.lacking: list[Step] = []
        # Begin and end of times when something was away, cut off or missing,
        # and of those when it was lost; when a replica last missed a request,
        # -1 if it was repaired since; and when all replicas were repaired.
        self.faults: list[tuple[float, float]] = []
        self.losses: list[tuple[float, float]] = []
        self.missed = -1.0
        self._is_lost = False
        # The writes that have reached object servers.
        self.reached: set[int] = set()
        self.repairs: list[float] = []
        self.records: list[str] = []
        self.record_times = [0.0]
        self._passed: dict[int, Event] = defaultdict(Event)
        self.is_calm, self.is_over = True, False
        self._mover = None
        self._is_cancelled = False
        self.logger = Logger()
        swift.servers.put_filter(plan.filtered)
        self.apps = [self._proxy(number) for number in range(MOVER + 1)]
        self.filters = [
            ShardMiddleware(app, parse_options({}), self.logger)
            for app in self.apps[:MOVER]
        ]
        self.memcacheds = [ExpiringMemcached(hub) for _ in self.filters]

    def _proxy(self, number: int) -> FakeSwift:
        """Return a proxy app, which uses ports with its number."""
        servers = self.swift.servers
        app = FakeSwift(
            servers,
            len(REPLICAS),
            recheck_container_existence=str(CACHE_SECONDS),
            recheck_account_existence=str(CACHE_SECONDS),
            error_suppression_limit='1000000',
        )
        base = 10 * (number + 1)
        app.account_ring = Ring(base + servers.ACCOUNT_PORT, len(REPLICAS))
        app.container_ring = Ring(base + servers.CONTAINER_PORT, len(REPLICAS))
        app.sort_nodes = lambda nodes, policy=None: self.random.sample(
            nodes, len(nodes)
        )
        app.answer_object = self._object
        return app

    def note(self, text: str) -> None:
        self.history.note(self.hub.now, text)

    # What the servers do

    def is_cut(self, number: int, device: str) -> bool:
        """Return True if a proxy app does not reach a device."""
        is_cut = (number - 1, device) in self.cut
        if number and (device in self.away or is_cut):
            self.missed = self.hub.now
            return True
        return False

    def answer(self, port: int, method: str, path: str, headers, body):
        """Answer as a server that may be slow, or may fail for the mover."""
        number, kind = divmod(port, 10)
        is_real = number and not self.is_calm
        is_movers = number == MOVER + 1
        is_move = method == 'UPDATE' and is_movers
        before = after = 0
        share = SLOW_LISTINGS_SHARE if method == 'GET' else SLOW_SHARE
        if is_movers:
            share = SLOW_MOVERS_SHARE
        if not self.is_calm and path.split('/')[1] in self.slow:
            before = self.random.uniform(*SLOWER_SECONDS)
        elif is_real and self.random.random() < share:
            before, after = (
                self.random.random() * SLOW_SECONDS * share
                for share in self.random.choice(((1, 0), (0, 1)))
            )
        sleep(before)
        if is_move and path.split('/')[3] in (ACCOUNT, HIDDEN):
            self._pass(FIRST_MOVE)
        if is_move and is_real and self.random.random() < FAILED_SHARE:
            raise ConnectionResetError(path)
        if method == 'POST' and path.split('/')[1] in self.deaf:
            self.missed = self.hub.now
            raise ConnectionResetError(path)
        answer = self.swift.servers.answer(kind, method, path, headers, body)
        if method == 'POST':
            self._see_record(dict(headers).get(RECORD_HEADER))
        if after:
            sleep(after)
        return answer

    def _see_record(self, record: str | None) -> None:
        if record and record not in self.records:
            self.records.append(record)
            self.record_times.append(self.hub.now)
            self.note(f'record {len(self.records)}: {record}')
            self._pass(len(self.records))

    def _pass(self, record: int) -> None:
        if not self._passed[record].ready():
            self._passed[record].send()

    def _object(self, call) -> Response:
        """Answer as object servers, which send rows to containers."""
        name = call.path.rpartition('/')[2]
        at, is_deleted = self.objects.get(name, (0.0, True))
        if call.method == 'HEAD':
            headers = {'X-Backend-Timestamp': Timestamp(at).internal}
            return Response(status=404 if is_deleted else 200, headers=headers)
        info = call.infocache.get(INFO_KEY)
        if info and not is_success(info['status']):
            return Response(status=503)  # Swift itself answers 404
        written = float(
            Timestamp(call.headers.get('X-Timestamp') or Timestamp.now())
        )
        if written <= at:
            return Response(status=409)
        number = int(call.headers[STEP_HEADER])
        step = self._step(number)
        self.reached.add(number)
        bounds = call.infocache.get(UPDATING_KEY)
        place = f'/{bounds.bounds[0][1]}' if bounds else ROOT
        sleep(step.upload)
        if written > self.objects.get(name, (0.0, True))[0]:
            self.objects[name] = written, call.method == 'DELETE'
        row = call.method, f'{place}/{name}', written, number
        for replica in REPLICAS:
            if step.late[replica] or not self._put_row(replica, *row):
                due = self.hub.now + step.late[replica]
                self.late.append((due, replica, row))
        is_missing = call.method == 'DELETE' and is_deleted
        return Response(status=404 if is_missing else 201)

    def _step(self, number: int) -> Step:
        steps = self.plan.steps
        return steps[number] if number < len(steps) else Step('PUT', 0, 0)

    def _put_row(self, replica, method, path, at, number) -> bool:
        """Send a row to a replica, and return True if it was accepted."""
        if f'd{replica}' in self.away:
            return False
        headers = {
            'X-Timestamp': Timestamp(at).internal,
            'X-Size': str(size_of(number)),
            'X-Etag': 'etag',
            'X-Content-Type': 'text/plain',
        }
        (answer,) = self.swift.direct(method, path, headers, b'', [replica])
        is_taken = is_success(answer.status)
        if is_taken:
            self.delivered[number].append(self.hub.now)
        return is_taken

    def _deliver_and_repair(self) -> None:
        while not self.is_over:
            sleep(0.5)
            self._deliver(self.hub.now)
            if self.missed > 0 and self._can_repair():
                is_whole = self.random.random() < WHOLE_SHARE
                self._repair(is_whole or self._is_lost)

    def _can_repair(self) -> bool:
        return not (self.away or self.cut or self.lacking)

    def _deliver(self, until: float) -> None:
        for each in list(self.late):
            due, replica, row = each
            if due <= until and self._put_row(replica, *row):
                self.late.remove(each)

    def _look_for_late_rows(self) -> None:
        while not self.is_over:
            sleep(DAEMON_SECONDS)
            self._run_daemon()

    def _run_daemon(self) -> None:
        """Run updaters, and settle late rows and strays."""
        self.swift.update_accounts()
        env = Request.blank('/').environ
        try:
            done = settle(self._movers_backend(), env, PATH, Pace(0))
        except BackendError as err:
            done = err
        if done != NOTHING:
            self.note(f'the daemon: {done}')

    def _repair(self, is_whole: bool) -> None:
        """Replicate all databases, or only their metadata.

        Swift's replicators send metadata first, and then rows.
        """
        for account, container in self.swift.databases():
            if is_whole:
                self.swift.replicate(account, container)
            else:
                self.swift.replicate_metadata(account, container)
        self.missed = -1.0
        if is_whole:
            self._is_lost = False
            self.repairs.append(self.hub.now)

    # What clients do

    def _do(self, number: int, step: Step) -> None:
        """Wait for the moment of a step, and take the step."""
        if step.record:
            self._passed[step.record].wait()
        sleep(step.delay)
        if step.kind == 'walk':
            self._walk(step, f'step {number} by proxy {step.proxy}')
        elif step.kind in ('PUT', 'DELETE'):
            self._write(number, step)
        else:
            getattr(self, f'_{step.kind}')(step)

    def _request(self, proxy: int, method, path, headers=None, query=''):
        resp = self.swift.send(
            self.filters[proxy],
            method,
            path,
            headers,
            {'swift.cache': self.memcacheds[proxy]},
            query,
        )
        self.history.counts[method] += 1
        if resp.status_int == 503:
            self.history.refused[f'{method} 503'] += 1
        return resp

    def _write(self, number: int, step: Step) -> None:
        began = self.hub.look()
        resp = self._request(
            step.proxy,
            step.kind,
            f'/v1{ROOT}/{step.name}',
            {STEP_HEADER: str(number)},
        )
        if resp.status_int == 409:
            return  # the object already had a later write
        self.writes[number] = Write(
            step.name,
            step.kind,
            began,
            self.hub.look(),
            size=size_of(number) if step.kind == 'PUT' else 0,
            is_sure=resp.status_int in (201, 204, 404)
            and number in self.reached,
            by=f'step {number} by proxy {step.proxy}',
        )

    def _walk(self, step: Step, by: str) -> int:
        """List the container; return the status of the last page."""
        first, listed = self.hub.look(), []
        is_last = False
        while not is_last:
            marker = listed[-1] if listed else ''
            query = f'format=json&limit={step.limit}&marker={quote(marker)}'
            began = self.hub.look()
            resp = self._request(step.proxy, 'GET', f'/v1{ROOT}', query=query)
            if resp.status_int != 200:
                return resp.status_int
            page = Read('page', began, self.hub.look(), {}, by=by)
            rows = [(r['name'], r['bytes']) for r in orjson.loads(resp.body)]
            is_last = len(rows) < step.limit
            self.history.page(page, rows, NAMES, marker, is_last)
            listed += [name for name, _ in rows]
        walk = Read('walk', first, self.hub.look(), {}, by=by)
        self.history.walked(walk, listed, NAMES)
        return resp.status_int

    # What goes wrong

    def _cut(self, step: Step) -> None:
        lost = [(step.proxy, f'd{i}') for i in REPLICAS if i != step.replica]
        self.note(f'proxy {step.proxy} reaches d{step.replica} only')
        self.cut += lost
        sleep(step.seconds)
        for each in lost:
            self.cut.remove(each)
        self.faults.append((self.hub.now - step.seconds, self.hub.now))
        self.note(f'proxy {step.proxy} reaches all')

    def _away(self, step: Step) -> None:
        if self.away:
            return
        device = f'd{step.replica}'
        self.note(f'{device} is away')
        self.away.append(device)
        sleep(step.seconds)
        self.away.remove(device)
        self.faults.append((self.hub.now - step.seconds, self.hub.now))
        self.note(f'{device} is back')

    def _slow(self, step: Step) -> None:
        device = f'd{step.replica}'
        self.note(f'{device} is slow')
        self.slow.append(device)
        sleep(step.seconds)
        self.slow.remove(device)
        self.note(f'{device} is not slow')

    def _deaf(self, step: Step) -> None:
        device = f'd{step.replica}'
        self.note(f'{device} takes no record')
        self.deaf.append(device)
        sleep(step.seconds)
        self.deaf.remove(device)
        self.note(f'{device} takes records')

    def _handoff(self, step: Step) -> None:
        places = self._places(step)
        for place in places:
            self.swift.take_away(*place)
        self._lack(step)
        for place in places:
            self.swift.bring_back(*place)

    def _lost(self, step: Step) -> None:
        """Lose databases whose rows another replica has."""
        if not self._can_repair():
            return
        self._repair(is_whole=True)
        for place in self._places(step):
            self.swift.lose(*place)
        self._is_lost = True
        self._lack(step)
        self.losses.append(self.faults[-1])

    def _stale(self, step: Step) -> None:
        self._lack(step)

    def _places(self, step: Step) -> list[tuple[str, str, int]]:
        """Return account, name and replica of the databases of a step."""
        accounts = {'root': [ACCOUNT], 'shards': [HIDDEN]}.get(
            step.place, [ACCOUNT, HIDDEN]
        )
        return [
            (account, container, replica)
            for account, container in self.swift.databases()
            for replica in step.replicas
            if account in accounts
        ]

    def _lack(self, step: Step) -> None:
        """Keep replicators from running for the time of a step."""
        what = f'{step.kind}: {step.place} {step.replicas or step.replica}'
        self.note(what)
        began = self.hub.now
        self.lacking.append(step)
        sleep(step.seconds)
        self.lacking.remove(step)
        self.faults.append((began, self.hub.now))
        self.missed = self.hub.now
        self.note(f'the end of {what}')

    def _kill(self, step: Step) -> None:
        self.note(step.kind)
        self._mover.kill()

    def _cancel(self, step: Step) -> None:
        self._is_cancelled = True
        self._kill(step)

    # What changes the layout

    def _movers_backend(self) -> Backend:
        return Backend(self.apps[MOVER], self.logger, 2)

    def _resharding(self) -> Resharding:
        env = Request.blank('/').environ
        return Resharding(
            Executor(self._movers_backend(), env, PATH),
            MoveOptions(CACHE_SECONDS, SETTLE_SECONDS, ROWS_PER_SECOND),
        )

    def _change_earlier(self) -> None:
        resharding = self._resharding()
        resharding.begin(self.plan.former)
        resharding.run()
        self.records, self.record_times = [], [self.hub.now]
        self._passed.clear()

    def _change(self) -> None:
        sleep(BEGIN_SECONDS)
        is_done = False
        while not is_done:
            self._mover = spawn(self._attempt)
            try:
                is_done = self._mover.wait()
            except GreenletExit:
                sleep(RESTART_SECONDS)
        sleep(END_SECONDS)

    def _attempt(self) -> bool:
        """Continue the change; return True if it is over."""
        resharding = self._resharding()
        was_lacking = bool(self.lacking)
        try:
            if self._is_cancelled:
                resharding.cancel()
            else:
                resharding.begin(self.plan.shards)
            resharding.run()
        except BackendError as err:
            self.note(f'the change: {err}')
            sleep(RESTART_SECONDS)
            return False
        except ChangeRefusedError as err:
            self.note(f'the change: {err}')
            # The change has not begun; perhaps no replica has a database.
            sleep(RESTART_SECONDS)
            return not was_lacking
        return True

    def run(self) -> History:
        """Carry out the plan and return the history of the clients."""
        self._create()
        numbered = list(enumerate(self.plan.steps))
        for number, step in numbered:
            if step.record == EARLIER:
                self._write(number, step)
        if self.plan.earlier != self.plan.former:
            self._change_earlier()
        self.is_calm = False
        steps = [
            spawn(self._do, number, step)
            for number, step in numbered
            if step.record != EARLIER
        ]
        change = spawn(self._change)
        delivery = spawn(self._deliver_and_repair)
        daemon = spawn(self._look_for_late_rows)
        with Timeout(LONGEST_SECONDS, False):
            change.wait()
        change.kill()
        self._mover.kill()
        for record in range(MOST_RECORDS):
            self._pass(record)
        for each in steps:
            each.wait()
        self.is_over = True
        delivery.wait()
        daemon.wait()
        self._calm_down()
        self._check_end()
        return self.history

    def _create(self) -> None:
        """Create the container, while stale replicas are away.

        Before that, all replicas have had a plain container without rows.
        """
        stale = [s.replica for s in self.plan.steps if s.kind == 'stale']
        if stale:
            self._send_of_container('PUT', 201)
            self.away += [f'd{replica}' for replica in stale]
            self._send_of_container('DELETE', 204)
        count = self.plan.earlier
        headers = {SHARD_COUNT_HEADER: str(count)} if count else {}
        self._send_of_container('PUT', 201, headers)
        self.away.clear()

    def _send_of_container(self, method, status, headers=None) -> None:
        resp = self._request(0, method, f'/v1{ROOT}', headers)
        assert resp.status_int == status, resp.status

    def _calm_down(self) -> None:
        """Deliver all late rows, repair replicas, and repeat failed writes."""
        self.is_calm = True
        self._repair(is_whole=True)
        self._deliver(float('inf'))
        self._repair(is_whole=True)
        unsure = [w for w in self.writes.values() if not w.is_sure]
        for name in sorted({write.name for write in unsure}):
            number = len(self.plan.steps) + NAMES.index(name)
            self._write(number, Step('DELETE', 0, 0, name=name))
        for _ in range(PASSES):
            sleep(PASS_SECONDS)
            self._run_daemon()
        with suppress(BackendError):
            self._resharding().sweep()
        settled = self.hub.look()
        for number, write in self.writes.items():
            self.history.wrote(self._listed(number, write, settled))
        for proxy in range(PROXIES):
            step = Step('walk', 0, 0, proxy=proxy, limit=100)
            status = self._walk(step, f'at last proxy {proxy}')
            self._check(status == 200, f'proxy {proxy}: {status}')

    def _check_end(self) -> None:
        """Check that the change has ended, and that all shards exist."""
        metadata = self.swift.broker(ACCOUNT, 'c').metadata
        record, _ = metadata.get(RECORD_HEADER.title(), ('', ''))
        layout = parse_record(record) if record else PLAIN
        ends = {self.plan.shards}
        if self._is_cancelled:
            ends.add(self.plan.former)
        is_over = layout.shards in ends and not layout.is_changing
        self._check(is_over, f'the layout {record!r}')
        for shard in range(layout.backing_count):
            name = backing_container('c', *layout.backing(shard))
            self._check(self.swift.exists(HIDDEN, name), f'no shard {shard}')

    def _check(self, is_so: bool, problem: str) -> None:
        """Record a problem if a condition is False."""
        if not is_so:
            now = self.hub.look()
            self.history.failed(Read(problem, now, now, {}, by='at last'))

    def _listed(self, number: int, write: Write, settled: float) -> Write:
        """Return a write with the time when all databases had its row.

        :param settled: when all databases had all rows
        """
        times = self.delivered[number]
        # Rows of uploads that began before the last record, and that arrived
        # after the last look at the old place, are found later.
        last = self.record_times[-1]
        is_late = write.began < last + 2 * CACHE_SECONDS
        looked = last - LOOK_SECONDS
        if len(times) < len(REPLICAS) or (is_late and max(times) > looked):
            return write._replace(listed=settled)
        listed = max(write.ended, *times)
        faults = self.losses
        if write.is_delete:
            faults = self.faults
            # The slowest replica gets the tombstone after the response, or
            # when it is repaired.
            listed = max(listed, write.ended + 2 * SLOW_SECONDS)
        if any(
            write.began <= ended and began <= listed for began, ended in faults
        ):
            ends = [at for at in self.repairs if at > listed]
            listed = min(ends, default=settled)
        return write._replace(listed=listed)


def size_of(number: int) -> int:
    """Return the size of the object that a step uploads."""
    return number + 1


def carry_out(plan: Plan) -> History:
    """Return the history of a plan."""
    with simulated_time(plan.seed) as hub, fake_swift(len(REPLICAS)) as swift:
        world = World(plan, hub, swift)
        with mock.patch.object(
            bufferedhttp,
            'BufferedHTTPConnection',
            lambda address: SimulatedConnection(world, address),
        ):
            try:
                return world.run()
            finally:
                for app in world.apps:
                    end_watchdog(app)


def shortened(plan: Plan, most_runs: int) -> Plan:
    """Return a plan with fewer steps whose history is still wrong.

    :param most_runs: how many plans to carry out at most
    """
    runs = 0

    def is_wrong(steps: list[Step]) -> bool:
        nonlocal runs
        runs += 1
        shorter = plan._replace(steps=tuple(steps))
        return runs <= most_runs and bool(carry_out(shorter).violations())

    steps = smallest(plan.steps, is_wrong)
    return plan._replace(steps=tuple(steps))


def report(plan: Plan, most_runs: int = 40) -> str:
    """Return a report of the first violation in a plan's history, or ''.

    The report has the seed, the shortest plan that was found, and the
    operations that show the violation.
    """
    if not carry_out(plan).violations():
        return ''
    plan = shortened(plan, most_runs)
    history = carry_out(plan)
    return f'{plan}\n\n{history.text(history.violations()[0])}'
