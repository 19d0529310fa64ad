# SPDX-License-Identifier: Apache-2.0
"""Container servers in memory: real container databases behind a WSGI app."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, urlencode

from swift.common.swob import (
    HTTPException,
    HTTPNotFound,
    Request,
    Response,
    wsgi_to_str,
)
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from shardmw.core.listing_params import ListingParams

MAX_REQUEST_LINE = 8192
LISTING_LIMIT = 10_000

#: A header of requests whose query is in the body of a batch.
IN_BODY = 'X-Test-In-Body'


class Database:
    """A container database of Swift.

    :param path: the folder to create for its file
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True)
        self.broker = ContainerBroker(
            str(path / 'c.db'), account='a', container='c'
        )
        self.broker.initialize(Timestamp(1).internal, 0)
        self.names: list[str] = []

    def fill(self, names: Iterable[str], timestamp: float = 1) -> None:
        """Replace all rows by rows with these names."""
        self.names = list(names)
        with self.broker.get() as conn:
            conn.execute('DELETE FROM object')
            conn.commit()
        self.broker.merge_items(
            [
                {
                    'name': name,
                    'created_at': Timestamp(timestamp).internal,
                    'size': 1,
                    'content_type': 'text/plain',
                    'etag': 'etag',
                    'deleted': 0,
                }
                for name in self.names
            ]
        )

    def rows(self, params: dict[str, str]) -> list[dict]:
        """Return the rows that a container server returns for a query."""
        found = self.broker.list_objects_iter(
            int(params.get('limit', LISTING_LIMIT)),
            params.get('marker', ''),
            params.get('end_marker', ''),
            params.get('prefix'),
            params.get('delimiter'),
            params.get('path'),
            reverse=params.get('reverse') == 'true',
            allow_reserved=True,
        )
        return [
            {'subdir': name}
            if content_type is None
            else {
                'bytes': size,
                'hash': etag,
                'name': name,
                'content_type': content_type,
                'last_modified': Timestamp(time).isoformat,
            }
            for name, time, size, content_type, etag in found
        ]


class ContainerServers:
    """A WSGI app that answers GETs of containers.

    :param containers: the databases, by ``account/container``
    """

    def __init__(self, containers: dict[str, Database]) -> None:
        self.containers = containers
        #: Status codes to respond with instead, by ``account/container``.
        self.statuses: dict[str, int] = {}
        #: Called with ``account/container`` before rows are read.
        self.before: Callable[[str], None] = lambda _container: None
        #: Called with ``account/container`` after rows were read.
        self.after: Callable[[str], None] = lambda _container: None
        #: The requests: ``account/container`` and the parameters.
        self.requests: list[tuple[str, dict[str, str]]] = []
        #: How many rows were returned, by ``account/container``.
        self.returned: Counter[str] = Counter()

    def __call__(self, env: dict, start_response: Callable):
        try:
            response = self._response(Request(env))
        except HTTPException as err:
            response = err
        return response(env, start_response)

    def asked(self, container: str) -> list[dict[str, str]]:
        """Return the parameters of the requests to a container."""
        return [
            params for asked, params in self.requests if asked == container
        ]

    def get_policy_options(self, _policy) -> SimpleNamespace:
        """Have all reads of shards go through this app."""
        return SimpleNamespace(concurrent_gets=True)

    def _response(self, req: Request) -> Response:
        _version, path = req.split_path(2, 2, True)
        container = wsgi_to_str(path)
        params = {k: wsgi_to_str(v) for k, v in req.params.items()}
        params['format'] = 'json'
        self.requests.append((container, params))
        if container in self.statuses:
            return Response(status=self.statuses[container])
        is_too_long = len(request_line(container, params)) >= MAX_REQUEST_LINE
        if is_too_long and IN_BODY not in req.headers:
            return Response(status=414)
        database = self.containers.get(container)
        if database is None:
            return HTTPNotFound()
        self.before(container)
        count = str(len(database.names))
        rows = database.rows(params)
        self.returned[container] += len(rows)
        body = json.dumps(rows).encode()
        self.after(container)
        headers = {'X-Container-Object-Count': count}
        return Response(body=body, headers=headers)


def request_line(container: str, params: dict[str, str]) -> str:
    """Return the first line of the proxy's request to a container server."""
    query = urlencode(params)
    return f'GET /d1/1023/{quote(container)}?{query} HTTP/1.1\r\n'


def query_of(wanted: ListingParams) -> dict[str, str]:
    """Return the parameters that a client sends."""
    query = {
        'limit': str(wanted.limit),
        'marker': wanted.marker,
        'end_marker': wanted.end_marker,
        'prefix': wanted.prefix,
        'delimiter': wanted.delimiter,
        'reverse': 'true' if wanted.reverse else '',
    }
    given = {name: value for name, value in query.items() if value}
    return given if wanted.path is None else {**given, 'path': wanted.path}
