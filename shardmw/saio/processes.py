# SPDX-License-Identifier: Apache-2.0
"""The processes of a cluster: started with a mark, found by it, ended.

Every server is started in a session of its own, with an environment variable
that names cluster and server. Workers inherit both. So whatever crashed, /proc
tells what is left of a cluster; no file has to be right for that, and no
process id can be mistaken for another's.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

MARK = 'SHARDMW_SAIO_PROCESS'

_PROC = Path('/proc')
_POLL_SECONDS = 0.01


class Process(NamedTuple):
    """A living process of a cluster."""

    pid: int
    server: str
    session: int

    @property
    def is_main(self) -> bool:
        """Whether it's the one that was started, and not a worker."""
        return self.pid == self.session

    @property
    def is_daemon(self) -> bool:
        """Whether it's a daemon's single run, and not a server."""
        return '@' in self.server


def start(
    folder: Path, server: str, command: Sequence[str], log: Path
) -> subprocess.Popen:
    """Start a server of the cluster in a folder."""
    environment = {**os.environ, MARK: _mark(folder, server)}
    # a service manager's socket is not for the servers to report to
    environment.pop('NOTIFY_SOCKET', None)
    with log.open('ab') as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd='/',
            env=environment,
            start_new_session=True,
        )


def find(folder: Path) -> list[Process]:
    """All living processes of the cluster in a folder."""
    prefix = _mark(folder, '')
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        pid = int(entry.name)
        mark = _mark_of(pid)
        if mark is not None and mark.startswith(prefix):
            with contextlib.suppress(ProcessLookupError):
                server = mark.removeprefix(prefix)
                found.append(Process(pid, server, os.getsid(pid)))
    return found


def end(
    folder: Path, wanted: Callable[[Process], bool], patience_seconds: float
) -> None:
    """End processes of the cluster in a folder, and wait until they're gone.

    They're asked first, and killed when patience is over. Those that were
    forked meanwhile are ended too.
    """
    asked: set[int] = set()
    deadline = time.monotonic() + patience_seconds
    while left := [each for each in find(folder) if wanted(each)]:
        out_of_patience = time.monotonic() > deadline
        for process in left:
            if out_of_patience:
                send_signal(folder, process, signal.SIGKILL)
            elif process.pid not in asked:
                asked.add(process.pid)
                send_signal(folder, process, signal.SIGTERM)
                # a paused process hears nothing else
                send_signal(folder, process, signal.SIGCONT)
        time.sleep(_POLL_SECONDS)


def send_signal(folder: Path, process: Process, number: int) -> None:
    """Signal a process if it's still the one that was found."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        # the id may have gone to another process since, but not any more:
        # the handle is bound to the process whose mark is read now
        if _mark_of(process.pid) == _mark(folder, process.server):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def is_paused(process: Process) -> bool:
    """Whether a process was stopped by a signal."""
    try:
        stat = (_PROC / str(process.pid) / 'stat').read_text()
    except OSError:
        return False
    return stat.rpartition(')')[2].split()[0] == 'T'


def _mark(folder: Path, server: str) -> str:
    return f'{folder}:{server}'


def _mark_of(pid: int) -> str | None:
    try:
        environment = (_PROC / str(pid) / 'environ').read_bytes()
    except OSError:
        # it ended, or is another user's
        return None
    for variable in environment.split(b'\0'):
        name, _, value = variable.partition(b'=')
        if name == MARK.encode():
            return os.fsdecode(value)
    return None
