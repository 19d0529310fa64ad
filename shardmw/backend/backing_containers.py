# SPDX-License-Identifier: Apache-2.0
"""The backing containers that a hidden account lists."""

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

from shardmw.backend.accounts import account_rows
from shardmw.backend.containers import LOGICAL_HEADER
from shardmw.backend.nodes import ask_primaries
from shardmw.backend.requests import Backend
from shardmw.backend.roots import RootState, contents_of
from shardmw.core.evidence import Contents
from shardmw.core.layout import id_of_time
from shardmw.core.paths import Path, Place
from shardmw.core.placement import (
    BackingName,
    backing_base,
    backing_prefix,
    has_digest,
    hidden_account,
    parse_backing,
)

#: No id of a layout is from before 2020, or later than the clock by more than
#: a year. So the listing for the container logs leaves out the backing
#: containers of logs.2026 and logs.a.
EARLIEST_ID_SECONDS = 1_577_836_800
LATEST_ID_SECONDS = 365 * 24 * 3600


class Listed(NamedTuple):
    """A backing container in the listing of a hidden account."""

    name: BackingName
    container: str
    object_count: int

    def path(self, logical: Path) -> Path:
        """Return its path.

        :param logical: the path of the container that it belongs to
        """
        hidden = hidden_account(logical.account)
        return Path(logical.version, hidden, self.container)

    def place(self, logical: Path) -> Place:
        """Return its account and its name; `logical` is as for the path."""
        return self.path(logical).place


def listed_backing(
    backend: Backend, base: dict, path: Path
) -> Iterator[Listed]:
    """List the backing containers of all layouts of a container.

    :param base: an environment of :meth:`Backend.owner_env`
    :raises BackendError: if the hidden account cannot be listed
    """
    hidden = Path(path.version, hidden_account(path.account))
    start, end = backing_range(path.container)
    rows = account_rows(backend, base, hidden, start, end)
    yield from backing_among(rows, path.container)


def backing_range(container: str) -> tuple[str, str]:
    """Return two names that enclose those of a container's backing containers.

    Names of other containers' backing containers may lie between them, too.
    """
    prefix = backing_prefix(container)
    start = prefix + id_of_time(EARLIEST_ID_SECONDS)
    end = prefix + id_of_time(time.time() + LATEST_ID_SECONDS)
    return start, end


def backing_among(rows: Iterable[dict], container: str) -> Iterator[Listed]:
    """Return those rows of an account that are a container's shards."""
    base_name = backing_base(container)
    for row in rows:
        name = parse_backing(row['name'])
        if name and name.base == base_name:
            yield Listed(name, row['name'], row['count'])


def logical_name(backend: Backend, base: dict, backing: Path) -> str | None:
    """Return the name of the container that a backing container belongs to.

    The name of a backing container has only the beginning of a long name. Its
    metadata has the whole name.

    :param base: an environment of :meth:`Backend.owner_env`
    :returns: None if the name is cut and the metadata cannot be read
    """
    name = parse_backing(backing.container).base
    if not has_digest(name):
        return name
    answer = backend.send(base, 'HEAD', backing.to_wsgi())
    whole = answer.headers.get(LOGICAL_HEADER)
    return unquote(whole) if whole else None


def is_forgotten(
    backend: Backend, env: dict, path: Path, root: RootState
) -> bool:
    """Return True if no server knows of a container that is absent.

    Every replica of the root must have answered that it does not have the
    container, and every replica of the account must have answered without
    listing it. The container then was never put, or Swift has reclaimed it
    after its deletion. A root whose partition has moved is still listed.
    """
    if not root.is_absent or root.answered < root.replicas:
        return False
    listings = ask_primaries(
        backend.proxy_app,
        env,
        path.account,
        None,
        'GET',
        query=f'format=json&limit=1&prefix={quote(path.container)}',
    )
    return all(
        answer.is_success
        and path.container not in [row['name'] for row in answer.rows()]
        for answer in listings
    )


def delete_if_empty(backend: Backend, env: dict, path: Path) -> bool:
    """Delete a backing container, if its replicas prove that it is empty.

    :returns: True if it was deleted
    """
    if contents_of(backend, env, path) is not Contents.EMPTY:
        return False
    answer = backend.send(backend.owner_env(env), 'DELETE', path.to_wsgi())
    return answer.is_success
