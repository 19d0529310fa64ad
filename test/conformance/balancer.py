# SPDX-License-Identifier: Apache-2.0
"""One address for many proxies, which get the connections in turn."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import NamedTuple
from urllib.parse import urlsplit

from shardmw.saio.topology import HOST

_CHUNK_BYTES = 65536

# How a connection may end, besides by itself.
_ENDS = (OSError, asyncio.CancelledError)


class _Started(NamedTuple):
    port: int
    stop: Callable[[], object]


@contextlib.contextmanager
def balancing(urls: Sequence[str]) -> Iterator[str]:
    """Hand connections on to several servers, inside of the block.

    :param urls: of the servers
    :returns: the URL that stands for all of them
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
    # asyncio itself forgets a connection whose client has no more to say
    connections: set[asyncio.Task | None] = set()

    async def hand_on(
        client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        connections.add(asyncio.current_task())
        chosen = next(turns)
        with contextlib.closing(to_client), contextlib.suppress(*_ENDS):
            proxy, to_proxy = await asyncio.open_connection(
                chosen.hostname, chosen.port
            )
            with contextlib.closing(to_proxy):
                await _relay(client, to_proxy, proxy, to_client)
        connections.discard(asyncio.current_task())

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(hand_on, HOST, 0)
    started.set_result(
        _Started(
            port=server.sockets[0].getsockname()[1],
            stop=lambda: loop.call_soon_threadsafe(stopping.set),
        )
    )
    await stopping.wait()
    server.close()


async def _relay(
    client: asyncio.StreamReader,
    to_proxy: asyncio.StreamWriter,
    proxy: asyncio.StreamReader,
    to_client: asyncio.StreamWriter,
) -> None:
    """Copy both ways until the proxy has said all, whatever is still asked."""
    asking = asyncio.create_task(_copy(client, to_proxy))
    try:
        await _copy(proxy, to_client)
    finally:
        asking.cancel()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
