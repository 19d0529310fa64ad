# SPDX-License-Identifier: Apache-2.0
"""The shard count and depth that a request to a container asks for."""

from swift.common.swob import HTTPBadRequest, HTTPConflict, Request, Response

from shardmw.backend.config import Options
from shardmw.backend.containers import SHARD_COUNT_HEADER, SHARD_DEPTH_HEADER
from shardmw.backend.roots import RootState
from shardmw.core.layout import DEPTH_LIMIT, SHARD_COUNT_LIMIT, Sharding

PLAIN_SHARDING = Sharding(0)

#: Stands for a shard count or depth that no container can have.
INVALID = -1


class AskedSharding:
    """Reads the shard count and the depth that a request asks for.

    :ivar count: the shard count; None if the request has none, INVALID if no
                 container can have it
    :ivar depth: the same for the depth
    """

    def __init__(self, req: Request, options: Options) -> None:
        self.req = req
        self.count = _number(req, SHARD_COUNT_HEADER, 1, SHARD_COUNT_LIMIT)
        self.depth = _number(req, SHARD_DEPTH_HEADER, 0, DEPTH_LIMIT)
        self._most = options.client_max_shards
        if req.environ.get('reseller_request'):
            self._most = options.max_shards

    @property
    def is_any(self) -> bool:
        """Return True if the request has one of the headers."""
        return (self.count, self.depth) != (None, None)

    @property
    def is_impossible(self) -> bool:
        """Return True if no container can have the count or the depth."""
        return INVALID in (self.count, self.depth)

    def refusal(self) -> Response | None:
        """Return the 400 for a count or depth that is not allowed, or None."""
        return self._refused_count() or self._refused_depth()

    def refused_change(self, root: RootState) -> Response | None:
        """Return the error response to a changed count or depth, or None."""
        if not self.is_any or not root.exists:
            return None
        present = PLAIN_SHARDING
        if root.layout:
            present = root.layout.written_sharding
        is_other_count = self.count not in (None, present.shards)
        # The container's own count may be above the present limit.
        refusal = self._refused_count() if is_other_count else None
        refusal = refusal or self._refused_depth()
        if refusal:
            return refusal
        if not present.shards:
            return self._conflict('This container is not sharded')
        if is_other_count:
            return self._conflict(
                f'This container has {present.shards} shards'
            )
        if self.depth not in (None, present.depth):
            return self._conflict(
                f'This container has depth {present.depth}', SHARD_DEPTH_HEADER
            )
        return None

    def depth_without_count(self) -> Response:
        """Return the 400 for a depth of a container that gets no shards."""
        return self._bad_request(
            f'{SHARD_DEPTH_HEADER} needs {SHARD_COUNT_HEADER}'
        )

    def _refused_count(self) -> Response | None:
        most = self._most
        if self.count is None or 1 <= self.count <= most:
            return None
        if most == 0:
            return self._bad_request(
                f'{SHARD_COUNT_HEADER} is not allowed in this cluster'
            )
        return self._bad_request(
            f'{SHARD_COUNT_HEADER} must be a number from 1 to {most}'
        )

    def _refused_depth(self) -> Response | None:
        if self.depth != INVALID:
            return None
        return self._bad_request(
            f'{SHARD_DEPTH_HEADER} must be a number from 0 to {DEPTH_LIMIT}'
        )

    def _bad_request(self, body: str) -> Response:
        return HTTPBadRequest(
            request=self.req, content_type='text/plain', body=body
        )

    def _conflict(
        self, state: str, header: str = SHARD_COUNT_HEADER
    ) -> Response:
        return HTTPConflict(
            request=self.req,
            content_type='text/plain',
            body=f'{state}; {header} can only be set when a container is '
            'created',
        )


def _number(req: Request, header: str, least: int, most: int) -> int | None:
    text = req.headers.get(header)
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    number = int(text) if is_number else INVALID
    return number if least <= number <= most else INVALID
