# SPDX-License-Identifier: Apache-2.0
"""Responses of HTTP/1.1, of which clients under load keep only figures."""

import contextlib
import math

import httptools

_LENGTHS = (b'content-length', b'transfer-encoding')


class ResponseReader:
    """Reads the response to one request. Pure.

    ``status``, ``retry_after`` (seconds; NaN if the response has none) and
    ``body_bytes`` are right when the response is whole; ``is_reusable`` is
    True then if the connection can take another request.

    :param is_head: whether the request was a HEAD, so that no body follows
    """

    def __init__(self, is_head: bool = False) -> None:
        self.status = 0
        self.retry_after = math.nan
        self.body_bytes = 0
        self.is_reusable = False
        self._is_head = is_head
        self._is_whole = False
        self._has_length = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, received: bytes | memoryview) -> bool:
        """Read what came; return True if the response is whole.

        :raises httptools.HttpParserError: if it is not HTTP
        """
        self._parser.feed_data(received)
        return self._is_whole

    def close(self) -> bool:
        """Return True if the response is whole when the server closes."""
        return self.status >= 200 and not self._has_length

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        name = name.lower()
        if name in _LENGTHS:
            self._has_length = True
        elif name == b'retry-after':
            # a date is not understood
            with contextlib.suppress(ValueError):
                self.retry_after = max(0.0, float(value))

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self.status = self._parser.get_status_code()
        if self._is_head:
            self.on_message_complete()

    def on_body(self, part: bytes) -> None:
        """Called by the parser."""
        self.body_bytes += len(part)

    def on_message_complete(self) -> None:
        """Called by the parser, also for a 100 before the response."""
        if self.status >= 200:
            self._is_whole = True
            self.is_reusable = self._parser.should_keep_alive()
