# SPDX-License-Identifier: Apache-2.0
"""The progress of changes, and the last progress stored for all machines.

The process that makes a change stores its progress in the container's row of
the register. So ``shardmw-admin status`` can show it on any machine.
"""

import contextlib
import json
import time
from dataclasses import dataclass

from shardmw.backend.containers import BackendError
from shardmw.core.layout import Sharding
from shardmw.core.paths import Path
from shardmw.reshard.register import Register

#: The least time between two notes, unless the phase changes or a wait begins.
NOTE_SECONDS = 30

#: How often to note progress that has not changed, to show that a process is
#: working on the change.
ALIVE_SECONDS = 300


@dataclass(slots=True)
class Progress:
    """The progress of a change.

    :ivar phase: the phase or the wait that it is in
    :ivar moved: how many rows it has moved in its present direction
    :ivar total: about how many rows it has to move in all; None if not known
                 yet
    :ivar problem: why it waits, '' if it does not
    :ivar change: the id of the layout that it changes to, and the sharding
                  before; None if only its last steps are left
    :ivar is_queued: True if it waits for other changes, and not for a failure
    """

    phase: str = ''
    moved: int = 0
    total: int | None = None
    problem: str = ''
    change: tuple[str, Sharding] | None = None
    is_queued: bool = False


@dataclass(frozen=True, slots=True)
class NotedProgress:
    """The progress of a change that was noted last.

    :param layout_id: the id of the layout that the container changes to
    :param former: the sharding before the change
    :param phase: the phase or the wait that it was in
    :param moved: how many rows the process had moved
    :param total: about how many rows the process has to move; None if not
                  known
    :param rate: rows moved per second since the note before; None if none
                 have moved since
    :param problem: why it waited, '' if it did not
    :param noted: when it was noted, in seconds since 1970
    """

    layout_id: str
    former: Sharding
    phase: str
    moved: int
    total: int | None
    rate: float | None
    problem: str
    noted: float

    @property
    def age(self) -> float:
        """Return how long ago it was noted, in seconds."""
        return max(0.0, time.time() - self.noted)

    def to_text(self) -> str:
        """Return the text to note."""
        return json.dumps(
            {
                'id': self.layout_id,
                'former': self.former,
                'phase': self.phase,
                'moved': self.moved,
                'total': self.total,
                'rate': self.rate,
                'problem': self.problem,
                'noted': self.noted,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> 'NotedProgress | None':
        """Return the progress in a text, None if the text has none."""
        try:
            values = json.loads(text)
            return cls(
                values['id'],
                Sharding(*values['former']),
                values['phase'],
                values['moved'],
                values['total'],
                values['rate'],
                values['problem'],
                values['noted'],
            )
        except (LookupError, TypeError, ValueError):
            return None

    def as_json(self) -> dict:
        """Return the values for ``--json``."""
        return {
            'phase': self.phase,
            'rows_moved': self.moved,
            'rows': self.total,
            'rows_per_second': self.rate,
            'problem': self.problem,
            'age_seconds': self.age,
        }


class ProgressNotes:
    """Notes the progress of a container's change at intervals.

    :param path: the path of the container
    """

    def __init__(self, register: Register, path: Path) -> None:
        self._register = register
        self._path = path
        self._noted: NotedProgress | None = None
        self._when = 0.0

    def note(self, progress: Progress) -> None:
        """Note progress if it is due. Go on if the register fails."""
        if progress.change is None:
            return
        seconds = time.monotonic() - self._when
        noted = self._next(progress, seconds)
        if not self._is_due(noted, seconds):
            return
        self._noted, self._when = noted, time.monotonic()
        # The change itself reports servers that do not answer.
        with contextlib.suppress(BackendError):
            self._register.note(self._path, noted.to_text())

    def _next(self, progress: Progress, seconds: float) -> NotedProgress:
        layout_id, former = progress.change
        rows = progress.moved - (self._noted.moved if self._noted else 0)
        return NotedProgress(
            layout_id,
            former,
            progress.phase,
            progress.moved,
            progress.total,
            round(rows / seconds, 1) if rows > 0 and self._noted else None,
            progress.problem,
            time.time(),
        )

    def _is_due(self, noted: NotedProgress, seconds: float) -> bool:
        last = self._noted
        if last is None or last.phase != noted.phase:
            return True
        if noted.problem and not last.problem:
            return True
        is_same = (last.moved, last.problem) == (noted.moved, noted.problem)
        return seconds >= (ALIVE_SECONDS if is_same else NOTE_SECONDS)
