# SPDX-License-Identifier: Apache-2.0
"""What a load is. Pure."""

from dataclasses import dataclass

from shardmw.bench.load.sources import Source

#: What a client does when its write was refused by a rate limit.
RETRY_AFTER = 'retry-after'  #: wait as long as the response says
BACK_OFF = 'backoff'  #: wait for a fixed time
AT_ONCE = 'at-once'  #: do not wait
REFUSAL_POLICIES = (RETRY_AFTER, BACK_OFF, AT_ONCE)


@dataclass(frozen=True)
class Load:
    """Concurrent clients, each of which sends one request after the other.

    A client is a connection that is kept alive. A refused request is not
    repeated. A load ends after ``seconds`` or ``count`` requests, when its
    source has no more requests, or when :meth:`RunningLoad.stop` is called.

    :param urls: of the proxies; the clients are spread over them
    :param backoff_seconds: the fixed time to wait after a refusal, also if a
                            response has no Retry-After
    :param pace_seconds: the least time between two requests of a client
    :param timeout_seconds: the time after which a request is given up
    :param drain_seconds: how long to wait for the last responses
    :param insecure: True to accept any certificate
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
        return self.seconds is None and self.count is None
