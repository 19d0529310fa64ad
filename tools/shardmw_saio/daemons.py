# SPDX-License-Identifier: Apache-2.0
"""Run the daemons of a cluster in the background.

    python -m shardmw_saio.daemons PORT ETC LOG DAEMON@FILE ...

One process loads all daemons once. Every few seconds it forks a child, in
which each of them makes one pass. The child shares the memory of the process,
and an error in a pass affects only the child. The changes of
``shardmw-resharder`` take longer than a pass, so it has a child of its own.

The process listens on PORT once all daemons are loaded. It closes connections
at once: they only show that it runs.
"""

import logging
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

# Bound before Swift replaces it: this process uses no green threads, its
# children do.
from select import select
from typing import NoReturn

import eventlet.hubs
from swift.common import utils
from swift.common.daemon import Daemon

from shardmw_saio.launch import daemon_class, log_to
from shardmw_saio.topology import HOST

#: The daemon that runs all the time.
LASTING = 'shardmw-resharder'

#: How long to wait between two passes.
PAUSE_SECONDS = 5

#: The largest part of a CPU that passes may use. After a pass that has used
#: much, the pause is longer.
CPU_PART = 0.1


def main(arguments: Sequence[str]) -> None:
    """Load daemons and run them until the process is ended."""
    port, etc, log, *names = arguments
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    utils.SWIFT_CONF_FILE = str(Path(etc, 'swift.conf'))
    utils.validate_configuration()
    log_to(log, logging.WARNING)
    utils.monkey_patch()
    eventlet.hubs.use_hub(utils.get_hub())
    utils.disable_fallocate()
    passing, lasting = [], []
    for each in names:
        name, _, conf = each.partition('@')
        daemon = _load(name, str(Path(etc, conf)))
        (lasting if name == LASTING else passing).append(daemon)
    listener.bind((HOST, int(port)))
    listener.listen()
    works = [partial(_pass, passing)]
    works += [daemon.run_forever for daemon in lasting]
    _repeat(works, listener)


def _load(name: str, conf_path: str) -> Daemon:
    conf = utils.readconf(conf_path, name)
    utils.get_logger(conf, name, log_route=name)
    return daemon_class(name)(conf)


def _pass(daemons: Sequence[Daemon]) -> None:
    """Run one pass of each daemon."""
    for daemon in daemons:
        try:
            daemon.run_once()
        except (Exception, eventlet.Timeout):
            daemon.logger.exception('a pass has failed')


def _repeat(
    works: Sequence[Callable[[], None]], listener: socket.socket
) -> NoReturn:
    """Run all works in children, and each again a while after it has ended."""
    due = {work: time.monotonic() for work in works}
    # The work and the process id of each child, by a handle of the process.
    running: dict[int, tuple[Callable, int]] = {}
    while True:
        now = time.monotonic()
        for work in [work for work, when in due.items() if when <= now]:
            del due[work]
            pid = _fork(work, listener)
            running[os.pidfd_open(pid)] = (work, pid)
        wait = max(0, min(due.values()) - now) if due else None
        ready, _, _ = select([listener, *running], [], [], wait)
        for each in ready:
            if each is listener:
                listener.accept()[0].close()
            else:
                work, pid = running.pop(each)
                os.close(each)
                _, _, used = os.wait4(pid, 0)
                pause = (used.ru_utime + used.ru_stime) / CPU_PART
                due[work] = time.monotonic() + max(PAUSE_SECONDS, pause)


def _fork(work: Callable[[], None], listener: socket.socket) -> int:
    """Run a work in a child, and return the child's process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        listener.close()
        work()
    except Exception:
        traceback.print_exc()
    finally:
        # Children that a daemon has forked get here, too.
        os._exit(0)


if __name__ == '__main__':
    main(sys.argv[1:])
