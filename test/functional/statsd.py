# SPDX-License-Identifier: Apache-2.0
"""A statsd server that shows what the filter sends."""

import math
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator

PREFIX = re.compile(r'shardmw[._]')
QUIET_SECONDS = 0.5


class Statsd:
    """A statsd server on loopback that only receives."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(('127.0.0.1', 0))
        self._socket.settimeout(QUIET_SECONDS)
        self.port = self._socket.getsockname()[1]

    def counts(self, seconds: float = math.inf) -> Counter:
        """Return the sums of the filter's counters since the last call.

        :param seconds: when to return if metrics keep coming in
        """
        deadline = time.monotonic() + seconds
        sums = Counter()
        for name, value in self._values():
            sums[name] += value
            if time.monotonic() > deadline:
                break
        return sums

    def last(self) -> dict[str, float]:
        """Return the last value of each metric since the last call."""
        return dict(self._values())

    def _values(self) -> Iterator[tuple[str, float]]:
        while True:
            try:
                line = self._socket.recv(4096).decode()
            except TimeoutError:
                return
            name, _, value = line.partition(':')
            if prefix := PREFIX.match(name):
                value, *_, labels = value.split('|')
                labels = labels if labels.startswith('#') else ''
                yield name[prefix.end() :] + labels, float(value)

    def close(self) -> None:
        self._socket.close()
