# SPDX-License-Identifier: Apache-2.0
"""Requests to single account or container servers, without the proxy's code.

They use the rings, timeouts and error limits of the proxy app.
"""

import socket
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote

from swift.common import bufferedhttp
from swift.common.bufferedhttp import (
    BufferedHTTPConnection,
    BufferedHTTPResponse,
)
from swift.common.exceptions import ConnectionTimeout, ShortReadError
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import HTTP_MOVED_PERMANENTLY, is_server_error
from swift.common.request_helpers import get_ip_port
from swift.common.utils import GreenAsyncPile, Timestamp
from swift.proxy.server import Application

from shardmw.backend.answers import Answer
from shardmw.backend.connections import Connection, Connections
from shardmw.core.evidence import Replica, Said
from shardmw.swift.concurrency import Timeout
from shardmw.swift.proxy_app import close_connection

#: How long to wait for all replicas of a container if answers of a majority
#: that knows it are enough.
SLOW_SECONDS = 1

PUT_TIMESTAMP = 'X-Backend-Put-Timestamp'
DELETE_TIMESTAMP = 'X-Backend-Delete-Timestamp'

#: The types of servers, as Swift logs them.
ACCOUNT_SERVER = 'Account'
CONTAINER_SERVER = 'Container'

#: Called with a node when the request to its server has ended, and with False
#: if the request failed.
Answered = Callable[[dict, bool], None]

NO_ANSWER = Answer(None, '503 No Answer', HeaderKeyDict(), [])


def request_headers(app: Application, env: dict) -> dict[str, str]:
    """Return the headers of requests on behalf of a client request."""
    return {
        'X-Trans-Id': env.get('swift.trans_id', '-'),
        'X-Timestamp': Timestamp.now().internal,
        'X-Backend-Allow-Reserved-Names': 'true',
        'User-Agent': app.backend_user_agent,
    }


def ask_node(
    app: Application,
    node: dict,
    part: int,
    method: str,
    path: str,
    headers: Mapping[str, str],
    query: str = '',
    body: bytes = b'',
    connections: Connections | None = None,
    server_type: str = CONTAINER_SERVER,
) -> Answer:
    """Send one request to one server and read the whole answer.

    :param path: ``/account/container``, a native string
    :param query: the quoted query string
    :param server_type: for the log
    :param connections: open connections; None to open one for this request
    :raises Exception: and Timeout, if the server does not answer
    """
    address = get_ip_port(node, headers)
    if body:
        headers = {**headers, 'Content-Length': str(len(body))}
    if connections is None:
        headers = {**headers, 'Connection': 'close'}
    url = quote(f'/{node["device"]}/{part}{path}')
    if query:
        url += f'?{query}'

    def send(http: BufferedHTTPConnection) -> None:
        http.putrequest(method, url)
        for name, value in headers.items():
            http.putheader(name, value)
        # endheaders() would send the headers and the body separately.
        sent = []
        http.send = sent.append
        http.endheaders(body or None)
        del http.send
        http.send(b''.join(sent))

    used = connections and _use_again(app, connections, address, send)
    connection, response = used or _use_new(app, node, address, send)
    response.swift_conn = connection.http
    answer_body = None
    try:
        answer_body = _body_of(app, response)
    finally:
        if answer_body is None or connections is None or response.will_close:
            close_connection(response)
        else:
            connections.keep(*address, connection)
    app.check_response(node, server_type, response, method, path, answer_body)
    return Answer(
        None,
        f'{response.status} {response.reason}',
        HeaderKeyDict(response.getheaders()),
        [answer_body],
    )


def _use_again(
    app: Application,
    connections: Connections,
    address: tuple[str, int],
    send: Callable[[BufferedHTTPConnection], None],
) -> tuple[Connection, BufferedHTTPResponse] | None:
    """Send a request on an open connection.

    :returns: None if there is none, or if the server has closed it
    """
    connection = connections.take(*address)
    if connection is None:
        return None
    try:
        # If the host does not acknowledge the request in time, the request is
        # sent on a new connection.
        connection.http.sock.setsockopt(
            socket.IPPROTO_TCP,
            socket.TCP_USER_TIMEOUT,
            round(app.conn_timeout * 1000),  # milliseconds
        )
        with Timeout(app.node_timeout):
            send(connection.http)
            return connection, connection.http.getresponse()
    except BaseException as err:
        connection.http.close()
        # The server may have closed its other connections, too, or hang.
        connections.close(*address)
        if not isinstance(err, Exception):
            raise
        return None


def _use_new(
    app: Application,
    node: dict,
    address: tuple[str, int],
    send: Callable[[BufferedHTTPConnection], None],
) -> tuple[Connection, BufferedHTTPResponse]:
    """Send a request on a new connection."""
    ip, port = address
    started = time.time()
    http = bufferedhttp.BufferedHTTPConnection(f'{ip}:{port}')
    try:
        with ConnectionTimeout(app.conn_timeout):
            http.connect()
        app.set_node_timing(node, time.time() - started)
        with Timeout(app.node_timeout):
            send(http)
            return Connection(http), http.getresponse()
    except BaseException:
        http.close()
        raise


def ask_primaries(
    app: Application,
    env: dict,
    account: str,
    container: str | None,
    method: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | Callable[[dict, int], bytes] = b'',
    needs_all: bool = True,
    waits: bool = False,
    query: str = '',
    row: str = '',
    answered: Answered | None = None,
) -> list[Answer]:
    """Send a request to all primary servers of a container at once.

    :param env: the environment of the client request
    :param account: a native string, like `container`
    :param container: None to ask the servers of the account
    :param body: the body, or a function that returns it for a server, as the
                 ring describes it, and the partition
    :param needs_all: False to skip servers that have made many errors
                      recently, and not to wait for slow ones when a majority
                      knows the container
    :param waits: True to wait for slow servers in any case
    :param query: the quoted query string
    :param row: the name of a row, a native string, if the request is about one
    :param answered: called for each server when its answer has been read
    :returns: an answer for each primary; 503 for one that did not answer
    """
    if container is None:
        server_type, ring = ACCOUNT_SERVER, app.account_ring
        path = f'/{account}'
    else:
        server_type, ring = CONTAINER_SERVER, app.container_ring
        path = f'/{account}/{container}' + (row and f'/{row}')
    part, nodes = ring.get_nodes(account, container)
    all_headers = {**request_headers(app, env), **(headers or {})}
    log_locals = app.logger.thread_locals

    def ask(node: dict) -> Answer:
        app.logger.thread_locals = log_locals
        if not needs_all and app.error_limited(node):
            return NO_ANSWER
        answer = NO_ANSWER
        try:
            answer = ask_node(
                app,
                node,
                part,
                method,
                path,
                all_headers,
                query=query,
                body=body(node, part) if callable(body) else body,
                server_type=server_type,
            )
        except (Exception, Timeout):
            app.exception_occurred(
                node, server_type, f'Trying to {method} {path}'
            )
        if answered:
            answered(node, answer.is_success)
        return answer

    pile = GreenAsyncPile(len(nodes))
    for node in nodes:
        pile.spawn(ask, node)
    answers = [] if needs_all or waits else pile.waitall(SLOW_SECONDS)
    # Only a server that has the database redirects a row.
    knowing = sum(
        replica_of(answer).knows or answer.status == HTTP_MOVED_PERMANENTLY
        for answer in answers
    )
    if 2 * knowing <= len(nodes):
        answers += list(pile)
    return answers + [NO_ANSWER] * (len(nodes) - len(answers))


def replica_of(answer: Answer) -> Replica:
    """Return what a server's answer says of a container's database.

    :param answer: the answer to a request without a row
    """
    deleted = _seconds(answer, DELETE_TIMESTAMP, '0')
    if answer.is_success:
        put = _seconds(answer, PUT_TIMESTAMP, '1')
        return Replica(Said.ALIVE, put, deleted, answer.object_count)
    if not answer.is_missing:
        return Replica(Said.SILENT)
    if not deleted:
        return Replica(Said.MISSING)
    return Replica(Said.DELETED, deleted=deleted)


def _seconds(answer: Answer, name: str, default: str) -> float:
    """Return the time in a header, without its offset."""
    text = answer.headers.get(name) or default
    return float(text.partition('_')[0])


def tells_of_container(node: dict, answer: Answer) -> bool:
    """Return True if a server's answer says anything about a container.

    As in Swift's proxy, a 404 of a handoff does not.
    """
    is_handoff = 'handoff_index' in node
    return not (
        is_server_error(answer.status) or (is_handoff and answer.is_missing)
    )


def _body_of(app: Application, response) -> bytes:
    """Read a body in chunks, each within the node's timeout."""
    length = response.length
    chunks = []
    while True:
        with Timeout(app.node_timeout):
            chunk = response.read(app.object_chunk_size)
        if not chunk:
            break
        chunks.append(chunk)
    body = b''.join(chunks)
    if length is not None and len(body) != length:
        raise ShortReadError(f'{len(body)} bytes of {length}')
    return body
