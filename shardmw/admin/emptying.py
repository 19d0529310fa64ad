# SPDX-License-Identifier: Apache-2.0
"""Delete the objects of a container, from many of its shards at a time."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

from swift.common.http import HTTP_CONFLICT
from swift.common.internal_client import UnexpectedResponse
from swift.common.utils import (
    ContextPool,
    RateLimitedIterator,
    Timestamp,
    split_path,
)

from shardmw.admin.walk import places_of, walk
from shardmw.backend.rows import listed_at
from shardmw.core.paths import Path
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.errors import AdminError
from shardmw.swift.concurrency import Timeout

#: How many failures to keep the text of.
FAILURES_SHOWN = 5

#: Part of the ETag that the row of a static large object has.
SLO_ETAG = 'slo_etag='

#: How deep Swift lets manifests be nested.
MOST_LEVELS = 10

#: How long objects are deleted with the same timestamp.
PASS_SECONDS = 6 * 3600


@dataclass(slots=True)
class Emptied:
    """How many objects have been deleted.

    :ivar objects: the objects of the container that are gone
    :ivar bytes: their bytes, as the container lists them
    :ivar segments: the segments of large objects that are gone
    :ivar newer: objects that a client has written since, which stay
    :ivar failed: objects that could not be deleted
    :ivar failures: the first of them, each with the reason
    """

    objects: int = 0
    bytes: int = 0
    segments: int = 0
    newer: int = 0
    failed: int = 0
    failures: list[str] = field(default_factory=list)

    def fail(self, name: str, reason: object) -> None:
        """Note an object that could not be deleted."""
        self.failed += 1
        if len(self.failures) < FAILURES_SHOWN:
            self.failures.append(f'{name}: {reason}')

    def as_json(self) -> dict:
        """Return the values for ``--json``."""
        return asdict(self)


class NewerError(Exception):
    """Raised if a client has written an object since the command began."""


class Emptying:
    """Deletes the objects that a container had when the command began.

    An object that a client writes meanwhile stays: each DELETE has an earlier
    time than that, and object servers refuse a DELETE that is older than the
    object.

    :param prefix: what the names begin with
    :param part: which part of the shards, from 0, of how many parts
    :param with_segments: True to delete the segments of large objects, too
    :param concurrency: how many requests are under way at once
    :param rate: the most objects to delete per second; 0 for no limit
    :param done: counts what has been deleted
    :param report: called after each object
    """

    def __init__(
        self,
        cluster: SwiftCluster,
        path: Path,
        prefix: str,
        part: tuple[int, int],
        with_segments: bool,
        concurrency: int,
        rate: int,
        done: Emptied,
        report: Callable[[Emptied], None],
    ) -> None:
        self.cluster = cluster
        self.path = path
        self.prefix = prefix
        self.part = part
        self.with_segments = with_segments
        self.concurrency = concurrency
        self.rate = rate
        self.done = done
        self.report = report
        self._began = Timestamp.now()
        # The time that objects are deleted at.
        self._now = self._began

    def rows(self) -> Iterator[dict]:
        """List the rows of the objects to delete.

        While the layout changes, a row may come twice.

        :raises AdminError: if the container does not exist
        :raises BackendError: if a database cannot be read
        """
        places = places_of(self.cluster, self.path)
        part, parts = self.part
        stages = [stage[part::parts] for stage in places.stages]
        places = places._replace(stages=stages)
        for _, row in walk(self.cluster, places, self.prefix):
            if listed_at(row) > float(self._began):
                self.done.newer += 1
            else:
                yield row

    def run(self) -> None:
        """Delete the objects. If it is interrupted, a later run goes on.

        :raises AdminError: if the container does not exist
        :raises BackendError: if a database cannot be read
        """
        while not self._pass():
            self._now = Timestamp.now()

    def _pass(self) -> bool:
        """Delete objects for some hours; return True if all are done.

        The tombstones of the next pass are younger: Swift may forget one that
        is older than ``reclaim_age`` before all servers have it.
        """
        until = time.monotonic() + PASS_SECONDS
        rows = self.rows()
        if self.rate:
            rows = RateLimitedIterator(rows, self.rate)
        with ContextPool(self.concurrency) as pool:
            for row in rows:
                pool.spawn(self._delete_row, row)
                if time.monotonic() > until:
                    break
            else:
                pool.waitall()
                return True
            pool.waitall()
        return False

    def _delete_row(self, row: dict) -> None:
        """Delete the object of a row, after its segments."""
        name, done = row['name'], self.done
        try:
            if self.with_segments and SLO_ETAG in row['hash']:
                self._delete_segments(self.path.container, name, MOST_LEVELS)
            self._delete(self.path.container, name)
        except NewerError:
            done.newer += 1
        except (Exception, Timeout) as err:
            done.fail(name, err)
        else:
            done.objects += 1
            done.bytes += row['bytes']
        self.report(done)

    def _delete_segments(self, container: str, name: str, levels: int) -> None:
        """Delete the segments that a manifest names.

        :param levels: how deep manifests may be nested
        :raises NewerError: if a client has written the manifest meanwhile
        :raises AdminError: if it is no manifest, or cannot be read
        """
        for each in self._segments(container, name):
            segment = split_path(each['name'], 2, 2, True)
            if each.get('sub_slo') and levels:
                self._delete_segments(*segment, levels - 1)
            with contextlib.suppress(NewerError):
                self._delete(*segment)
                self.done.segments += 1

    def _segments(self, container: str, name: str) -> list[dict]:
        """Return what a manifest says of its segments in containers."""
        _, headers, body = self.cluster.client.get_object(
            self.path.account, container, name, params={'symlink': 'get'}
        )
        text = b''.join(body)
        if Timestamp(headers['X-Timestamp']) > self._now:
            raise NewerError
        if headers.get('X-Static-Large-Object') != 'True':
            return []
        try:
            return [each for each in json.loads(text) if 'name' in each]
        except ValueError as err:
            raise AdminError(
                'its manifest is encrypted or damaged, so its segments are '
                'not known'
            ) from err

    def _delete(self, container: str, name: str) -> None:
        """Delete an object, which may be gone already.

        :raises NewerError: if a client has written it meanwhile
        :raises UnexpectedResponse: if the proxy app refuses or fails
        """
        try:
            self.cluster.client.delete_object(
                self.path.account,
                container,
                name,
                headers={'X-Timestamp': self._now.internal},
            )
        except UnexpectedResponse as err:
            if err.resp.status_int == HTTP_CONFLICT:
                raise NewerError from err
            raise
