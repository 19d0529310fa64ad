# SPDX-License-Identifier: Apache-2.0
"""Rows that are written to, or read from, container servers directly.

A container database keeps, for each name, the row with the newest timestamp,
and a deletion is a row, too. So rows can be merged in any order, and more than
once.
"""

import functools
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple
from urllib.parse import unquote

import orjson
from swift.common.direct_client import direct_get_container
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import HTTP_MOVED_PERMANENTLY
from swift.common.request_helpers import get_sys_meta_prefix
from swift.common.utils import (
    Timestamp,
    last_modified_date_to_timestamp,
    quorum_size,
)

from shardmw.backend.answers import Answer
from shardmw.backend.containers import BackendError
from shardmw.backend.nodes import (
    Answered,
    ask_node,
    ask_primaries,
    replica_of,
    request_headers,
)
from shardmw.backend.requests import Backend
from shardmw.core.evidence import Verdict, verdict
from shardmw.core.paths import Place

#: How long rows that move stay in both places. A listing that reads the new
#: place before the copy and the old one after the removal takes longer than
#: this, so it reads the new place again.
STAY_SECONDS = 1

#: Kinds of requests with rows that move. Removals take longer.
COPY, REMOVAL = 'copy', 'removal'

#: The metadata without a value that :func:`make_durable` stores.
DURABLE_HEADER = get_sys_meta_prefix('container') + 'shardmw-durable'

#: What a container server answers without its disks.
PROBE_METHOD = 'OPTIONS'

#: What a container server lists of a row. A release of Swift that lists more
#: has further columns, which a row would lose when it moves.
LISTED = frozenset({'name', 'bytes', 'hash', 'content_type', 'last_modified'})

#: How many shard containers of Swift's own sharder may name another one, one
#: after the other: a range is split or shrunk at most a few times while a
#: tombstone is under way. After that, the tombstone is stored where it is.
MOST_REDIRECTS = 5

#: How many times, in whole seconds, to cache the conversion of.
CACHED_SECONDS = 32_768


class Moving(NamedTuple):
    """Marks a request with rows that move.

    :param kind: COPY or REMOVAL
    :param check: called just before the request is sent, as it may have waited
                  long; raises an error if the rows must not move any more
    """

    kind: str
    check: Callable[[], None]


def merge_rows(
    backend: Backend,
    env: dict,
    place: Place,
    policy_index: int,
    rows: list[dict],
    moving: Moving | None = None,
) -> bool:
    """Merge rows into a container's database.

    No database is created: it would have only these rows. A replica without
    one gets it from the container-replicator.

    :param rows: as :func:`moved_row` and :func:`tombstone` return them
    :param moving: given for rows that move, which are sent when
                   :mod:`shardmw.backend.move_throttle` has room for them
    :returns: True if every replica has taken them
    :raises BackendError: if fewer than a majority have
    :raises Exception: the error that the check of `moving` raises
    """
    app = backend.proxy_app

    def ask(answered: Answered | None = None) -> list[Answer]:
        return ask_primaries(
            app,
            env,
            *place,
            'UPDATE',
            {
                'X-Backend-Storage-Policy-Index': str(policy_index),
                'X-Backend-Auto-Create': 'False',
                'Content-Type': 'application/json',
            },
            orjson.dumps(rows),
            answered=answered,
        )

    if moving is None:
        answers = ask()
    else:
        part, nodes = app.container_ring.get_nodes(*place)
        headers = request_headers(app, env)

        def probe(node: dict) -> None:
            ask_node(app, node, part, PROBE_METHOD, f'/{place}', headers)

        with backend.throttle.sending(
            moving.kind, nodes, len(rows), moving.check, probe
        ) as answered:
            answers = ask(answered)
    _check_quorum(answers)
    return all(answer.is_success for answer in answers)


def make_durable(backend: Backend, env: dict, place: Place) -> bool:
    """Put what the replicas of a container have merged on their disks.

    SQLite commits a transaction by removing its journal. Swift has it not wait
    until the removal is on the disk, so a loss of power may undo the last
    transaction of a database, up to 30 s later with XFS. The next transaction
    syncs the folder when it begins. So this one stores metadata without a
    value.

    A container that is proved to be deleted takes rows, but no metadata.

    :returns: True if every replica has done so
    """
    answers = ask_primaries(
        backend.proxy_app,
        env,
        *place,
        'POST',
        {
            'X-Timestamp': Timestamp.now().internal,
            'X-Backend-No-Timestamp-Update': 'True',
            DURABLE_HEADER: '',
        },
    )
    if all(answer.is_missing for answer in answers):
        heads = ask_primaries(backend.proxy_app, env, *place, 'HEAD')
        return verdict([replica_of(each) for each in heads]) is Verdict.DELETED
    return all(answer.is_success for answer in answers)


def rows_in_request(backend: Backend, place: Place) -> int:
    """Return how many rows to move into a container with one request."""
    return backend.throttle.in_request(_primaries(backend, place))


def reading(backend: Backend, place: Place) -> AbstractContextManager[None]:
    """Return a context for reading a page of rows to move from a container."""
    return backend.throttle.reading(_primaries(backend, place))


def _primaries(backend: Backend, place: Place) -> list[dict]:
    _part, nodes = backend.proxy_app.container_ring.get_nodes(*place)
    return nodes


def remove_row(
    backend: Backend,
    env: dict,
    place: Place,
    policy_index: int,
    name: str,
    timestamp: str,
    redirects: int = 0,
) -> None:
    """Add a tombstone to a container's database, as object servers do.

    It is pending there, like the rows of uploads. A replica without the
    database refuses it, and may get the row from another replica later. The
    request does not wait for a slow minority.

    If Swift's own sharder has split the container, its servers can name the
    shard container that has the row now, as they do for Swift's
    object-updater. A proxy's cached shard ranges may be an hour old. Servers
    open their database to see this, so they are not asked for nothing.

    :param timestamp: the X-Timestamp of the DELETE
    :param redirects: how many containers, one after the other, may name
                      another one
    :raises BackendError: if fewer than a majority have taken it
    """
    headers = {
        'X-Timestamp': timestamp,
        'X-Backend-Storage-Policy-Index': str(policy_index),
        'X-Backend-Accept-Redirect': str(redirects > 0),
        'X-Backend-Accept-Quoted-Location': 'true',
    }
    answers = ask_primaries(
        backend.proxy_app,
        env,
        *place,
        'DELETE',
        headers,
        needs_all=False,
        row=name,
    )
    _check_quorum(answers)
    named = filter(None, map(_redirected_to, answers))
    for shard in sorted(set(named) - {place}):
        remove_row(
            backend, env, shard, policy_index, name, timestamp, redirects - 1
        )


def _redirected_to(answer: Answer) -> Place | None:
    """Return the shard container that an answer names, None for none."""
    if answer.status != HTTP_MOVED_PERMANENTLY:
        return None
    location = unquote(answer.headers['Location'])
    return Place(*location.split('/', 3)[1:3])


def _check_quorum(answers: list[Answer]) -> None:
    """Check that a majority has taken a request, or has redirected it.

    :raises BackendError: if it has not
    """
    taken = sum(
        answer.is_success or answer.status == HTTP_MOVED_PERMANENTLY
        for answer in answers
    )
    if taken < quorum_size(len(answers)):
        raise BackendError(
            None, 503, f'{taken} of {len(answers)} replicas stored the rows'
        )


def row_at(
    node: dict, part: int, place: Place, name: str
) -> tuple[HeaderKeyDict, dict | None]:
    """Ask one server, without the proxy app, for the row of an object.

    :param place: the container whose database has it
    :returns: the headers of the answer; the listed row, None if there is none
    :raises ClientException: if the server does not list the container
    """
    headers, rows = direct_get_container(
        node, part, *place, prefix=name, limit=1
    )
    found = (row for row in rows if row.get('name') == name)
    return headers, next(found, None)


def require_known_columns(rows: Iterable[dict]) -> None:
    """Check that Swift lists no more of rows than is known here.

    :param rows: of a container server's JSON listing
    :raises BackendError: if it does
    """
    for row in rows:
        if not row.keys() <= LISTED:
            unknown = ', '.join(sorted(row.keys() - LISTED))
            raise BackendError(
                None,
                503,
                f'rows have {unknown}, which this release of shardmw cannot '
                'move: upgrade shardmw',
            )


def moved_row(listed: dict, policy_index: int, offset: int) -> dict:
    """Return the row to merge into the place that a row moves to.

    It has the timestamp of the listed row with an offset that grows with each
    layout, so that a row can return to a place that it was removed from.

    :param listed: a row of a container server's JSON listing
    :param offset: the offset of the layout in which it moves
    :raises BackendError: if Swift lists more of the row than is known here
    """
    require_known_columns([listed])
    return {
        'name': listed['name'],
        'created_at': _moved_timestamp(listed, offset),
        'size': listed['bytes'],
        'content_type': listed['content_type'],
        'etag': listed['hash'],
        'deleted': 0,
        'storage_policy_index': policy_index,
    }


def tombstone(listed: dict, policy_index: int, offset: int) -> dict:
    """Return the row that removes a listed row from its old place.

    It is newer than that row only by its offset: a client's later upload of
    the same name stays.
    """
    timestamp = _moved_timestamp(listed, offset)
    return deletion(listed['name'], timestamp, policy_index)


def listed_at(listed: dict) -> float:
    """Return the timestamp of a listed row, without its offset."""
    return float(_normal(listed['last_modified']))


def deletion(name: str, timestamp: str, policy_index: int) -> dict:
    """Return the row that a client's DELETE leaves in a database.

    :param timestamp: the X-Timestamp of the DELETE
    """
    return {
        'name': name,
        'created_at': timestamp,
        'size': 0,
        'content_type': 'application/deleted',
        'etag': 'noetag',
        'deleted': 1,
        'storage_policy_index': policy_index,
    }


def _moved_timestamp(listed: dict, offset: int) -> str:
    """Return the timestamp of a listed row with an offset, 0 for none."""
    normal = _normal(listed['last_modified'])
    return f'{normal}_{offset:016x}' if offset else normal


def _normal(last_modified: str) -> str:
    """Return a time of a listing as the text of a Swift timestamp.

    Swift's own functions do the same, but take three times as long, which
    matters for the millions of rows of a container.
    """
    second, _, microseconds = last_modified.partition('.')
    return f'{_seconds(second)}.{microseconds[:5]}'


@functools.lru_cache(maxsize=CACHED_SECONDS)
def _seconds(text: str) -> str:
    """Return the seconds since 1970 of a time, in ten digits."""
    timestamp = last_modified_date_to_timestamp(f'{text}.000000')
    return f'{int(timestamp):010d}'
