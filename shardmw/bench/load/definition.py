# SPDX-License-Identifier: Apache-2.0
"""What a load is. Pure."""

from dataclasses import dataclass
from typing import NamedTuple

from shardmw.bench.load.sources import Source

#: What a client does when its write was refused.
RETRY_AFTER = 'retry-after'  #: wait as long as the response says
BACK_OFF = 'backoff'  #: wait for a fixed time
AT_ONCE = 'at-once'
REFUSAL_POLICIES = (RETRY_AFTER, BACK_OFF, AT_ONCE)


@dataclass(frozen=True)
class Load:
    """Many clients that ask for one thing after the other.

    A client is a connection that is kept alive. It asks for the next request
    of the source when it has its answer; one that was refused, too, is
    followed by the next one and not repeated. A source that has no more
    requests ends the load.

    :param urls: of the proxies; the clients are dealt out to them in turn
    :param token: what all requests are authorized with
    :param source: what to ask for
    :param clients: how many
    :param seconds: after this time, no more requests are sent
    :param count: nor after so many, over all clients; without either, a load
                  goes on until it's told to end
    :param on_refusal: one of :data:`REFUSAL_POLICIES`
    :param backoff_seconds: the fixed time, also where a response should say
                            how long and doesn't
    :param pace_seconds: the least time between two requests of a client, 0
                         for no pause; the clients' first ones are spread
                         over it
    :param timeout_seconds: an operation that takes longer is given up
    :param drain_seconds: how long to wait for the last answers
    :param insecure: don't verify the certificates of ``https://`` URLs
    """

    urls: tuple[str, ...]
    token: str
    source: Source
    clients: int
    seconds: float | None = None
    count: int | None = None
    on_refusal: str = RETRY_AFTER
    backoff_seconds: float = 1.0
    pace_seconds: float = 0.0
    timeout_seconds: float = 120.0
    drain_seconds: float = 60.0
    insecure: bool = False

    def __post_init__(self) -> None:
        if self.on_refusal not in REFUSAL_POLICIES:
            raise ValueError(f'unknown policy {self.on_refusal!r}')

    @property
    def ends_when_told(self) -> bool:
        """Whether there's neither time nor count that ends it."""
        return self.seconds is None and self.count is None


class Share(NamedTuple):
    """Which part of a load one process of several has."""

    index: int
    processes: int

    def of(self, total: int) -> range:
        """Which of so many are this one's."""
        return range(self.index, total, self.processes)
