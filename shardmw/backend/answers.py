# SPDX-License-Identifier: Apache-2.0
"""Answers to requests of the filter, and its own error responses."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import orjson
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import HTTP_NOT_FOUND, is_success
from swift.common.swob import (
    HTTPServiceUnavailable,
    Request,
    Response,
    wsgi_quote,
)

from shardmw.backend.containers import FLOOR_HEADER, BackendError
from shardmw.backend.fanout_turns import NoTurn
from shardmw.backend.metrics import (
    OTHER,
    RECORD,
    SHARD,
    TURN,
    UNAVAILABLE,
    UNAVAILABLE_OF_CONTAINER,
)
from shardmw.core.layout import LayoutError
from shardmw.core.paths import Path
from shardmw.swift import SPLIT_STATES
from shardmw.swift.proxy_app import headers_to_container_info

#: What Swift's own sharder has made of a container.
STATE_HEADER = 'X-Backend-Sharding-State'

#: The Retry-After of a 503 for a request that got no turn.
RETRY_SECONDS = 1


class ContainerStats(NamedTuple):
    """The objects and bytes of a sharded container."""

    object_count: int
    bytes_used: int


class Answer(NamedTuple):
    """A response to a request of the filter.

    :param shard: the index of the shard that answered, None for anything else
    :param status_line: such as ``'200 OK'``
    :param body: the parts of the body
    """

    shard: int | None
    status_line: str
    headers: HeaderKeyDict
    body: Iterable[bytes]

    @property
    def floor(self) -> int:
        """Return the least number of shards of a root, 0 for any."""
        text = self.headers.get(FLOOR_HEADER, '')
        return int(text) if text.isascii() and text.isdecimal() else 0

    @property
    def status(self) -> int:
        """Return the status code."""
        return int(self.status_line.split(' ', 1)[0])

    @property
    def is_success(self) -> bool:
        """Return True for a 2xx."""
        return is_success(self.status)

    @property
    def is_missing(self) -> bool:
        """Return True for a 404."""
        return self.status == HTTP_NOT_FOUND

    @property
    def sharding_state(self) -> str:
        """Return what Swift's own sharder has made of the container."""
        return self.headers.get(STATE_HEADER, 'unsharded')

    @property
    def is_split(self) -> bool:
        """Return True if Swift's own sharder has split the container."""
        return self.sharding_state in SPLIT_STATES

    def rows(self) -> list[dict]:
        """Return the rows of a JSON listing.

        :raises BackendError: if the body is no listing
        """
        return listing_of(b''.join(self.body), self.shard)

    def info(self) -> dict:
        """Return the container's info, like ``get_container_info``."""
        return headers_to_container_info(self.headers, self.status)

    @property
    def object_count(self) -> int:
        """Return the number of objects of a container."""
        return int(self.headers.get('X-Container-Object-Count', 0))

    @property
    def bytes_used(self) -> int:
        """Return the size of a container in bytes."""
        return int(self.headers.get('X-Container-Bytes-Used', 0))


class Verbatim:
    """A WSGI application that returns an answer to the client unchanged."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def __call__(self, _env: dict, start_response: Callable):
        start_response(
            self.answer.status_line, list(self.answer.headers.items())
        )
        return self.answer.body


def listing_of(body: bytes, shard: int | None = None) -> list:
    """Return the entries of a JSON listing.

    :param shard: the index of the shard that answered, None for anything else
    :raises BackendError: if the body is no listing
    """
    try:
        entries = orjson.loads(body or b'[]')
    except ValueError:
        entries = None
    if not isinstance(entries, list):
        raise BackendError(
            shard, 503, f'an answer is no listing ({body[:40]!r})'
        )
    return entries


def next_marker(where: object, marker: str, last: str) -> str:
    """Return the marker of the next page, the last name of a page.

    :param where: what is listed
    :param marker: the marker of that page
    :raises BackendError: if the name is not after it: a server that ignores
                          markers would be asked without end
    """
    if last <= marker:
        raise BackendError(
            None, 503, f'{where} lists {last!r} after {marker!r}'
        )
    return last


def require_success(answers: Iterable[Answer]) -> None:
    """Check that every answer is a 2xx.

    :raises BackendError: for the first one that is not
    """
    for answer in answers:
        if not answer.is_success:
            raise BackendError(answer.shard, answer.status)


def unavailable(
    req: Request, path: Path, backend, reason: Exception
) -> Response:
    """Log why a request cannot be answered and return a 503.

    :param path: the path of the request
    :param backend: the filter's :class:`shardmw.backend.requests.Backend`
    :param reason: a BackendError or a LayoutError
    """
    what = 'layout record' if isinstance(reason, LayoutError) else 'backing'
    backend.logger.error(
        'shardmw: 503 for %s %s: %s: %s',
        req.method,
        wsgi_quote(req.path_info),
        what,
        reason,
    )
    cause = _cause(reason)
    backend.metrics.note(UNAVAILABLE, cause=cause)
    if path.container:
        backend.metrics.note_of(
            path.account, path.container, UNAVAILABLE_OF_CONTAINER, cause=cause
        )
    headers = {}
    if isinstance(reason, NoTurn):
        headers['Retry-After'] = str(RETRY_SECONDS)
    return HTTPServiceUnavailable(request=req, headers=headers)


def _cause(reason: Exception) -> str:
    """Return the cause of a 503, for metrics."""
    if isinstance(reason, LayoutError):
        return RECORD
    if isinstance(reason, NoTurn):
        return TURN
    return OTHER if reason.shard is None else SHARD
