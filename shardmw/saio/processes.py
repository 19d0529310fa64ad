# SPDX-License-Identifier: Apache-2.0
"""The processes of a cluster: started with a mark, found by it, ended.

Every server is started in a session of its own, with an environment variable
that names cluster and server. Workers inherit both. So whatever crashed, /proc
tells what is left of a cluster; no file has to be right for that, and no
process id can be mistaken for another's.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
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
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        pid = int(entry.name)
        marked_folder, _, server = (_mark_of(pid) or '').rpartition(':')
        if marked_folder == str(folder):
            with contextlib.suppress(ProcessLookupError):
                found.append(Process(pid, server, os.getsid(pid)))
    return found


def end(
    folder: Path, wanted: Callable[[Process], bool], patience_seconds: float
) -> None:
    """End processes of the cluster in a folder, and wait until they're gone.

    They're asked first, and killed when patience is over. Those that were
    forked meanwhile are ended too.
    """
    deadline = time.monotonic() + patience_seconds
    with contextlib.ExitStack() as handles:
        asked: dict[int, int | None] = {}
        while left := [each for each in find(folder) if wanted(each)]:
            for process in left:
                if process.pid not in asked:
                    handle = handles.enter_context(_handle(folder, process))
                    asked[process.pid] = handle
                    # a paused process hears nothing until it goes on
                    _signal(handle, signal.SIGTERM, signal.SIGCONT)
                elif time.monotonic() > deadline:
                    _signal(asked[process.pid], signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
        # a process loses its mark a moment before its sockets
        for handle in asked.values():
            _wait(handle)


def send_signal(folder: Path, process: Process, number: int) -> None:
    """Signal a process if it's still the one that was found."""
    with _handle(folder, process) as handle:
        _signal(handle, number)


@contextlib.contextmanager
def _handle(folder: Path, process: Process) -> Iterator[int | None]:
    """What stands for a process and never for a later one of its id.

    None if the process is gone.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        # the id may have gone to another since it was found, but not any
        # more: the handle is for the process whose mark is read now
        same = _mark_of(process.pid) == _mark(folder, process.server)
        yield handle if same else None
    finally:
        os.close(handle)


def _signal(handle: int | None, *numbers: int) -> None:
    for number in numbers if handle is not None else ():
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)


def _wait(handle: int | None) -> None:
    if handle is not None:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll()


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
