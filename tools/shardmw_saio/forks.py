# SPDX-License-Identifier: Apache-2.0
"""Run daemons and commands of a cluster in children of one process.

Most runs take less time than loading Swift. A :class:`Forker` loads it once,
in a process of its own, and forks a child for each run. The process belongs to
the one that started it, and ends with it.
"""

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from swift.common import utils

from shardmw_saio import processes
from shardmw_saio.commands import on_host
from shardmw_saio.errors import SaioError
from shardmw_saio.options import Host

#: The names of its process and children have an @, as those of daemons have.
NAME = 'daemons@forks'

_MAIN = f'import sys; from {__name__} import main; main(sys.argv[1:])'
_MOST_BYTES = 1 << 17


class Run:
    """A child that runs a function.

    :ivar pid: its process id, and that of its session
    :raises SaioError: if the process that forks has ended
    """

    def __init__(self, replies: socket.socket) -> None:
        self._replies = replies
        self._code: int | None = None
        pid = replies.recv(_MOST_BYTES)
        if not pid:
            raise SaioError('the process that runs daemons has ended')
        self.pid = int(pid)

    def wait(self, seconds: float | None = None) -> int:
        """Wait for the end of the run.

        :param seconds: for how long; the child is killed then
        :returns: the exit code, negative if the child was killed
        :raises TimeoutError: if the child was still running
        """
        if self._code is None:
            self._replies.settimeout(seconds)
            try:
                code = self._replies.recv(_MOST_BYTES)
            except TimeoutError:
                os.kill(self.pid, signal.SIGKILL)
                raise
            self._code = int(code or -signal.SIGKILL)
            self._replies.close()
        return self._code


class Forker:
    """The process that forks.

    It starts when it is used first.

    :param folder: the folder of the cluster
    :param etc: the folder of its configuration
    :param log: what the process itself prints goes here
    :param host: where it runs
    """

    def __init__(self, folder: Path, etc: Path, log: Path, host: Host) -> None:
        self._folder, self._etc, self._log = folder, etc, log
        self._host = host
        self._lock = threading.Lock()
        self._process = self._channel = None

    def run(
        self,
        modules: Sequence[str],
        arguments: Sequence[str],
        output: int,
        errors: int,
    ) -> Run:
        """Call the function ``main`` of a module with arguments.

        The child has the environment and the folder of the calling process.

        :param modules: the module, and others that are loaded before the fork
        :param output: the file descriptor of the standard output
        """
        where = os.getcwd(), processes.environment(self._folder, NAME)
        message = json.dumps([modules, arguments, *where]).encode()
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        files = [theirs.fileno(), output, errors]
        with theirs, self._lock:
            try:
                self._send(message, files)
            except BrokenPipeError:  # its process was ended
                self._forget()
                self._send(message, files)
        return Run(ours)

    def end(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._forget()

    def _send(self, message: bytes, files: Sequence[int]) -> None:
        if self._channel is None:
            ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
            with theirs:
                self._process = self._start(theirs.fileno())
            self._channel = ours
        socket.send_fds(self._channel, [message], files)

    def _start(self, channel: int) -> subprocess.Popen:
        command = [sys.executable, '-c', _MAIN, str(channel), str(self._etc)]
        return processes.start(
            self._folder,
            NAME,
            on_host(self._host, command),
            self._log,
            pass_fds=[channel],
        )

    def _forget(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._process.wait()
            self._process = self._channel = None


def main(arguments: Sequence[str]) -> None:
    """Fork until the other end of the channel is closed.

    :param arguments: the file descriptor of the channel, and the folder of the
                      configuration
    """
    number, etc = arguments
    utils.set_swift_dir(etc)  # some modules read swift.conf at their import
    channel = socket.socket(fileno=int(number))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # leaves no zombies
    while True:
        message, files, _, _ = socket.recv_fds(channel, _MOST_BYTES, 3)
        if not message:
            return
        modules, rest, folder, environment = json.loads(message)
        for name in modules:
            with suppress(Exception):  # the child shows why
                importlib.import_module(name)
        if not os.fork():
            channel.close()
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            _run(modules[0], rest, *files)
        for each in files:
            os.close(each)


def _run(
    module: str, arguments: Sequence[str], reply: int, output: int, errors: int
) -> None:
    """Call a function and end this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.set_inheritable(reply, False)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.close(output)
    os.close(errors)
    os.write(reply, b'%d' % os.getpid())
    code = _code_of(lambda: importlib.import_module(module).main(arguments))
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(reply, b'%d' % code)
    os._exit(code)


def _code_of(call: Callable[[], int | None]) -> int:
    """Return the exit code of a function that runs as a program's main."""
    try:
        code = call()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        return 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        return 1
    return code or 0
