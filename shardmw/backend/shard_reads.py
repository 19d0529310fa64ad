# SPDX-License-Identifier: Apache-2.0
"""GETs and HEADs of the backing containers of one container.

For each request, the proxy app looks up and prepares things that are the same
for all shards, which costs more than the rest of the request. So the filter
asks container servers directly, as the app would: with its ring, its order of
replicas, its timeouts and its error limits. The app still handles all other
cases: a missing container, one that Swift's own sharder has split, and
requests that need more than one replica.

A server with the filter ``shardmw-container`` is asked for several shards in
one request, a *batch*.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import is_client_error
from swift.common.request_helpers import get_ip_port
from swift.common.swob import Request
from swift.proxy.server import Application

from shardmw.backend.answers import Answer
from shardmw.backend.containers import LogicalContainer
from shardmw.backend.nodes import (
    ask_node,
    request_headers,
    tells_of_container,
)
from shardmw.core.batch import (
    METHOD,
    MOST_READS,
    Address,
    Found,
    Read,
    Source,
    decode_found,
    encode_reads,
    grouped,
)
from shardmw.swift.concurrency import Timeout
from shardmw.swift.proxy_app import replicas_in_order

#: The most rows in a batch. A server reads the shards of a batch one after
#: another, so larger batches are split and read by several processes at once.
MOST_ROWS = 512

#: The fewest shards in a batch, if the listing reads that many. Smaller
#: batches would use more servers at once, and more requests.
USUAL_READS = 8

#: The most shards in a batch if the number of rows of each is unknown. The
#: more shards a batch has, the fewer rows of each it may ask for.
MOST_READS_OF_UNKNOWN = 16

#: How long to send no batches to a container server that has refused one.
WITHOUT_SECONDS = 300

#: How long to send no batches to a container server that did not answer one.
#: Only from single reads can Swift's error limits find out which device fails.
FAILED_SECONDS = 60

_UNAVAILABLE = '503 Service Unavailable'


class ShardReads:
    """Reads the shards of a container on behalf of one client request.

    :param backend: sends the requests that are left to the app
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
        if not headers and not _reads_many_replicas(app):
            self._app = app
            self._headers = {
                **request_headers(app, base),
                # A container that Swift has split answers with its shard
                # ranges; _is_complete recognizes these.
                'X-Backend-Record-Type': 'auto',
                'Referer': Request(base).as_referer(),
            }
            self._log_locals = app.logger.thread_locals

    def read(
        self,
        shard: int,
        method: str,
        query: str = '',
        failed: Address | None = None,
    ) -> Answer:
        """Read a backing container.

        :param method: GET or HEAD
        :param query: the quoted query string
        :param failed: the address of a server that has just failed
        """
        with self.backend.read_turn(self.target.account, self.is_within_turn):
            answer = self._app and self._read(shard, method, query, failed)
            return answer or self.backend.send_to_shard(
                self.base, self.target, shard, method, query, self.headers
            )

    def heads(self, shards: Iterable[int]) -> list[Answer]:
        """HEAD backing containers; return the answers in their order."""
        shards = list(shards)
        answers: dict[int, Answer] = {}

        def read(shard: int, batch: list[Source]) -> Answer:
            found = self.read_batch(batch, 'HEAD', [''] * len(batch))
            for source, answer in zip(batch, found, strict=True):
                answers[source.shard] = answer
            return answers[shard]

        calls = [(batch[0].shard, batch) for batch in self.batches(shards)]
        self.backend.fan_out(read, calls)
        return [answers.get(shard) or _no_answer(shard) for shard in shards]

    def batches(
        self, shards: Iterable[int], rows: int | None = 0
    ) -> list[list[Source]]:
        """Group the backing containers to read together.

        :param rows: about how many rows to read of each, None if that is not
                     known
        :returns: a group for each request to send
        """
        shards = list(shards)
        if self._app is None:
            return [[Source(shard)] for shard in shards]
        most = max(1, min(MOST_READS, len(shards), MOST_ROWS // (rows or 1)))
        # Preferring some replicas pays only if shards are read together.
        replicas = None if most > 1 else 1
        sources = {shard: self._sources(shard, replicas) for shard in shards}
        size = min(most, self._batch_size(sources, most, rows))
        return grouped(sources, size)

    def _batch_size(
        self,
        sources: Mapping[int, Mapping[Address, Source]],
        most: int,
        rows: int | None,
    ) -> int:
        """Return how many shards to read together where that is possible."""
        count = len(sources)
        if rows is None:
            size = math.ceil(count / self.backend.concurrency)
            return max(1, min(size, MOST_READS_OF_UNKNOWN))
        # A batch occupies one process of a server. With one short batch for
        # each server, the other processes are free for other requests.
        servers = len(set().union(*sources.values()))
        at_once = min(self.backend.concurrency, servers)
        batches = max(1, at_once, math.ceil(count / most))
        return max(USUAL_READS, math.ceil(count / batches))

    def _sources(
        self, shard: int, most: int | None = None
    ) -> dict[Address, Source]:
        """Return the replicas that the proxy may ask first, by address.

        :param most: how many to consider, with or without the filter; None
                     for all
        """
        app = self._app
        place = self.target.place_in(shard)
        part, nodes = app.container_ring.get_nodes(*place)
        nodes = app.sort_nodes([n for n in nodes if not app.error_limited(n)])
        options = app.get_policy_options(None)
        if options.sorting_method == 'timing':
            nodes = nodes[:1]
        elif options.sorting_method == 'affinity':
            key = options.read_affinity_sort_key
            nodes = [node for node in nodes if key(node) == key(nodes[0])]
        sources = {
            get_ip_port(node, self._headers): Source(shard, node, part)
            for node in nodes[:most]
        }
        return {
            address: source
            for address, source in sources.items()
            if self.backend.takes_batches(address)
        }

    def read_batch(
        self,
        batch: list[Source],
        method: str,
        queries: list[str],
        ends_at_failure: bool = False,
    ) -> list[Answer]:
        """Read backing containers, with one request if that works.

        :param batch: one of :meth:`batches`
        :param method: GET or HEAD
        :param queries: the quoted query strings
        :param ends_at_failure: True if a failure makes other answers useless
        :returns: the answers in their order
        """
        failed = None
        answers = [None] * len(batch)
        if self._can_ask(batch[0].node):
            with self.backend.read_turn(
                self.target.account, self.is_within_turn
            ):
                # Batches may have failed while this request waited.
                if self._can_ask(batch[0].node):
                    answers = self._ask_for(batch, method, queries)
            if answers is None:
                answers = [None] * len(batch)
                failed = get_ip_port(batch[0].node, self._headers)
        if len(batch) == 1:
            (answer,) = answers
            return [
                answer or self.read(batch[0].shard, method, queries[0], failed)
            ]
        calls = [
            (source.shard, method, query, failed)
            for source, query, answer in zip(
                batch, queries, answers, strict=True
            )
            if answer is None
        ]
        if not calls:
            return answers
        alone = iter(
            self.backend.fan_out(
                self.read, calls, ends_at_failure=ends_at_failure
            )
        )
        return [answer or next(alone) for answer in answers]

    def _can_ask(self, node: dict | None) -> bool:
        """Return True if a server may be asked for a batch now."""
        if not node or self._app.error_limited(node):
            return False
        return self.backend.takes_batches(get_ip_port(node, self._headers))

    def _ask_for(
        self, batch: list[Source], method: str, queries: list[str]
    ) -> list[Answer | None] | None:
        """Send one request for several shards.

        :returns: the answers, with None for each shard that is to be read
                  alone; only None if the server did not answer
        """
        app = self._app
        app.logger.thread_locals = self._log_locals
        reads = [
            Read(
                source.node['device'],
                source.part,
                *self.target.place_in(source.shard),
                method,
                query,
            )
            for source, query in zip(batch, queries, strict=True)
        ]
        node, part = batch[0].node, batch[0].part
        address = get_ip_port(node, self._headers)
        path = f'/{self.target.place_in(batch[0].shard)}'
        try:
            answer = ask_node(
                app,
                node,
                part,
                METHOD,
                path,
                self._headers,
                body=encode_reads(reads),
                connections=self.backend.connections,
            )
            if is_client_error(answer.status):
                self.backend.without_batches(address, WITHOUT_SECONDS)
                return [None] * len(batch)
            if not answer.is_success:
                return None
            found = decode_found(b''.join(answer.body), len(batch))
        except (Exception, Timeout):
            app.exception_occurred(
                node, 'Container', f'Trying to {METHOD} {path}'
            )
            if len(batch) > 1:
                self.backend.without_batches(address, FAILED_SECONDS)
            return None
        return [
            each and self._answer(source.shard, method, each)
            for source, each in zip(batch, found, strict=True)
        ]

    @staticmethod
    def _answer(shard: int, method: str, found: Found) -> Answer | None:
        status = '200 OK' if method == 'GET' else '204 No Content'
        headers = HeaderKeyDict(found.headers)
        answer = Answer(shard, status, headers, [found.body])
        return answer if _is_complete(answer) else None

    def _read(
        self,
        shard: int,
        method: str,
        query: str,
        failed: Address | None,
    ) -> Answer | None:
        """Return the answer of the first replica that gives one.

        :param failed: the address of a server to ask last
        :returns: None if the app has to decide
        """
        app = self._app
        app.logger.thread_locals = self._log_locals
        place = self.target.place_in(shard)
        ring = app.container_ring
        part = ring.get_part(*place)
        nodes = replicas_in_order(app, ring, part)
        path = f'/{place}'
        for node in self._last(failed, nodes):
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
        return _no_answer(shard)

    def _last(
        self, address: Address | None, nodes: Iterable[dict]
    ) -> Iterator[dict]:
        """Iterate over nodes, those at an address after all others."""
        late = []
        for node in nodes:
            if get_ip_port(node, self._headers) == address:
                late.append(node)
            else:
                yield node
        yield from late


def _no_answer(shard: int) -> Answer:
    return Answer(shard, _UNAVAILABLE, HeaderKeyDict(), [])


def _reads_many_replicas(app: Application) -> bool:
    """Return True if the proxy may ask several replicas for one read."""
    return app.get_policy_options(None).concurrent_gets


def _is_complete(answer: Answer) -> bool:
    """Return True if one replica's answer can stand for the container.

    As in Swift's proxy, it cannot if the replica has not caught up with the
    container's creation, or if it has the shard ranges of a container that
    Swift's own sharder has split.
    """
    if not answer.is_success:
        return False
    headers = answer.headers
    if 'X-Container-Object-Count' not in headers:
        return False  # an answer that was cut off
    is_ranges = headers.get('X-Backend-Record-Type') == 'shard'
    return not is_ranges and float(headers.get('X-Put-Timestamp', 1))
