# SPDX-License-Identifier: Apache-2.0
"""Start, find and end the processes of a cluster.

Every server is started in a session of its own, with an environment variable
that names the cluster and the server. Workers inherit both. After any crash,
/proc shows which processes of a cluster are left. No file with process ids is
needed, and no process id of another program can be taken for a server's.
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
    """A running process of a cluster."""

    pid: int
    server: str
    session: int

    @property
    def is_main(self) -> bool:
        """Return True for the process that was started, not for a worker."""
        return self.pid == self.session

    @property
    def is_daemon(self) -> bool:
        """Return True for the single run of a daemon."""
        return '@' in self.server


def start(
    folder: Path,
    server: str,
    command: Sequence[str],
    log: Path,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen:
    """Start a server of the cluster in a folder and return its process.

    :param pass_fds: file descriptors that it inherits
    """
    with log.open('ab') as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd='/',
            env=environment(folder, server),
            start_new_session=True,
            pass_fds=pass_fds,
        )


def environment(folder: Path, server: str) -> dict[str, str]:
    """Return the environment of a process of the cluster in a folder."""
    found = {**os.environ, MARK: _mark(folder, server)}
    # It must not report to the service manager of this process.
    found.pop('NOTIFY_SOCKET', None)
    return found


def find(folder: Path) -> list[Process]:
    """Return all running processes of the cluster in a folder."""
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
    """End processes of the cluster in a folder, and wait for their end.

    The processes are terminated, and killed if they still run after
    `patience_seconds`. Processes that they fork meanwhile are ended, too.

    :param folder: the folder of the cluster
    :param wanted: selects the processes to end
    :param patience_seconds: how long to wait before processes are killed
    """
    deadline = time.monotonic() + patience_seconds
    with contextlib.ExitStack() as handles:
        asked: dict[int, int | None] = {}
        while left := [each for each in find(folder) if wanted(each)]:
            for process in left:
                if process.pid not in asked:
                    handle = handles.enter_context(_handle(folder, process))
                    asked[process.pid] = handle
                    # A paused process gets SIGTERM only after SIGCONT.
                    _signal(handle, signal.SIGTERM, signal.SIGCONT)
                elif time.monotonic() > deadline:
                    _signal(asked[process.pid], signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
        # A process loses its mark a moment before its sockets.
        for handle in asked.values():
            _wait(handle)


def send_signal(folder: Path, process: Process, number: int) -> None:
    """Send a signal to a process, unless another process has its id."""
    with _handle(folder, process) as handle:
        _signal(handle, number)


@contextlib.contextmanager
def _handle(folder: Path, process: Process) -> Iterator[int | None]:
    """Open a handle of a process, which no later process can take over.

    :returns: None if the process has ended
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        # The id may have gone to another process before the handle was
        # opened. The mark that is read now is that of the handle's process.
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
    """Return True if a process was stopped by a signal."""
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
        # The process has ended, or it is another user's.
        return None
    for variable in environment.split(b'\0'):
        name, _, value = variable.partition(b'=')
        if name == MARK.encode():
            return os.fsdecode(value)
    return None
