# SPDX-License-Identifier: Apache-2.0
"""GETs and HEADs of the backing containers of one container.

A request through the proxy app looks up and prepares anew what is the same
for all shards, which costs more than the rest of the request. So container
servers are asked directly, as the app would ask them: with its ring, its order
of replicas, its timeouts and its error limits. All but a plain good answer is
left to the app: a missing container, one that Swift's own sharder has split,
and requests that need more than one replica.
"""

from collections.abc import Mapping

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request
from swift.proxy.controllers.base import NodeIter
from swift.proxy.server import Application

from shardmw.backend.answers import Answer
from shardmw.backend.concurrency import Timeout
from shardmw.backend.containers import LogicalContainer
from shardmw.backend.nodes import (
    ask_node,
    request_headers,
    tells_of_container,
)


class ShardReads:
    """Reads the shards of a container on behalf of one client request.

    :param backend: sends what is left to the app
    :param base: an environment of :meth:`Backend.owner_env`
    :param headers: the headers of every request
    :param is_within_turn: True if the client request holds a turn
    """

    def __init__(
        self,
        backend,
        base: dict,
        target: LogicalContainer,
        headers: Mapping[str, str],
        is_within_turn: bool,
    ) -> None:
        self.backend = backend
        self.base = base
        self.target = target
        self.headers = headers
        self.is_within_turn = is_within_turn
        self._app = None
        app = backend.proxy_app
        if app and not headers and not _reads_many_replicas(app):
            self._app = app
            # NodeIter wants a request for its headers only.
            self._request = Request({})
            self._headers = {
                **request_headers(app, base),
                # A container that Swift has split answers with its shard
                # ranges; _is_complete tells these from a listing.
                'X-Backend-Record-Type': 'auto',
                'Referer': Request(base).as_referer(),
            }
            self._log_locals = app.logger.thread_locals

    def read(self, shard: int, method: str, query: str = '') -> Answer:
        """Read a backing container.

        :param method: GET or HEAD
        :param query: the quoted query string
        """
        with self.backend.read_turn(self.target.account, self.is_within_turn):
            answer = self._app and self._read(shard, method, query)
            return answer or self.backend.send_to_shard(
                self.base, self.target, shard, method, query, self.headers
            )

    def _read(self, shard: int, method: str, query: str) -> Answer | None:
        """Return the answer of the first replica that gives one.

        :returns: None if the app has to decide
        """
        app = self._app
        app.logger.thread_locals = self._log_locals
        account = self.target.hidden_account
        backing = self.target.backing(shard)
        ring = app.container_ring
        part = ring.get_part(account, backing)
        nodes = NodeIter(
            'container', app, ring, part, app.logger, self._request
        )
        path = f'/{account}/{backing}'
        for node in nodes:
            try:
                answer = ask_node(
                    app,
                    node,
                    part,
                    method,
                    path,
                    self._headers,
                    query,
                    connections=self.backend.connections,
                )
            except (Exception, Timeout):
                app.exception_occurred(
                    node, 'Container', f'Trying to {method} {path}'
                )
                continue
            if tells_of_container(node, answer):
                if _is_complete(answer):
                    return answer._replace(shard=shard)
                return None
        return Answer(shard, '503 Service Unavailable', HeaderKeyDict(), [])


def _reads_many_replicas(app: Application) -> bool:
    """Return True if the operator has replicas raced for each read."""
    return app.get_policy_options(None).concurrent_gets


def _is_complete(answer: Answer) -> bool:
    """Return True if one replica's answer is the container's.

    As for the proxy, it is not if the replica has not caught up with the
    container's creation, nor if it names the shard ranges of a container that
    Swift's own sharder has split.
    """
    if not answer.is_success:
        return False
    headers = answer.headers
    if 'X-Container-Object-Count' not in headers:
        return False  # an answer that was cut off
    is_ranges = headers.get('X-Backend-Record-Type') == 'shard'
    return not is_ranges and float(headers.get('X-Put-Timestamp', 1))
