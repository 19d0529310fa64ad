# SPDX-License-Identifier: Apache-2.0
"""Plans of clients' requests and faults while a layout changes. Pure.

A plan is drawn from a seed. It says when each step begins: a number of seconds
after a record of the layout was written, since most faults matter then.
"""

import random
from typing import NamedTuple

REPLICAS = range(3)

#: The proxies that clients use.
PROXIES = 2

#: The proxy that is often cut off from replicas when a record is written.
OUTDATED = 1

#: Names that are written at random, and names with a story each.
HOT_NAMES = ('hot', 'warm')
COLD_NAMES = tuple(f'cold{i}' for i in range(10))
NAMES = (*HOT_NAMES, *COLD_NAMES)

#: Numbers of shards before and after a change.
COUNTS = ((0, 2), (2, 0), (0, 3), (3, 0), (1, 3), (3, 1))

#: The replicas whose container servers have the filter shardmw-container.
FILTERED = ((), (0,), tuple(REPLICAS))

#: How many writes of hot names and walks a plan has.
HOT_WRITES = 16
WALKS = 32

#: How long proxies cache container info; longer than a response takes.
CACHE_SECONDS = 15

#: How late rows are: uploads take long, and object servers postpone updates.
UPLOAD_SECONDS = (1, 5, 14)
LATE_SECONDS = (5, 11, 24, 40)
VERY_LATE_SECONDS = (50, 70, 90)

#: Stands for the first move of a row where steps name the number of records.
FIRST_MOVE = 9

#: Stands for the time before the first record: the container still has the
#: layout from before an earlier change.
EARLIER = -1

#: When the change begins; how long after the second record its rows begin to
#: move, and for about how long they move; how long a plan goes on afterwards.
BEGIN_SECONDS = 8
MOVE_SECONDS = 20
MOVING_SECONDS = 8
END_SECONDS = 15

#: How long a DELETE takes that outlasts the waits until rows move, and the
#: share of the plans that have one.
SLOW_DELETE_SECONDS = (45, 75)
SLOW_DELETE_SHARE = 0.25

#: For how long databases are missing or on handoffs. The shortest time is
#: enough for a few requests.
LACKING_SECONDS = (3, 12, 25, 40)

#: The places whose databases are missing from replicas.
PLACES = ('root', 'shards', 'all')

#: The number of replicas without these databases. They get them back.
LACKING = (1, 2, 3, 3)

#: How long a replica is stale that missed the creation of the container.
STALE_SECONDS = (10, 40)

#: For how long a replica rejects records: longer than it takes to write two
#: records if the second does not wait until the first is known.
DEAF_SECONDS = 30

#: The requests for hot names.
METHODS = ('PUT', 'PUT', 'PUT', 'DELETE', 'DELETE')


class Step(NamedTuple):
    """An action of a client, or a fault.

    :param kind: PUT, DELETE or walk; cut (a proxy reaches one replica only),
                 away (a replica is away), slow (a replica exceeds the timeout
                 of proxies), deaf (a replica rejects records), handoff (the
                 databases of a place are on handoffs for a while, and their
                 primaries answer 404), lost (the databases are gone, and
                 replicators create them again), stale (a replica missed the
                 deletion and the creation of the container, and still has the
                 earlier plain container), kill (the mover is killed and
                 started again), cancel (the change is cancelled)
    :param record: the number of records of the layout after which the step
                   begins, or FIRST_MOVE, or EARLIER
    :param delay: how many seconds later the step begins
    :param upload: how long a PUT or a DELETE takes
    :param late: how late each replica gets the row
    :param limit: the rows of a page
    :param seconds: how long a fault lasts
    :param place: the place without databases: the root, the shards or all
    :param replicas: the replicas without these databases
    """

    kind: str
    record: int
    delay: float
    proxy: int = 0
    name: str = ''
    upload: float = 0
    late: tuple[float, ...] = (0, 0, 0)
    limit: int = 0
    replica: int = 0
    seconds: float = 0
    place: str = ''
    replicas: tuple[int, ...] = ()

    def __str__(self) -> str:
        default = Step(self.kind, self.record, self.delay)
        parts = [
            f'{field} {value}'
            for field, value in self._asdict().items()
            if value != getattr(default, field)
        ]
        when = f'{self.delay:.2f} s after record {self.record}'
        return ', '.join([f'{self.kind} {when}', *parts])


class Plan(NamedTuple):
    """A plan of all that happens in a world.

    :param earlier: the shard count of the container when it is created; an
                    earlier change from it to `former` has no faults
    :param former: the shard count before the change
    :param shards: the shard count after the change
    :param filtered: the replicas whose container servers have the filter
    """

    seed: int
    earlier: int
    former: int
    shards: int
    filtered: tuple[int, ...]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        lines = [
            f'seed {self.seed}, from {self.former} to {self.shards} shards, '
            f'created with {self.earlier}, filtered {self.filtered}',
            *(f'{number:4} {step}' for number, step in enumerate(self.steps)),
        ]
        return '\n'.join(lines)


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = random.Random(f'{seed} plan')
    former, shards = chance.choice(COUNTS)
    earlier = chance.choice((former, 0 if former else 2))
    filtered = chance.choice(FILTERED)
    steps = []
    for name in COLD_NAMES:
        record, delay = 0, chance.uniform(0, 4)
        if earlier != former and chance.random() < 0.5:
            record, delay = EARLIER, 0
        steps.append(_write(chance, 'PUT', name, record, delay))
        steps += chance.choice(STORIES)(chance, name)
    for _ in range(HOT_WRITES):
        name, method = chance.choice(HOT_NAMES), chance.choice(METHODS)
        steps.append(_write(chance, method, name, *_moment(chance)))
    steps += [_walk(chance, *_moment(chance)) for _ in range(WALKS)]
    faults = _faults(chance)
    steps += faults
    # Separate generators keep the other steps of each seed as they were.
    steps += _lacks(random.Random(f'{seed} lacks'), earlier == former)
    steps += _misses(random.Random(f'{seed} misses'), faults)
    steps += _slow_deletes(random.Random(f'{seed} slow deletes'))
    return Plan(seed, earlier, former, shards, filtered, tuple(steps))


def _moment(chance: random.Random) -> tuple[int, float]:
    """Return a moment: a number of records, and the seconds after them."""
    record = chance.choice((0, 1, 2, 2, 2, 3))
    if record == 0:
        return 0, chance.uniform(0, BEGIN_SECONDS)
    if chance.random() < 0.4:
        return record, chance.expovariate(1)
    if record == 2:
        delay = chance.uniform(0, MOVING_SECONDS)
        return chance.choice(((2, MOVE_SECONDS + delay), (FIRST_MOVE, delay)))
    return record, chance.uniform(0, END_SECONDS)


def _write(chance, method, name, record, delay, **changes) -> Step:
    late = [_lateness(chance) for _ in REPLICAS]
    if method == 'DELETE':
        # A deletion that no replica has may be missed, as documented.
        late[chance.choice(REPLICAS)] = 0
    step = Step(
        method,
        record,
        delay,
        proxy=chance.randrange(PROXIES),
        name=name,
        late=tuple(late),
    )
    return step._replace(**changes)


def _lateness(chance: random.Random) -> float:
    drawn = chance.random()
    if drawn < 0.93:
        return 0
    return chance.choice(LATE_SECONDS)


def _walk(chance, record, delay, **changes) -> Step:
    step = Step(
        'walk',
        record,
        delay,
        proxy=chance.randrange(PROXIES),
        limit=chance.choice((5, 100, 100)),
    )
    return step._replace(**changes)


def _is_left(chance: random.Random, name: str) -> list[Step]:
    """Return the story of an object that does not change."""
    return []


def _is_late(chance: random.Random, name: str) -> list[Step]:
    """Return the story of an overwrite whose row is late."""
    record, delay = chance.choice((0, 1)), chance.uniform(5, MOVE_SECONDS)
    upload = chance.choice((0, *UPLOAD_SECONDS))
    late = [chance.choice((*LATE_SECONDS, *VERY_LATE_SECONDS))] * 3
    return [
        _write(
            chance,
            'PUT',
            name,
            record,
            delay,
            upload=upload,
            late=tuple(late),
        )
    ]


def _is_deleted(chance: random.Random, name: str) -> list[Step]:
    """Return the story of a deletion whose tombstone reaches replicas late."""
    late = [chance.choice(VERY_LATE_SECONDS) for _ in REPLICAS]
    late[chance.choice(REPLICAS)] = 0
    delay = chance.uniform(4, BEGIN_SECONDS)
    return [_write(chance, 'DELETE', name, 0, delay, late=tuple(late))]


def _is_fought_over(chance: random.Random, name: str) -> list[Step]:
    """Return the story of an upload and a deletion by different proxies.

    The proxy that uploads has listed the container and knows the new record.
    The proxy that deletes may not know it.
    """
    record, delay = chance.choice((1, 2)), chance.uniform(0.1, 3)
    return [
        _walk(chance, record, delay / 2, proxy=0),
        _write(chance, 'PUT', name, record, delay, proxy=0),
        _write(
            chance,
            'DELETE',
            name,
            record,
            delay + chance.uniform(0.1, 4),
            proxy=OUTDATED,
        ),
    ]


STORIES = (_is_left, _is_left, _is_late, _is_deleted, _is_fought_over)


def _faults(chance: random.Random) -> list[Step]:
    """Return faults, most of which begin when a record is written."""
    steps = []
    if chance.random() < 0.6:
        steps.append(_fault(chance, 'cut', 1, 0, OUTDATED))
    for record in (1, 2, 3):
        kind = chance.choice(('cut', 'away', '', ''))
        delay = chance.choice((0, chance.uniform(0, 2 * MOVE_SECONDS)))
        if kind:
            proxy = chance.randrange(PROXIES)
            steps.append(_fault(chance, kind, record, delay, proxy))
    if chance.random() < 0.2:
        kind = chance.choice(('kill', 'cancel'))
        delay = chance.uniform(0, 2 * MOVE_SECONDS)
        steps.append(Step(kind, chance.choice((1, 2)), delay))
    return steps


def _lacks(chance: random.Random, may_be_stale: bool) -> list[Step]:
    """Return steps in which replicas lack databases, or are slow or stale.

    :param may_be_stale: True if a replica may be stale from the beginning
    """
    steps = _is_stale(chance) if chance.random() < 0.6 and may_be_stale else []
    for record in (0, 1, 2, 3):
        if chance.random() < 0.3:
            steps += _lack(chance, record)
    return steps


def _misses(chance: random.Random, faults: list[Step]) -> list[Step]:
    """Return steps in which a replica misses the first records of a change.

    If a proxy is cut off when the first record is written, and reaches only
    this replica, that proxy does not see the change until the cut has ended.

    :param faults: the other faults; some of them are such cuts
    """
    return [
        Step('deaf', 0, 0, replica=cut.replica, seconds=DEAF_SECONDS)
        for cut in faults
        if (cut.kind, cut.record, cut.delay) == ('cut', 1, 0)
        and chance.random() < 0.5
    ]


def _slow_deletes(chance: random.Random) -> list[Step]:
    """Return the steps of a DELETE that begins before the change."""
    if chance.random() >= SLOW_DELETE_SHARE:
        return []
    return [
        Step(
            'DELETE',
            0,
            chance.uniform(4, BEGIN_SECONDS),
            proxy=chance.randrange(PROXIES),
            name=chance.choice(COLD_NAMES),
            upload=chance.uniform(*SLOW_DELETE_SECONDS),
        )
    ]


def _is_stale(chance: random.Random) -> list[Step]:
    """Return the steps of a replica that missed the creation.

    It may be the only replica with a database when the change begins.
    """
    order = chance.sample(REPLICAS, len(REPLICAS))
    steps = [
        Step(
            'stale',
            0,
            0,
            replica=order[0],
            seconds=chance.uniform(*STALE_SECONDS),
        )
    ]
    if chance.random() < 0.5:
        steps.append(
            Step(
                'handoff',
                0,
                chance.uniform(BEGIN_SECONDS / 2, BEGIN_SECONDS),
                seconds=chance.choice(LACKING_SECONDS),
                place='root',
                replicas=tuple(sorted(order[1:])),
            )
        )
    return steps


def _lack(chance: random.Random, record: int) -> list[Step]:
    """Return the steps of a period in which replicas lack databases.

    The other replicas may be slow meanwhile, and answer after them.
    """
    kind = chance.choice(('handoff', 'lost'))
    delay = chance.choice((0, chance.uniform(0, MOVE_SECONDS)))
    seconds = chance.choice(LACKING_SECONDS)
    order = chance.sample(REPLICAS, len(REPLICAS))
    count = chance.choice(LACKING)
    if kind == 'lost':
        count = min(count, len(REPLICAS) - 1)
    lack = Step(
        kind,
        record,
        delay,
        seconds=seconds,
        place=chance.choice(PLACES),
        replicas=tuple(sorted(order[:count])),
    )
    others = order[count:] if chance.random() < 0.5 else ()
    return [
        Step('slow', record, delay, replica=replica, seconds=seconds)
        for replica in others
    ] + [lack]


def _fault(chance, kind: str, record: int, delay: float, proxy: int) -> Step:
    return Step(
        kind,
        record,
        delay,
        proxy,
        replica=chance.choice(REPLICAS),
        seconds=chance.uniform(3, 1.5 * CACHE_SECONDS),
    )
