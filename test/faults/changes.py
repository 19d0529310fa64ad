# SPDX-License-Identifier: Apache-2.0
"""Repeated changes of layout while the clients of a cell work."""

import itertools
import math
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable

from test.faults.matrix import CHANGES, Cell
from test.faults.plan import Pair
from test.faults.site import Site
from test.functional.operating import SETTLE_SECONDS

#: The option allows a change to begin while object servers have pending rows.
DESPITE = '--despite-backlog'
OPTIONS = ('--settle-seconds', SETTLE_SECONDS, '--ask-for-objects')

#: The phases in which the mover is killed or stopped, and how long after the
#: beginning of the phase.
PHASES = ('announced', 'waiting to move', 'moving', 'settling')
LIFE_SECONDS = (0, 1)
RETRY_SECONDS = 1
POLL_SECONDS = 0.1
PATIENCE_SECONDS = 120


class Changes(threading.Thread):
    """A thread that changes the layout of a container again and again.

    :ivar count: how many changes have ended
    :ivar lines: what their movers have printed
    :ivar shards: the shard count that the container has in the end
    :ivar problem: why the last change does not end, '' if it has ended
    """

    def __init__(
        self, site: Site, cell: Cell | Pair, path: str, chance: random.Random
    ) -> None:
        super().__init__()
        self.shards, targets = CHANGES[cell.work]
        self.count = 0
        self.lines: list[str] = []
        self.problem = ''
        self._targets = itertools.cycle((*targets, self.shards))
        self._site = site
        self._path = path
        self._failure = next(
            (each.how for each in cell.faults if each.what == 'mover'), ''
        )
        self._chance = chance
        self._healed = threading.Event()
        self._stop_asked = threading.Event()
        self._deadline = math.inf

    def wait_until(self, is_so: Callable[[], bool], seconds: float) -> None:
        """Wait until the changes have come so far, at most some seconds."""
        deadline = time.monotonic() + seconds
        while not is_so() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def has_reached(self, phase: str, since: int = 0) -> bool:
        """Return True if a mover has printed a phase.

        :param since: the number of lines that do not count
        """
        return any(phase in line for line in self.lines[since:])

    def heal(self) -> None:
        """Let the movers of further changes live."""
        self._healed.set()

    def finish(self) -> None:
        """Wait for the end of the last change, and begin no other one."""
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        self._stop_asked.set()
        self.join()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            target = next(self._targets)
            if self._change(target):
                self.shards = target
                self.count += 1

    def _change(self, target: int) -> bool:
        """Change the shard count; return False if that was cancelled."""
        while True:
            mover = self._site.admin.start(
                'reshard', self._path, str(target), DESPITE, *OPTIONS
            )
            first = len(self.lines)
            follower = threading.Thread(target=self._follow, args=(mover,))
            follower.start()
            is_cancelled = False
            if self._failure and not self._healed.is_set():
                is_cancelled = self._fail(mover, first)
            with mover.stdout, mover.stderr:
                try:
                    mover.wait(PATIENCE_SECONDS)
                except subprocess.TimeoutExpired:
                    mover.kill()
                    mover.wait()
                follower.join()
            if is_cancelled:
                return False
            errors = ''.join(self.lines[first:])
            if mover.returncode == 0 or f'has {target} shards' in errors:
                return True
            if self._failure == 'cancelled' and self._cancel():
                return False
            time.sleep(RETRY_SECONDS)
            if time.monotonic() > self._deadline:
                self.problem = f'sharded: the change does not end: {errors}'
                return False

    def _follow(self, mover: subprocess.Popen) -> None:
        for line in mover.stderr:
            self.lines.append(line)

    def _fail(self, mover: subprocess.Popen, first: int) -> bool:
        """Kill or stop the mover in a phase of its change.

        :param first: the number of lines that earlier movers have printed
        :returns: True if the change was cancelled while the mover was stopped
        """
        phase = self._chance.choice(PHASES)
        self.wait_until(
            lambda: self.has_reached(phase, first) or mover.poll() is not None,
            PATIENCE_SECONDS,
        )
        time.sleep(self._chance.uniform(*LIFE_SECONDS))
        if self._failure != 'stopped':
            mover.kill()
            return False
        mover.send_signal(signal.SIGSTOP)
        try:
            return self._cancel()
        finally:
            mover.send_signal(signal.SIGCONT)

    def _cancel(self) -> bool:
        """Cancel the change; return True if its rows have moved back."""
        return not self._site.admin(
            'cancel', self._path, *OPTIONS[:2]
        ).returncode
