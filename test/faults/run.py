# SPDX-License-Identifier: Apache-2.0
"""The run of a cell: clients, a fault, and the checks afterwards."""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from shardmw.core.placement import HIDDEN_PREFIX
from test.faults.changes import PHASES, Changes
from test.faults.clients import (
    HOT,
    KEPT,
    SEGMENTS,
    ClientProcess,
    Job,
    ObjectWorker,
    chance_of,
    shard_headers,
)
from test.faults.inject import fail, prepare
from test.faults.matrix import CHANGES, POWER, SHARDS, Cell
from test.faults.plan import Pair
from test.faults.site import LIMITED_FROM, Site
from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER
from test.functional.operating import wait_until
from test.history import History, Read, Violation, Write

KINDS = ('plain', 'sharded')
PROXIES = (0, 1)

#: How many clients each proxy has for each of the two containers.
CLIENTS = 10

#: The shares of the time before, during and after the fault.
BEFORE, DURING, AFTER = 0.2, 0.6, 0.2

#: How long after a fault writes may be late: some servers are still
#: error-limited.
LATE_SECONDS = 8

#: The phases in which power is lost, and how long a fault waits for the phase
#: of a change, and clients for the end of one.
MOVING, SETTLING = PHASES[-2:]
PHASE_SECONDS = 60
CHANGE_SECONDS = 90

#: Reads of these kinds show what is in a container.
LISTINGS = ('page', 'walk')

#: How long it takes until all nodes have no power.
CUT_SECONDS = 3

PATIENCE_SECONDS = 120
POLL_SECONDS = 0.5

#: The owners of containers that are created and deleted again and again: some
#: clients of each proxy have their own containers, and one shares them with a
#: client of the other proxy.
SHARED = 'both'
OWNERS = ('{}-a', '{}-b', '{}-c', SHARED)

CREATED = (201, 202)
SHOWN = 3


class Outcome(NamedTuple):
    """The outcome of a cell for one kind of container.

    :param operations: the number of requests
    :param acknowledged: the number of acknowledged writes
    :param refused: the number of requests without a response, or with a 5xx,
                    by method and status
    :param lost: the number of objects that in the end differ from what the
                 last write says
    :param wrong: the number of other reads that no order of the writes
                  explains
    :param well_seconds: how long after the fault nothing was wrong any more
    :param problems: what was still wrong in the end
    :param unlisted: the number of objects that are in the end either listed or
                     there, not both, as their rows may be lost
    :param stale: the number of reads that are right only because some servers
                  may have missed writes
    """

    operations: int
    acknowledged: int
    refused: dict[str, int]
    lost: int
    wrong: int
    well_seconds: float
    problems: list[str]
    unlisted: int = 0
    stale: int = 0

    @property
    def is_good(self) -> bool:
        """Return True if nothing was wrong."""
        return not (self.lost or self.wrong or self.problems)


class Run:
    """One run of a cell.

    :ivar texts: the shortest histories that show what was wrong
    :ivar changes: how many changes of layout have ended
    :ivar phase: the phase of a change in which the fault began, '' if none
    :ivar histories: what clients have done and seen, by kind of container; in
                     the end with the times from which reads must show writes
    """

    def __init__(
        self,
        site: Site,
        cell: Cell | Pair,
        seed: int,
        seconds: int,
        clients: int = CLIENTS,
    ) -> None:
        self.site, self.cell, self.seed = site, cell, seed
        self.seconds, self.clients = seconds, clients
        self.account = f'AUTH_{cell}-{seed}-{int(time.time())}'
        self.texts: list[str] = []
        self.changes = 0
        self.phase = ''
        self._errors: list[str] = []
        self._window = (-math.inf, math.inf)
        self._unlisted_names: dict[str, set[str]] = {}
        self._changed: Changes | None = None
        self._kept = KEPT
        if cell.work == 'limits':
            self._kept = tuple(f'kept{i:03}' for i in range(LIMITED_FROM + 5))
        self.histories = {kind: History() for kind in KINDS}
        self._workers: dict[str, list] = {kind: [] for kind in KINDS}

    def outcomes(self) -> dict[str, Outcome]:
        """Run the cell, and return the outcome by kind of container."""
        prepare(self.site, self.cell, chance_of(self.seed, self.cell, 'site'))
        self._create()
        self._settle()
        self._window = self._work()
        well, problems = self._wait_until_well(self._window[1])
        well_at = time.monotonic()
        outcomes = {}
        for kind in KINDS:
            outcomes[kind] = self._outcome(
                kind, well_at, well[kind], problems[kind]
            )
        return outcomes

    def _client(self, proxy: int) -> Client:
        return self.site.client(self.account, proxy)

    def _job(self, proxy: int, kind: str, by: str, **fields) -> Job:
        client = self._client(proxy)
        return Job(
            (client.storage_url, client.token),
            kind,
            by,
            self.seed,
            kept=self._kept,
            **fields,
        )

    def _create(self) -> None:
        shards, _ = CHANGES.get(self.cell.work, (SHARDS, ()))
        for kind in KINDS:
            headers = shard_headers(shards if kind == 'sharded' else 0)
            for container in (kind, SEGMENTS.format(kind)):
                wait_until(partial(self._creates, container, headers))
            filler = ObjectWorker(self._job(0, kind, 'filler'))
            for name in self._kept:
                wait_until(partial(filler.put, name))
            self.histories[kind].add(filler.history)

    def _settle(self) -> None:
        """Wait until what was created is on all replicas and their disks."""
        # Rings that will grow begin with one replica.
        if not any(each.how == 'grown' for each in self.cell.faults):
            wait_until(lambda: not self.site.disagreements())
        time.sleep(self.cell.early_seconds + 1)

    def _creates(self, container: str, headers: dict) -> bool:
        answer = self._client(0).put(container, headers=headers)
        return answer.status in CREATED

    def _jobs(self, proxy: int) -> list[Job]:
        jobs = []
        for kind in KINDS:
            for number in range(self.clients):
                names, owner = (), ''
                if self.cell.work == 'names' and number < len(OWNERS):
                    owner = OWNERS[number].format(proxy)
                    names = tuple(f'{kind}-{owner}-{i}' for i in range(2))
                jobs.append(
                    self._job(
                        proxy,
                        kind,
                        f'{kind}{proxy}{number}',
                        expires=self.cell.work == 'expire',
                        is_new=self.cell.loses_rows,
                        again=names,
                        shards=SHARDS if kind == 'sharded' else 0,
                        races=owner == SHARED,
                    )
                )
        return jobs

    def _work(self) -> tuple[float, float]:
        """Run clients and the fault; return when the fault began and ended.

        If the layout changes, the fault begins in a random phase, and clients
        work until a change has ended after the fault.
        """
        chance = chance_of(self.seed, self.cell)
        changes = None
        if self.cell.work in CHANGES:
            path = f'{self.account}/sharded'
            changes = Changes(self.site, self.cell, path, chance)
        with ExitStack() as stack:
            processes = [
                stack.enter_context(ClientProcess(self._jobs(proxy)))
                for proxy in PROXIES
            ]
            for process in processes:
                process.wait_until_at_work()
            if changes:
                changes.start()
                stack.callback(changes.finish)
            time.sleep(self.seconds * BEFORE)
            if changes:
                self._wait_for_phase(changes, chance)
            began = time.monotonic()
            fail(self.site, self.cell, chance, self.seconds * DURING)
            ended = time.monotonic()
            if changes:
                changes.heal()
            # A loss of power is over soon.
            time.sleep(
                max(
                    self.seconds * AFTER,
                    began + self.seconds * (DURING + AFTER) - ended,
                )
            )
            if changes:
                changes.wait_until(lambda: changes.count, CHANGE_SECONDS)
                if not changes.has_reached(MOVING):
                    self._errors.append('sharded: no row moved meanwhile')
            for process in processes:
                found, errors = process.finish()
                self._errors += errors
                for job, (history, names) in found.items():
                    self.histories[job.container].add(history)
                    self._workers[job.container].append((job, names))
        self._changed = changes
        self.changes = changes.count if changes else 0
        return began, ended

    def _wait_for_phase(self, changes: Changes, chance) -> None:
        """Wait until a change is in a phase, unless its mover will fail."""
        parts = {each.what for each in self.cell.faults}
        if parts == {'mover'}:
            return
        phases = (MOVING, SETTLING) if parts & {*POWER} else PHASES
        phase = chance.choice(phases)
        changes.wait_until(lambda: changes.has_reached(phase), PHASE_SECONDS)
        if changes.has_reached(phase):
            self.phase = phase

    def _wait_until_well(self, since: float):
        """Wait until nothing is wrong with either kind of container.

        :returns: the seconds that it took, and what is still wrong, by kind
        """
        well: dict[str, float] = {}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self._problems()
            now = time.monotonic()
            problems = {
                kind: [p for p in found if is_of(p, kind)] for kind in KINDS
            }
            for kind in KINDS:
                if problems[kind]:
                    well.pop(kind, None)
                else:
                    well.setdefault(kind, now - since)
            if not found or now > deadline:
                return {
                    kind: well.get(kind, now - since) for kind in KINDS
                }, problems
            time.sleep(POLL_SECONDS)

    def _problems(self) -> list[str]:
        """Return what is wrong, each problem with its container."""
        found = self.site.disagreements()
        if found:
            return found
        for proxy in PROXIES:
            found += _wrong_sums(self._client(proxy), self.cell.loses_rows)
        if self._changed and not found:
            if self._changed.problem:
                found.append(self._changed.problem)
            headers = self._client(0).head('sharded').headers
            shards = int(headers.get(SHARD_COUNT_HEADER.lower(), 0))
            if shards != self._changed.shards:
                found.append(f'sharded: {shards} shards')
        if not found:
            options = () if self.cell.loses_rows else ('--objects',)
            ran = self.site.admin('audit', '--account', self.account, *options)
            if ran.returncode:
                found.append(f'sharded: audit: {ran.stdout}{ran.stderr}')
        if not found:
            for kind in KINDS:
                found += self._unlisted(kind)
        return found

    def _unlisted(self, kind: str) -> list[str]:
        """Return names that are listed without an object, or the reverse."""
        client = self._client(0)
        listed = set(client.listing(kind).names())
        names = {*self._kept, *HOT, *listed}
        names.update(name for _, more in self._workers[kind] for name in more)
        there = {
            name
            for name in names
            if not name.startswith(f'{kind}-')
            and client.head(kind, name).status == 200
        }
        late = Late(self.cell, self._window, math.inf)
        writes = self.histories[kind].writes
        self._unlisted_names[kind] = {
            name
            for name in listed ^ there
            if any(map(late.loses_row, writes.get(name, ())))
        }
        wrong = (listed ^ there) - self._unlisted_names[kind]
        return [f'{kind}: not both listed and there: {wrong}'][: bool(wrong)]

    def _outcome(
        self,
        kind: str,
        well_at: float,
        well_seconds: float,
        problems: list[str],
    ) -> Outcome:
        history = self.histories[kind]
        late = Late(self.cell, self._window, well_at)
        history.reads = [r for r in history.reads if not late.is_blind(r)]
        _change(history, late.ordered)
        strict = history.violations()
        early = [each for each in strict if late.is_early(each.read)]
        self._add_texts(kind, history, early)
        _change(history, late.known)
        wrong = early + [e for e in history.violations() if e not in early]
        last = self._read_at_last(kind)
        history.add(last)
        both = early + [e for e in history.violations() if e not in early]
        lost = len(both) - len(wrong)
        self._add_texts(kind, history, both[len(early) :])
        problems += [f'{kind}: in the end {what}' for what in last.refused]
        problems += self._refused_writes(kind)
        problems += [error for error in self._errors if is_of(error, kind)]
        writes = [w for each in history.writes.values() for w in each]
        if not any(w.is_sure and w.began > self._window[1] for w in writes):
            problems.append(f'{kind}: no write was acknowledged afterwards')
        if self.cell.work == 'names' and not any(map(_is_creation, writes)):
            problems.append(f'{kind}: no container was created')
        return Outcome(
            history.counts.total(),
            sum(write.is_sure for write in writes),
            dict(history.refused),
            lost,
            len(wrong),
            round(well_seconds, 1),
            problems,
            len(self._unlisted_names.get(kind, ())),
            len(strict) - len(wrong),
        )

    def _add_texts(
        self, kind: str, history: History, found: list[Violation]
    ) -> None:
        for violation in found[:SHOWN]:
            self.texts.append(f'{kind}\n{history.text(violation)}')

    def _read_at_last(self, kind: str) -> History:
        """Read everything through both proxies."""
        history = History()
        once = {j.client: j for j, _ in self._workers[kind] if not j.again}
        again = [job for job, _ in self._workers[kind] if job.again]
        names = {
            name
            for job, used in self._workers[kind]
            for name in used
            if not job.again
        }
        for job in (*once.values(), *again):
            worker = job.worker()
            if not job.again:
                worker.names = sorted(names)
            worker.by = f'at last {worker.by}'
            worker.read_all()
            history.add(worker.history)
        return history

    def _refused_writes(self, kind: str) -> list[str]:
        """Return writes that one of the proxies still answers with a 5xx."""
        found = []
        for proxy in PROXIES:
            client = self._client(proxy)
            new = f'{kind}-at-last-{proxy}'
            headers = shard_headers(SHARDS if kind == 'sharded' else 0)
            answers = {f'PUT {new}': client.put(new, headers=headers)}
            for container in (new, kind):
                for method in ('PUT', 'POST', 'DELETE'):
                    answer = client.request(method, container, new)
                    answers[f'{method} {container}/{new}'] = answer
            answers[f'DELETE {new}'] = client.delete(new)
            found += [
                f'{what} by proxy {proxy}: in the end {answer.status}'
                for what, answer in answers.items()
                if answer.status >= 500
            ]
        return found


class Late(NamedTuple):
    """The times from which reads must show the writes of a cell.

    :param window: when the fault began and ended
    :param well_at: when all daemons had run
    """

    cell: Cell | Pair
    window: tuple[float, float]
    well_at: float

    def is_early(self, read: Read) -> bool:
        """Return True if a read ended before the fault, when all was well."""
        return read.ended < self.window[0]

    def ordered(self, write: Write) -> Write:
        """Return a write with the time until which others may precede it.

        Proxies whose clocks are behind date later writes earlier. It must be
        visible nevertheless, if there is no other one.
        """
        listed, stored = write.listed, write.stored
        return write._replace(
            ended=write.ended + self.cell.slack_seconds,
            listed=write.ended if listed is None else listed,
            stored=write.ended if stored is None else stored,
        )

    def known(self, write: Write) -> Write:
        """Return a write with the time when all replicas had it.

        :param write: as :meth:`ordered` returns it
        """
        began, ended = self.window
        is_meanwhile = (
            write.began <= ended + LATE_SECONDS
            and write.ended >= began - self.cell.early_seconds
        )
        is_late = is_meanwhile or self.cell.forgets_rows
        listed = write.listed
        if listed == math.inf or (is_late and self.cell.stales_rows):
            listed = self.well_at
        if self.loses_row(write):
            listed = math.inf
        lacks_data = self.cell.lacks_data
        is_old = lacks_data or (is_meanwhile and self.cell.stales_objects)
        is_void = (lacks_data and is_meanwhile) or self._is_dark(write)
        return write._replace(
            is_sure=write.is_sure and not (write.is_delete and is_void),
            listed=listed,
            stored=self.well_at if is_old else write.stored,
        )

    def loses_row(self, write: Write) -> bool:
        """Return True if the row of a write may be lost."""
        began, _ended = self.window
        return (
            self.cell.loses_rows
            and write.began <= began + CUT_SECONDS
            and write.ended >= began - self.cell.early_seconds
        )

    def is_blind(self, read: Read) -> bool:
        """Return True if a read may show nothing because all servers are down.

        Swift's proxy takes the account, and all in it, for missing.
        """
        return (
            self._is_dark(read)
            and read.what not in LISTINGS
            and not any(read.shown.values())
        )

    def _is_dark(self, step: Write | Read) -> bool:
        began, ended = self.window
        return (
            self.cell.loses_rows
            and step.began <= ended + LATE_SECONDS
            and step.ended >= began
        )


def _change(history: History, how: Callable[[Write], Write]) -> None:
    """Change all writes of a history."""
    for name, writes in history.writes.items():
        history.writes[name] = [how(write) for write in writes]


def _is_creation(write: Write) -> bool:
    """Return True if a write surely created a container of NamesWorker."""
    is_container = '-' in write.name and '/' not in write.name
    return write.is_sure and write.method == 'PUT' and is_container


def is_of(problem: str, kind: str) -> bool:
    """Return True if a problem concerns a kind of container, or all."""
    if 'sharded' in problem or HIDDEN_PREFIX in problem:
        return kind == 'sharded'
    return kind == 'plain' or 'plain' not in problem


def _wrong_sums(client: Client, counts_only: bool) -> list[str]:
    """Return the containers of an account whose counts or bytes are wrong.

    :param counts_only: True to compare no bytes. The row of an object that
                        replaced one in parts may be lost, or the reverse
    """
    compared = slice(1 if counts_only else 2)
    answer = client.listing()
    if answer.status != 200:
        return [f'account: {answer.status}']
    found = []
    counted, used = 0, 0
    for row in answer.json():
        container = row['name']
        head, listing = client.head(container), client.listing(container)
        if (head.status, listing.status) != (204, 200):
            found.append(f'{container}: {head.status}, {listing.status}')
            continue
        listed = listing.json()
        figures = (
            len(listed),
            sum(_size_of(client, container, each) for each in listed),
        )
        shown = (
            (row['count'], row['bytes']),
            _figures(head, 'container', 'object'),
            _figures(listing, 'container', 'object'),
        )
        if {each[compared] for each in shown} != {figures[compared]}:
            found.append(f'{container}: lists {figures}, shows {shown}')
        counted, used = counted + figures[0], used + figures[1]
    head = client.head()
    if (
        _figures(head, 'account', 'object')[compared]
        != (counted, used)[compared]
    ):
        found.append(f'account: not {counted} objects of {used} bytes')
    return found


def _size_of(client: Client, container: str, row: dict) -> int:
    """Return the bytes that containers count for a listed object.

    For an object in parts, they count the bytes of the manifest.
    """
    if 'slo_etag' not in row:
        return row['bytes']
    query = 'multipart-manifest=get'
    answer = client.head(container, row['name'], query=query)
    return int(answer.headers.get('content-length', 0))


def _figures(answer, kind: str, what: str) -> tuple[int, int]:
    return (
        int(answer.headers.get(f'x-{kind}-{what}-count', -1)),
        int(answer.headers.get(f'x-{kind}-bytes-used', -1)),
    )
