# SPDX-License-Identifier: Apache-2.0
"""The plan of pairs: cells with two faults at the same time. Pure."""

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from test.faults.matrix import (
    CELLS,
    CHANGES,
    NET,
    POWER,
    STORAGE,
    Cell,
    Span,
)
from test.faults.rings import RELOAD_SECONDS

#: How many servers of a kind a cluster has, if there are several that faults
#: can choose from.
SERVERS = {'account': 3, 'container': 3, 'object': 3}

#: The servers that a fault hits, by what fails; otherwise one of that name.
HIT = {
    **{what: {kind: count} for what, (kind, count) in STORAGE.items()},
    'device': dict.fromkeys(SERVERS, 1),
    'memcacheds': {'memcached': 1},
}

#: What never fails together with something else.
ALONE = (NET, *POWER)

#: When the second fault begins, and when the fault ends that ends first, as
#: shares of the time of both.
SECOND_BEGINS, FIRST_ENDS = 0.25, 0.75

#: Pairs that every plan has.
NAMED = (
    'container-slow+mover-killed-reshard',
    'memcacheds-killed+proxy-killed-reshard-inside',
    'container-full+proxy-clock-reshard',
    'device-new+container-cut-reshard',
    'ring-moved+mover-stopped-reshard-inside',
)

#: What the checker allows, by its short name.
ALLOWANCES = {
    'late rows': 'a listing may lack writes from 5 s before the first fault '
    'to 8 s after the last one, until the daemons have run',
    'late objects': 'reads of objects may lack these writes, too',
    'any row': 'a listing may lack any row until the daemons have run',
    'any object': 'reads of objects may lack any write until the daemons have '
    'run, and a DELETE may be without effect: all servers that have the data '
    'may be away while others answer',
    'lost rows': 'the rows of writes from 8 s before a loss of power to 3 s '
    'after it may be lost',
    'clocks': 'writes that are less than 2 s apart may count in the reverse '
    'order',
    'none': 'all acknowledged writes must be visible at once',
}


class Pair(NamedTuple):
    """Two cells of the matrix at the same time.

    It can be run like a cell. The checker allows what it allows in one of the
    two cells, and more if no server with the data may be left.

    :param first: the cell whose fault begins first
    :param second: a cell with the same work; its fault begins while the first
                   one lasts
    :param is_inside: True if the second fault ends before the first one
    """

    first: Cell
    second: Cell
    is_inside: bool

    def __str__(self) -> str:
        faults = '+'.join(f'{each.what}-{each.how}' for each in self.faults)
        inside = '-inside' if self.is_inside else ''
        return f'{faults}-{self.work}{inside}'

    @property
    def faults(self) -> tuple[Cell, ...]:
        """Return both cells."""
        return (self.first, self.second)

    @property
    def work(self) -> str:
        """Return what is under way meanwhile."""
        return self.first.work

    @property
    def stales_rows(self) -> bool:
        """Return True if rows may be late until the daemons have run."""
        return any(each.stales_rows for each in self.faults)

    @property
    def stales_objects(self) -> bool:
        """Return True if replicas of objects may be stale."""
        return any(each.stales_objects for each in self.faults)

    @property
    def forgets_rows(self) -> bool:
        """Return True if rows from before the faults may be late, too."""
        return self.lacks_data or any(e.forgets_rows for e in self.faults)

    @property
    def loses_rows(self) -> bool:
        """Return True if no replica may have the rows of the last writes."""
        return any(each.loses_rows for each in self.faults)

    @property
    def lacks_data(self) -> bool:
        """Return True if no replica with the data may answer for a while.

        When rings have grown from one replica to three, two of three servers
        lack the data until the replicators run. If another fault hits the
        third one, Swift answers 404, also to a DELETE, which then does
        nothing.
        """
        return any(
            one.how == 'grown' and {*_hit(other)} & {*SERVERS}
            for one, other in (self.faults, self.faults[::-1])
        )

    @property
    def slack_seconds(self) -> float:
        """Return by how much the clocks of two proxies differ."""
        return max(each.slack_seconds for each in self.faults)

    @property
    def early_seconds(self) -> float:
        """Return how long before the faults writes may be late, or lost."""
        return max(each.early_seconds for each in self.faults)

    def spans(self, seconds: float) -> tuple[Span, ...]:
        """Return when each fault begins, and for how long it lasts.

        A fault of rings needs more time, until all servers have loaded them.
        """
        waits = [
            RELOAD_SECONDS * (each.what == 'ring') for each in self.faults
        ]
        shares = [FIRST_ENDS, 1 - SECOND_BEGINS]
        if self.is_inside:
            shares = [1, FIRST_ENDS - SECOND_BEGINS]
        first, second = (share * seconds for share in shares)
        return (
            (self.first, 0, first + waits[1]),
            (self.second, waits[0] + SECOND_BEGINS * seconds, second),
        )


def allowances(cell: Cell | Pair) -> list[str]:
    """Return the short names of what the checker allows in a cell."""
    found = {
        'late rows': cell.stales_rows,
        'late objects': cell.stales_objects,
        'any row': cell.forgets_rows,
        'any object': cell.lacks_data,
        'lost rows': cell.loses_rows,
        'clocks': cell.slack_seconds,
    }
    names = [name for name, is_allowed in found.items() if is_allowed]
    return names or ['none']


def contradict(first: Cell, second: Cell) -> bool:
    """Return True if two faults cannot be caused at the same time.

    Both would hit the same server or the rings, or the only replica would be
    destroyed: ring-grown begins with one.
    """
    hit = Counter(_hit(first)) + Counter(_hit(second))
    hows = {first.how, second.how}
    return any(hit[kind] > SERVERS.get(kind, 1) for kind in hit) or (
        'grown' in hows and bool(hows & {'old', 'new'})
    )


def planned() -> list[Pair]:
    """Return few pairs that have all features of all possible pairs.

    The plan is always the same. After the named pairs, each next one has the
    most features that those before it lack; of such pairs, it is one whose
    parts have failed least often.
    """
    features = {pair: _features(pair) for pair in possible()}
    missing = set().union(*features.values())
    plan = [pair for pair in features if str(pair) in NAMED]
    used: Counter[str] = Counter()

    def worth(pair: Pair) -> tuple[int, int]:
        gain = len(features[pair] & missing)
        return gain, -sum(used[each.what] for each in pair.faults)

    for pair in plan:
        missing -= features[pair]
        used.update(each.what for each in pair.faults)
        if missing and pair is plan[-1]:
            plan.append(max(features, key=worth))
    return plan


def _features(pair: Pair) -> set[Hashable]:
    """Return what a plan must have of a pair: kinds, parts and work."""
    first, second = pair.faults
    return {
        frozenset({first.how, second.how}),
        *((each.what, each.how) for each in pair.faults),
        *((each.how, each.work) for each in pair.faults),
        ('first', first.how, pair.is_inside),
        ('second', second.how, pair.is_inside),
    }


def possible() -> Iterator[Pair]:
    """Yield all pairs of which a plan can choose, changes of layout first.

    The second fault of every other pair ends first. Faults of a network, and
    losses of power, come alone.
    """
    shared = [cell for cell in CELLS if cell.what not in ALONE]
    cells = sorted(shared, key=lambda cell: cell.work not in CHANGES)
    pairs = (
        (first, second)
        for first, second in itertools.permutations(cells, 2)
        if first.work == second.work and not contradict(first, second)
    )
    for number, (first, second) in enumerate(pairs):
        yield Pair(first, second, bool(number % 2))


def _hit(cell: Cell) -> dict[str, int]:
    return HIT.get(cell.what, {cell.what: 1})
