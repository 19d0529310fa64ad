# SPDX-License-Identifier: Apache-2.0
"""Run one of Swift's servers or daemons from a cluster's folder.

    python -m shardmw_saio.launch server KIND CONF LOG
    python -m shardmw_saio.launch daemon NAME CONF LOG     # one run
    python -m shardmw_saio.launch service NAME CONF LOG    # until it is ended

Swift reads swift.conf from a path that is fixed at import, and an auditor's
watcher reads rings from another one. Swift logs to syslog, copies databases to
other nodes with rsync, and counts updates with cron. A machine that runs tests
may have none of these, so this module replaces them in the servers' own
processes. Old tempauths get tokens that need no memcached
(:mod:`shardmw_saio.tokens`).
"""

import importlib
import logging
import os
import shutil
import sys
import time
from pathlib import Path

from swift.common import utils

from shardmw_saio.commands import AUDITOR, DAEMON_CLASSES
from shardmw_saio.tokens import keep_without_memcached

try:
    from swift.common.utils import logs
except ImportError:  # before Swift 2.34
    logs = utils


class LogFile(logging.Handler):
    """A log handler that appends to a file, which workers may share.

    Each line is a single write to a file that was opened for appending, which
    needs no lock. With a lock, one green thread that waits for another would
    block the process.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags, 0o644)

    def createLock(self) -> None:  # noqa: N802 (logging's name)
        self.lock = None

    def handle(self, record: logging.LogRecord) -> None:
        # From Python 3.13 on, logging's own method needs a lock.
        if self.filter(record):
            self.emit(record)

    def emit(self, record: logging.LogRecord) -> None:
        seconds = time.gmtime(record.created)
        when = time.strftime('%Y-%m-%dT%H:%M:%S', seconds)
        line = (
            f'{when}.{int(record.msecs):03d}Z {record.process} '
            f'{record.levelname} {self.format(record)}\n'
        )
        os.write(self._file, line.encode(errors='backslashreplace'))


def main(arguments: list[str]) -> int:
    """Run a server or a service until it is ended, or a daemon once."""
    what, name, conf, log = arguments
    utils.SWIFT_CONF_FILE = str(Path(conf).with_name('swift.conf'))
    log_to(log)
    if what == 'server':
        return _run_server(name, conf)
    return _run_daemon(name, conf, once=what == 'daemon')


def log_to(path: str, level: int = logging.NOTSET) -> None:
    """Make Swift's loggers append to a file.

    :param level: the lowest level that is logged
    """
    # Replace the syslog handler. The logger of the access log takes no other
    # handler from the configuration.
    handler = LogFile(path)
    handler.setLevel(level)
    logs.ThreadSafeSysLogHandler = lambda *args, **kwargs: handler


def _run_server(kind: str, conf: str) -> int:
    from swift.common import wsgi
    from swift.common.middleware import recon

    recon.ReconMiddleware.get_async_info = _count_updates
    keep_without_memcached(Path(conf))
    return wsgi.run_wsgi(conf, kind)


def _count_updates(middleware: object) -> dict[str, float]:
    """Count the pending updates of a node, as swift-recon-cron would."""
    from swift.cli.recon_cron import get_async_count

    return {
        'async_pending': get_async_count(middleware.devices),
        'async_pending_last': time.time(),
    }


def _run_daemon(name: str, conf: str, once: bool) -> int:
    from swift.common import daemon

    if name == AUDITOR:
        _use_rings_of(Path(conf).parent)
    daemon.run_daemon(daemon_class(name), conf, section_name=name, once=once)
    return 0


def _use_rings_of(etc: Path) -> None:
    """Have the watchers of dark data read a cluster's rings."""
    from swift.obj.watchers import dark_data

    ring = dark_data.Ring
    dark_data.Ring = lambda _swift_dir, ring_name: ring(
        str(etc), ring_name=ring_name
    )


def daemon_class(name: str) -> type:
    """Return the class of a daemon, changed so that it needs no rsync."""
    from swift.common import db_replicator

    db_replicator.Replicator._rsync_file = _copy_database
    module, _, class_name = DAEMON_CLASSES[name].partition(':')
    return getattr(importlib.import_module(module), class_name)


def _copy_database(
    replicator: object, database: object, remote_file: str, **how: object
) -> bool:
    """Copy a database to another node, which is on the same machine.

    :param database: its broker; its path before Swift 2.37
    :param remote_file: the path that the option rsync_module determines
    :returns: True, as rsync succeeded
    """
    os.makedirs(os.path.dirname(remote_file), exist_ok=True)
    shutil.copyfile(getattr(database, 'db_file', database), remote_file)
    return True


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
