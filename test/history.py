# SPDX-License-Identifier: Apache-2.0
"""Check what clients have seen of a container against last-write-wins. Pure.

Every operation is recorded with the time at which it began and ended. A name's
state is that of the last write. A write surely replaces all writes that had
ended before it began, once it has ended itself. So at any time the possible
states are those of the writes that no later write had surely replaced. A read
must show one of the states that were possible between its beginning and its
end.

A write is acknowledged before all databases need to have its row. So for
listings, a write replaces others only when it is *listed*.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

#: How many notes the text of a violation shows.
NOTES = 20

T = TypeVar('T')


class Write(NamedTuple):
    """A PUT, POST or DELETE of a name.

    :param began: in seconds
    :param ended: by then it has happened, or never will
    :param value: what tells the body of a PUT from other bodies
    :param size: the size of the body
    :param meta: the metadata that a PUT or POST has set
    :param is_sure: False if it was not acknowledged
    :param listed: when all databases had its row; None if when it ended
    :param by: the client
    :param stored: when all replicas of the object had it; None if when it
                   ended
    """

    name: str
    method: str
    began: float
    ended: float
    value: str = ''
    size: int = 0
    meta: str = ''
    is_sure: bool = True
    listed: float | None = None
    by: str = ''
    stored: float | None = None

    @property
    def is_delete(self) -> bool:
        """Return True if there is no object after it."""
        return self.method == 'DELETE'

    @property
    def known(self) -> float:
        """Return when all databases had its row."""
        return self.ended if self.listed is None else self.listed

    def shown_from(self, read: 'Read') -> float:
        """Return when a kind of read has to show it, or a later write."""
        if read.is_listing:
            return self.known
        return self.ended if self.stored is None else self.stored

    def overlaps(self, other: 'Write') -> bool:
        """Return True if another write may have happened during this one."""
        return self.began <= other.known and other.began <= self.known


class Shown(NamedTuple):
    """Hold what a read has shown of an object, None for what it does not."""

    value: str | None = None
    meta: str | None = None
    size: int | None = None


class Read(NamedTuple):
    """A GET or HEAD of an object, a page of a listing, or a walk.

    :param what: what it was
    :param shown: by name; None for an object that it did not show
    :param is_listing: True if it shows rows of databases
    """

    what: str
    began: float
    ended: float
    shown: dict[str, Shown | None]
    is_listing: bool = False
    by: str = ''


class Violation(NamedTuple):
    """A read that no order of the writes explains.

    :param name: the name that it shows wrongly; None for a listing whose
                 order is wrong
    """

    read: Read
    name: str | None


class History:
    """Record what clients have done and seen.

    :ivar counts: the operations by method
    :ivar refused: the requests that were refused, by method and status
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.writes: dict[str, list[Write]] = defaultdict(list)
        self.reads: list[Read] = []
        self.notes: list[tuple[float, str]] = []
        self._disordered: list[Violation] = []

    def wrote(self, write: Write) -> None:
        """Record a write."""
        self.writes[write.name].append(write)

    def read(self, read: Read) -> None:
        """Record a read."""
        self.reads.append(read)

    def page(
        self,
        read: Read,
        rows: Sequence[tuple[str, int]],
        names: Iterable[str],
        marker: str = '',
        is_last: bool = True,
        is_reverse: bool = False,
    ) -> None:
        """Record a page of a listing.

        :param read: what it was; it shows nothing yet
        :param rows: the names and sizes that it has shown
        :param names: all names that clients use
        :param is_last: True if no page follows
        """
        listed = [name for name, _ in rows]
        read = read._replace(is_listing=True)
        if listed != sorted(set(listed), reverse=is_reverse):
            shown = dict.fromkeys(listed, Shown())
            wrong = read._replace(shown=shown, what=f'{read.what} {listed}')
            self._disordered.append(Violation(wrong, None))
        low, high = marker, None if is_last else listed[-1]
        if is_reverse:
            low, high = high or '', marker or None
        sizes = {name: Shown(size=size) for name, size in rows}
        shown = {
            name: sizes.get(name)
            for name in sorted({*names, *sizes})
            if (name in sizes or low < name)
            and (high is None or name in sizes or name < high)
        }
        self.read(read._replace(shown=shown))

    def walked(
        self, read: Read, listed: Sequence[str], names: Iterable[str]
    ) -> None:
        """Record a walk through all pages of a listing.

        Objects that exist all the time must be in it, each exactly once.

        :param read: what it was; it shows nothing yet
        :param listed: the names of all pages
        :param names: all names that clients use
        """
        is_reverse = listed and listed[0] > listed[-1]
        self.page(
            read,
            [(name, None) for name in listed],
            names,
            is_reverse=bool(is_reverse),
        )

    def failed(self, read: Read) -> None:
        """Record a read that is wrong whatever was written."""
        self._disordered.append(Violation(read, None))

    def note(self, at: float, text: str) -> None:
        """Record what has happened meanwhile, such as a fault."""
        self.notes.append((at, text))

    def add(self, other: 'History') -> None:
        """Add what another recorder has."""
        for name, writes in other.writes.items():
            self.writes[name] += writes
        self.reads += other.reads
        self.notes += other.notes
        self.counts += other.counts
        self.refused += other.refused
        self._disordered += other._disordered

    def violations(self) -> list[Violation]:
        """Return the reads that no order of the writes explains."""
        return self._disordered + [
            Violation(read, name)
            for read in self.reads
            for name, shown in read.shown.items()
            if not explains(self.writes[name], read, shown)
        ]

    def shortest(self, violation: Violation) -> list[Write | Read]:
        """Return the fewest operations that show a violation, in order.

        Each of them that is left out makes it none. The write of what the
        read has shown stays.
        """
        read, name = violation
        if name is None:
            return [read]
        shown = read.shown[name]

        def is_wrong(writes: list[Write]) -> bool:
            return not explains(writes, read, shown)

        writes = [w for w in self.writes[name] if w.began < read.ended]
        kept = [w for w in writes if _is_shown(w, shown)][-1:]
        kept += [w for w in writes if _has_set(w, shown) and w not in kept]
        others = [w for w in writes if w not in kept]
        least = smallest(others, lambda some: is_wrong([*some, *kept]))
        only = read._replace(shown={name: shown})
        return sorted([*least, *kept, only], key=lambda each: each.began)

    def text(self, violation: Violation) -> str:
        """Return the shortest history of a violation, a line a step.

        It has what happened meanwhile, such as faults and changes of layout.
        """
        steps = self.shortest(violation)
        first, last = steps[0].began, violation.read.ended
        notes = [note for note in self.notes if first <= note[0] <= last]
        lines = [(each.began, described(each)) for each in steps]
        lines += [
            (at, f'{at:9.3f}           | {what}')
            for at, what in sorted(notes)[-NOTES:]
        ]
        return '\n'.join(text for _, text in sorted(lines))


def explains(writes: Iterable[Write], read: Read, shown: Shown | None) -> bool:
    """Return True if a read may show this of a name with these writes."""
    writes = list(writes)
    bodies = possible([w for w in writes if w.method != 'POST'], read)
    if shown is None:
        return any(each is None or each.is_delete for each in bodies)
    puts = [each for each in bodies if each and not each.is_delete]
    if not puts:
        return False
    if shown.value is not None:
        metas = possible(writes, read)
        return shown.value in {put.value for put in puts} and (
            shown.meta in {each.meta for each in metas if each}
        )
    if shown.size is None or shown.size in {put.size for put in puts}:
        return True
    # While an object is deleted, its row in the old place goes last: a listing
    # may show the size that it had before it was last overwritten.
    is_being_deleted = any(
        each.is_delete and not (each.is_sure and each.known < read.began)
        for each in bodies
        if each
    )
    # A POST that meets a PUT may keep the older size in the listing.
    is_posted = any(
        put.overlaps(w) for w in writes if w.method == 'POST' for put in puts
    )
    sizes = {w.size for w in writes if w.method == 'PUT'}
    return (is_being_deleted or is_posted) and shown.size in sizes


def possible(writes: Iterable[Write], read: Read) -> list[Write | None]:
    """Return the writes that may have been the last one during a read.

    :returns: with None if there may have been no write
    """
    writes = list(writes)
    last = max(
        (
            w.began
            for w in writes
            if w.is_sure and w.shown_from(read) < read.began
        ),
        default=-math.inf,
    )
    states = [w for w in writes if w.began < read.ended and w.ended >= last]
    return states if last > -math.inf else [*states, None]


def smallest(items: Sequence[T], is_wrong: Callable[[list[T]], bool]) -> list:
    """Return a part of a sequence that still is wrong, by delta debugging.

    Of what is returned, no single item can be left out.

    :param is_wrong: returns True if a part shows what is looked for
    """
    items, size = list(items), max(1, len(items) // 2)
    while items:
        for start in range(0, len(items), size):
            part = items[:start] + items[start + size :]
            if is_wrong(part):
                items = part
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return items


def described(step: Write | Read) -> str:
    """Return a line that says what a client has done or seen."""
    end = 'never' if step.ended == math.inf else f'{step.ended:.3f}'
    times = f'{step.began:9.3f} {end:>9}'
    if isinstance(step, Read):
        shown = ', '.join(
            f'{name}: {_text_of(state)}' for name, state in step.shown.items()
        )
        return f'{times} {step.by} {step.what} shows {shown}'
    text = f'{times} {step.by} {step.method} {step.name}'
    if step.method == 'PUT':
        text += f' {step.value} of {step.size} bytes'.replace('  ', ' ')
    if step.meta:
        text += f' meta {step.meta}'
    if step.listed is not None and step.listed != step.ended:
        text += f', all rows at {step.listed:.3f}'
    return text if step.is_sure else text + ' (not acknowledged)'


def _is_shown(write: Write, shown: Shown | None) -> bool:
    if shown is None or write.method != 'PUT':
        return False
    if shown.value is not None:
        return write.value == shown.value
    return shown.size in (None, write.size)


def _has_set(write: Write, shown: Shown | None) -> bool:
    return bool(shown and shown.meta) and write.meta == shown.meta


def _text_of(shown: Shown | None) -> str:
    if shown is None:
        return 'missing'
    parts = [
        f'{field} {value}'
        for field, value in zip(shown._fields, shown, strict=True)
        if value is not None
    ]
    return ' '.join(parts) or 'listed'
