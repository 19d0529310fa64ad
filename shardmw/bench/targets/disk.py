# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of files, to compare Swift with."""

import contextlib
import multiprocessing
import random
from collections.abc import Iterable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from shardmw.bench import signals
from shardmw.bench.errors import BenchError

_HOST = '127.0.0.1'


def write_files(folder: Path, names: Iterable[str], size: int) -> None:
    """Make a folder with a file of random bytes for each name."""
    folder.mkdir()
    content = random.Random(0).randbytes(size)
    for name in names:
        (folder / name).write_bytes(content)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder from a new process during a ``with`` block.

    :returns: the URL
    :raises BenchError: if the process does not start
    """
    # not forked, so that it shares nothing with this process
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe()
    process = context.Process(
        target=_serve, args=(theirs, folder), daemon=True
    )
    with signals.kept_from_children():
        process.start()
    theirs.close()
    try:
        try:
            port = ours.recv()
        except EOFError:
            raise BenchError('files cannot be served: see above') from None
        yield f'http://{_HOST}:{port}'
    finally:
        process.kill()
        process.join()


def _serve(pipe: Pipe, folder: Path) -> None:
    """Run in the process: a thread for each connection."""
    signals.ignore()

    def handler(*arguments: object) -> _Handler:
        return _Handler(*arguments, directory=str(folder))

    with _Server((_HOST, 0), handler) as server:
        pipe.send(server.server_port)
        server.serve_forever()


class _Server(ThreadingHTTPServer):
    # all clients connect at once
    request_queue_size = 1024


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def copyfile(self, source, outputfile) -> None:
        # as web servers do: the kernel copies the file
        self.connection.sendfile(source)

    def log_message(self, *_: object) -> None:
        pass
