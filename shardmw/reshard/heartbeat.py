# SPDX-License-Identifier: Apache-2.0
"""The note that a process of the daemon leaves after each pass.

It is stored in the register, so that ``shardmw-admin doctor`` can tell on any
machine whether the daemon runs, and what it did last. Each process has one
note, under its number. If several daemons have the same number, the note is
that of the daemon whose pass ended last.
"""

import json
import time
from dataclasses import asdict, dataclass, fields

from shardmw.reshard.register import Register

#: How many of its intervals a process may be silent, and the least time.
SILENT_INTERVALS = 3
SILENT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The note of one process after a pass.

    :param process: its number; 0 if it takes all containers
    :param processes: how many processes divide the containers; 0: none do
    :param host: the name of its machine
    :param version: its version of shardmw
    :param interval: the seconds between two passes
    :param pass_seconds: how long the pass took
    :param changes: how many changes it was working on
    :param settled: how many containers with late rows, strays or empty backing
                    containers it has settled since it started
    :param waiting: how many containers of this kind have to wait
    :param problem: the error that ended the pass, '' for none
    :param noted: when it was noted, in seconds since 1970
    """

    process: int
    processes: int
    host: str
    version: str
    interval: float
    pass_seconds: float
    changes: int
    settled: int
    waiting: int
    problem: str
    noted: float

    def to_text(self) -> str:
        """Return the text to note."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> 'Heartbeat | None':
        """Return the note in a text, None if the text has none.

        Values that a later release adds are ignored.
        """
        try:
            noted = json.loads(text)
            return cls(**{each.name: noted[each.name] for each in fields(cls)})
        except (LookupError, TypeError, ValueError):
            return None

    @property
    def age(self) -> float:
        """Return how long ago it was noted, in seconds."""
        return max(0.0, time.time() - self.noted)

    @property
    def ahead(self) -> float:
        """Return for how long the clock of its machine is ahead, at least."""
        return max(0.0, self.noted - time.time())

    @property
    def is_alive(self) -> bool:
        """Return True if the next note is not overdue."""
        usual = SILENT_INTERVALS * (self.interval + self.pass_seconds)
        return self.age <= max(SILENT_SECONDS, usual)


def heartbeats(register: Register) -> list[Heartbeat]:
    """Return the notes of all processes, by their numbers.

    :raises BackendError: if the register does not answer
    """
    notes = map(Heartbeat.from_text, register.notes_of_processes())
    return sorted(filter(None, notes), key=lambda each: each.process)
