# SPDX-License-Identifier: Apache-2.0
"""Changes of layout at random, some of them cancelled or killed."""

import random
import signal
import subprocess
import threading
import time
from collections.abc import Sequence

from shardmw.saio import Cluster
from test.functional.operating import SETTLE_SECONDS, Admin
from test.history import History

COUNTS = (4, 32, 7, 0)

#: What ``shardmw-admin`` reports once all proxies know of a change.
KNOWN = ('waiting to move', 'moving', 'settling', 'cleaning up', 'done')

#: How many changes are cancelled, and how many of what changes the layout is
#: killed and started again.
CANCELLED_SHARE = 0.25
KILLED_SHARE = 0.3
LIFE_SECONDS = (0.5, 10)

OPTIONS = ('--settle-seconds', SETTLE_SECONDS)
PATIENCE_SECONDS = 300


class Changes:
    """Changes the layout of a container, over and over.

    A deletion that waits on an object server when a change begins may be
    missed, as the documentation says. So the object updater runs before, and
    no server of containers fails until all proxies know of the change.

    :param path: the container, ``account/container``
    :param kinds: mover and cancel, if they may happen
    :param quiet: held while a change begins
    :ivar count: how many changes have ended
    :ivar state: what is under way
    """

    def __init__(
        self,
        cluster: Cluster,
        admin: Admin,
        path: str,
        chance: random.Random,
        kinds: Sequence[str],
        quiet: threading.Lock,
    ) -> None:
        self.cluster = cluster
        self.admin = admin
        self.path = path
        self.history = History()
        self.count = 0
        self.state = 'plain'
        self.error: BaseException | None = None
        self._kinds = kinds
        self._chance = random.Random(chance.random())
        self._quiet = quiet

    def run(self, stop: threading.Event) -> None:
        """Change the layout until the event, and end the last change."""
        try:
            while not stop.is_set():
                for count in COUNTS:
                    if not stop.is_set():
                        self._change(count)
        except BaseException as error:
            self.error = error

    def _change(self, count: int) -> None:
        if self._chance.random() < 0.2:
            return  # from another count next time
        self.state = f'to {count} shards'
        self._note(f'a change to {count} shards begins')
        with self._quiet:
            self.cluster.daemon('object-updater')
            mover = self._start(count)
            known = threading.Event()
            reader = threading.Thread(target=self._read, args=(mover, known))
            reader.start()
            known.wait(PATIENCE_SECONDS)
        is_cancelled = self._happens('cancel', CANCELLED_SHARE)
        if is_cancelled or self._happens('mover', KILLED_SHARE):
            time.sleep(self._chance.uniform(*LIFE_SECONDS))
            mover.send_signal(signal.SIGKILL)
            self._note('what changes the layout is killed')
        mover.wait(PATIENCE_SECONDS)
        reader.join()
        if is_cancelled:
            self._note('the change is cancelled')
            is_cancelled = not self.admin(
                'cancel', self.path, *OPTIONS
            ).returncode
        if not is_cancelled:
            self._finish(count)
        self.count += 1

    def _happens(self, kind: str, share: float) -> bool:
        return kind in self._kinds and self._chance.random() < share

    def _start(self, count: int) -> subprocess.Popen:
        return self.admin.start('reshard', self.path, str(count), *OPTIONS)

    def _read(self, mover, known: threading.Event) -> None:
        """Read what is reported, so that its pipe does not fill."""
        for line in mover.stderr:
            self._note(line.strip())
            if any(phase in line for phase in KNOWN):
                known.set()
        known.set()

    def _finish(self, count: int) -> None:
        """Go on with a change that was killed, to its end."""
        mover = self._start(count)
        _, errors = mover.communicate(timeout=PATIENCE_SECONDS)
        is_done = 'already' in errors or mover.returncode == 0
        assert is_done, errors

    def _note(self, text: str) -> None:
        self.history.note(time.monotonic(), text)
