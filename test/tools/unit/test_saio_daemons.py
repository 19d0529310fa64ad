# SPDX-License-Identifier: Apache-2.0
"""The process that runs daemons in the background."""

import os
import socket
import threading

import pytest
from shardmw_saio import daemons
from shardmw_saio.probes import answers
from shardmw_saio.topology import Server


class Recorder:
    """A replacement for a daemon and its logger."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.passes = 0
        self.lines = []
        self.logger = self

    def run_once(self) -> None:
        self.passes += 1
        if self.error:
            raise self.error

    def exception(self, line: str) -> None:
        self.lines.append(line)


def test_a_pass_goes_on_after_a_daemon_that_fails():
    failing, other = Recorder(ValueError('x')), Recorder()
    daemons._pass([failing, other])
    assert failing.lines == ['a pass has failed']
    assert (other.passes, other.lines) == (1, [])


@pytest.mark.filterwarnings('ignore:Using fork')
@pytest.mark.parametrize('error', [None, ValueError('x'), SystemExit(3)])
def test_a_child_ends_whatever_its_work_does(error):
    reader, writer = os.pipe()

    def work() -> None:
        os.write(writer, b'done')
        if error:
            raise error

    pid = daemons._fork(work, socket.socket())
    assert os.waitpid(pid, 0)[1] == 0
    assert os.read(reader, 9) == b'done'
    os.close(reader)
    os.close(writer)


def test_a_process_that_ends_connections_answers():
    with socket.create_server(('127.0.0.1', 0)) as listener:
        server = Server('daemons', 'daemons', 1, listener.getsockname()[1])
        accepting = threading.Thread(
            target=lambda: listener.accept()[0].close()
        )
        accepting.start()
        assert answers(server)
        accepting.join()
        # A process that hangs leaves connections open.
        assert not answers(server, timeout_seconds=0.05)
    assert not answers(server)
