# SPDX-License-Identifier: Apache-2.0
"""Delete the objects of a container, from many of its shards at a time."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

from swift.common.http import HTTP_CONFLICT, HTTP_NOT_FOUND
from swift.common.internal_client import UnexpectedResponse
from swift.common.utils import (
    ContextPool,
    RateLimitedIterator,
    Timestamp,
    split_path,
)

from shardmw.admin.walk import places_of, require_same, walk
from shardmw.backend.rows import listed_at
from shardmw.core.paths import Path
from shardmw.core.placement import RESERVED, versions_owner
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.errors import AdminError
from shardmw.swift.concurrency import Timeout

#: How many failures to keep the text of.
FAILURES_SHOWN = 5

#: Parts of the ETag that the row of a static large object has, and that of an
#: encrypted object, which may be one.
SLO_ETAG, ENCRYPTED = 'slo_etag=', 'swift_meta='

#: Of the replicas of an object, the newest one is read.
NEWEST = {'X-Newest': 'true'}

#: How deep Swift lets manifests be nested.
MOST_LEVELS = 10

#: How long a command deletes objects: all of them with the time at which it
#: began. Swift may forget a tombstone that is older than ``reclaim_age``, a
#: week by default, before all servers have it.
MOST_SECONDS = 86400


@dataclass(slots=True)
class Emptied:
    """Counts the objects that have been deleted.

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
    """Raised if a client has uploaded an object since the command began."""


class Emptying:
    """Deletes the objects that a container had when the command began.

    An object that a client uploads meanwhile stays: each DELETE has the time
    at which the command began, and object servers refuse a DELETE that is
    older than the object.

    :param prefix: what the names begin with
    :param part: which part of the shards, from 0, of how many parts
    :param with_segments: True to delete the segments of large objects, too
    :param concurrency: how many requests are under way at once
    :param rate: the most objects to delete per second; 0 for no limit
    :param began: when the command began
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
        began: Timestamp,
        done: Emptied,
        report: Callable[[Emptied], None],
    ) -> None:
        self.cluster = cluster
        self.path = path
        # Names of old versions begin with a reserved character.
        is_of_versions = versions_owner(path.container) is not None
        self.prefix = f'{RESERVED}{prefix}' if is_of_versions else prefix
        self.part = part
        self.with_segments = with_segments
        self.concurrency = concurrency
        self.rate = rate
        self.began = began
        self.done = done
        self.report = report

    def rows(self) -> Iterator[dict]:
        """List the rows of the objects to delete.

        While the layout changes, a row may come twice.

        :raises AdminError: if the container does not exist, or its layout
                            changes while it is listed
        :raises BackendError: if a database cannot be read
        """
        places = places_of(self.cluster, self.path)
        part, parts = self.part
        stages = [stage[part::parts] for stage in places.stages]
        own = places._replace(stages=stages)
        for _, row in walk(self.cluster, own, self.prefix):
            if listed_at(row) > float(self.began):
                self.done.newer += 1
            else:
                yield row
        require_same(self.cluster, self.path, places)

    def run(self) -> None:
        """Delete the objects. If it is interrupted, a later run goes on.

        :raises AdminError: if the container does not exist, if its layout
                            changes meanwhile, or after MOST_SECONDS
        :raises BackendError: if a database cannot be read
        """
        rows = self.rows()
        if self.rate:
            rows = RateLimitedIterator(rows, self.rate)
        with ContextPool(self.concurrency) as pool:
            for row in rows:
                if time.time() > float(self.began) + MOST_SECONDS:
                    pool.waitall()
                    raise AdminError(
                        f'{self.path.place}: stopped after a day: run the '
                        'command again'
                    )
                pool.spawn(self._delete_row, row)
            pool.waitall()

    def _delete_row(self, row: dict) -> None:
        """Delete the object of a row, after its segments."""
        name, done = row['name'], self.done
        may_have = SLO_ETAG in row['hash'] or ENCRYPTED in row['hash']
        try:
            if self.with_segments and may_have:
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
        """Delete the segments of a large object, of any other object nothing.

        :param levels: how deep manifests may be nested
        :raises NewerError: if a client has uploaded the object meanwhile
        :raises AdminError: if its manifest cannot be read
        """
        for each in self._segments(container, name):
            segment = split_path(each['name'], 2, 2, True)
            # A segment or manifest that a client has uploaded meanwhile stays.
            with contextlib.suppress(NewerError):
                if each.get('sub_slo') and levels:
                    self._delete_segments(*segment, levels - 1)
                self._delete(*segment)
                self.done.segments += 1

    def _segments(self, container: str, name: str) -> list[dict]:
        """Return what a manifest says of its segments in containers."""
        client, account = self.cluster.client, self.path.account
        of_link = {'symlink': 'get'}
        headers = client.get_object_metadata(
            account,
            container,
            name,
            acceptable_statuses=(2, HTTP_NOT_FOUND),
            headers=NEWEST,
            params=of_link,
        )
        self._require_old(headers)
        if headers.get('x-static-large-object') != 'True':
            return []
        _, headers, body = client.get_object(
            account, container, name, NEWEST, params=of_link
        )
        text = b''.join(body)
        self._require_old(headers)
        try:
            return [each for each in json.loads(text) if 'name' in each]
        except ValueError as err:
            raise AdminError(
                'its manifest is encrypted or damaged, so its segments are '
                'not known'
            ) from err

    def _require_old(self, headers: Mapping[str, str]) -> None:
        """Check that an object was uploaded before the command began."""
        if Timestamp(headers.get('x-timestamp', 0)) > self.began:
            raise NewerError

    def _delete(self, container: str, name: str) -> None:
        """Delete an object, which may be gone already.

        :raises NewerError: if a client has uploaded it meanwhile
        :raises UnexpectedResponse: if the proxy app refuses or fails
        """
        try:
            self.cluster.client.delete_object(
                self.path.account,
                container,
                name,
                headers={'X-Timestamp': self.began.internal},
            )
        except UnexpectedResponse as err:
            if err.resp.status_int == HTTP_CONFLICT:
                raise NewerError from err
            raise
