# SPDX-License-Identifier: Apache-2.0
"""HTTP for a thousand connections in one process."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    """A whole response; header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """One connection to a proxy, opened again if it was closed.

    :param url: a URL of the proxy
    :param token: sent with every request
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname, parts.port
        self._token = token
        self._streams = None

    async def connect(self) -> None:
        """Open the connection."""
        self._streams = await asyncio.open_connection(*self._address)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b'',
        headers: Mapping[str, str] | None = None,
    ) -> Answer | None:
        """Send a request.

        :param path: the quoted path and query
        :returns: None if the proxy has closed the connection
        """
        if self._streams is None:
            await self.connect()
        reader, writer = self._streams
        fields = {
            'Host': 'proxy',
            'X-Auth-Token': self._token,
            'Content-Length': str(len(body)),
            **(headers or {}),
        }
        lines = [f'{method} {path} HTTP/1.1']
        lines += [f'{name}: {value}' for name, value in fields.items()]
        writer.write('\r\n'.join([*lines, '', '']).encode() + body)
        try:
            await writer.drain()
            return await self._answer(reader, method)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            return None

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _answer(self, reader, method: str) -> Answer:
        head = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1')
        status_line, *lines = head.strip().split('\r\n')
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(':') for line in lines)
        }
        body = b''
        if method != 'HEAD':
            length = int(headers.get('content-length', 0))
            body = await reader.readexactly(length)
        if headers.get('connection', '').lower() == 'close':
            self.close()
        return Answer(int(status_line.split()[1]), headers, body)
