# SPDX-License-Identifier: Apache-2.0
"""One address for many proxies, which get the requests in turn.

The balancer is transparent: it copies all bytes between client and proxy
unchanged, and passes the end of a connection on. Each request of a client
goes to the next proxy, on a new connection to that proxy, while the client's
connection stays open. A request begins where the request before it ends. A
client must wait for the end of a response before it sends the next request
(all of Swift's tests do).
"""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from shardmw_saio.topology import HOST

from test.conformance.framing import (
    HEAD_END,
    LINE_END,
    body_length,
    chunk_length,
)

_PIECE_BYTES = 65536

# More than Swift accepts, even with the limits that its tests set.
_HEAD_BYTES = 2 * 1024 * 1024

# Errors that may end a connection.
_ENDS = (OSError, asyncio.CancelledError)


class _Started(NamedTuple):
    port: int
    stop: Callable[[], object]


@contextlib.contextmanager
def balancing(urls: Sequence[str]) -> Iterator[str]:
    """Distribute requests over several servers until the end of the block.

    :param urls: the URLs of the servers
    :returns: the URL of the balancer
    """
    started: Future[_Started] = Future()
    thread = threading.Thread(
        target=asyncio.run, args=[_balance(urls, started)], daemon=True
    )
    thread.start()
    port, stop = started.result()
    try:
        yield f'http://{HOST}:{port}'
    finally:
        stop()
        thread.join()


async def _balance(urls: Sequence[str], started: Future[_Started]) -> None:
    turns = itertools.cycle(map(urlsplit, urls))
    # asyncio itself forgets a connection whose client has closed its side
    connections: set[asyncio.Task | None] = set()

    async def serve(
        client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        connections.add(asyncio.current_task())
        with contextlib.closing(to_client), contextlib.suppress(*_ENDS):
            await _hand_on_requests(client, to_client, turns)
        connections.discard(asyncio.current_task())

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(serve, HOST, 0, limit=_HEAD_BYTES)
    started.set_result(
        _Started(
            port=server.sockets[0].getsockname()[1],
            stop=lambda: loop.call_soon_threadsafe(stopping.set),
        )
    )
    await stopping.wait()
    server.close()


async def _hand_on_requests(
    client: asyncio.StreamReader,
    to_client: asyncio.StreamWriter,
    turns: Iterator[SplitResult],
) -> None:
    """Send each request of a client to the next proxy."""
    head = await _read_until(HEAD_END, client)
    while head:
        url = next(turns)
        proxy, to_proxy = await asyncio.open_connection(url.hostname, url.port)
        with contextlib.closing(to_proxy):
            head = await _relay(head, client, to_proxy, proxy, to_client)


async def _relay(
    head: bytes,
    client: asyncio.StreamReader,
    to_proxy: asyncio.StreamWriter,
    proxy: asyncio.StreamReader,
    to_client: asyncio.StreamWriter,
) -> bytes:
    """Copy both ways until the next request, or until the proxy closes.

    :returns: the head of the next request, or b''
    """
    answering = asyncio.create_task(_copy(proxy, to_client))
    asking = asyncio.create_task(_ask(head, client, to_proxy))
    try:
        await asyncio.wait(
            [answering, asking], return_when=asyncio.FIRST_COMPLETED
        )
        if answering.done():
            return b''
        if next_head := asking.result():
            return next_head
        to_proxy.write_eof()
        await answering
        return b''
    finally:
        answering.cancel()
        asking.cancel()


async def _ask(
    head: bytes, client: asyncio.StreamReader, to_proxy: asyncio.StreamWriter
) -> bytes:
    """Send a request to the proxy, and wait for the client's next one.

    :returns: the head of the next request, b'' if there is none
    """
    # a proxy may answer and close before it has read the whole body
    with contextlib.suppress(OSError):
        to_proxy.write(head)
        try:
            await _copy_body(head, client, to_proxy)
        except ValueError:
            # the next request cannot be found: all goes to the same proxy
            await _copy(client, to_proxy)
            return b''
        return await _read_until(HEAD_END, client)
    return b''


async def _copy_body(
    head: bytes, client: asyncio.StreamReader, to_proxy: asyncio.StreamWriter
) -> None:
    """Copy the body of a request.

    :raises ValueError: if its end cannot be determined; the rest of the body
                        is not copied then
    """
    length = body_length(head)
    if length is not None:
        await _copy_bytes(length, client, to_proxy)
        return
    while length := chunk_length(await _copy_line(client, to_proxy)):
        await _copy_bytes(length + len(LINE_END), client, to_proxy)
    # trailers
    while await _copy_line(client, to_proxy) not in (LINE_END, b''):
        pass


async def _copy_line(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes:
    line = await _read_until(LINE_END, reader)
    writer.write(line)
    await writer.drain()
    return line


async def _copy_bytes(
    count: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    while piece := await reader.read(min(count, _PIECE_BYTES)):
        writer.write(piece)
        await writer.drain()
        count -= len(piece)


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Copy everything, and pass the end of the connection on."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()


async def _read_until(end: bytes, reader: asyncio.StreamReader) -> bytes:
    """Return the bytes up to a separator, or some of them if it is far."""
    try:
        return await reader.readuntil(end)
    except asyncio.IncompleteReadError as err:
        return err.partial
    except asyncio.LimitOverrunError as err:
        return await reader.read(err.consumed)
