# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of files, to compare Swift with."""

import contextlib
import functools
import random
import threading
from collections.abc import Iterable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def write_files(folder: Path, names: Iterable[str], size: int) -> None:
    """Make a folder with a file of random bytes for each name."""
    folder.mkdir()
    content = random.Random(0).randbytes(size)
    for name in names:
        (folder / name).write_bytes(content)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder during a ``with`` block; return the URL.

    Each connection has a thread, and the kernel sends the files.
    """
    handler = functools.partial(_Handler, directory=str(folder))
    with _Server(('127.0.0.1', 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f'http://127.0.0.1:{server.server_port}'
        finally:
            server.shutdown()


class _Server(ThreadingHTTPServer):
    # all clients connect at once
    request_queue_size = 1024
    block_on_close = False


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def copyfile(self, source, outputfile) -> None:
        # as web servers do: the kernel copies the file
        self.connection.sendfile(source)

    def log_message(self, *_: object) -> None:
        pass
