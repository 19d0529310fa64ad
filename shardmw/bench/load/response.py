# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 responses, of which clients keep only figures."""

import contextlib
import math

import httptools

_LENGTHS = (b'content-length', b'transfer-encoding')


class ResponseReader:
    """Reads the response to one request. Pure.

    ``status``, ``retry_after`` (seconds; NaN without one), ``body_bytes`` and
    ``is_reusable`` (True if the connection can be used again) are valid once
    the response is complete.
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
        """Parse received bytes; return True if the response is complete.

        :raises httptools.HttpParserError: if it is not HTTP
        """
        self._parser.feed_data(received)
        return self._is_whole

    def close(self) -> bool:
        """Return True if the response is complete when the server closes."""
        return self.status >= 200 and not self._has_length

    # The parser calls these.

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _LENGTHS:
            self._has_length = True
        elif name == b'retry-after':
            # dates are not supported
            with contextlib.suppress(ValueError):
                self.retry_after = max(0.0, float(value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self._is_head:
            self.on_message_complete()

    def on_body(self, part: bytes) -> None:
        self.body_bytes += len(part)

    def on_message_complete(self) -> None:
        # a 100 comes before the response
        if self.status >= 200:
            self._is_whole = True
            self.is_reusable = self._parser.should_keep_alive()
