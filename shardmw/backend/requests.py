# SPDX-License-Identifier: Apache-2.0
"""Requests of the filter to the rest of the pipeline."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import HTTP_GONE, HTTP_NOT_FOUND
from swift.common.swob import Request, Response
from swift.common.utils import StreamingPile, close_if_possible
from swift.common.wsgi import make_pre_authed_env
from swift.proxy.server import Application

from shardmw.backend.answers import Answer
from shardmw.backend.connections import Connections
from shardmw.backend.containers import (
    SWIFT_SOURCE,
    BackendError,
    LogicalContainer,
)
from shardmw.backend.fanout_turns import TURN_ENV, Turns
from shardmw.backend.gc_freeze import leave_out_lasting_objects
from shardmw.backend.metrics import SILENT, Metrics
from shardmw.backend.move_throttle import Throttle
from shardmw.backend.shard_reads import ShardReads
from shardmw.core.batch import Address
from shardmw.core.paths import API_VERSION, Path, Place, parse_path
from shardmw.core.placement import REGISTER, is_hidden_account, owner_of
from shardmw.swift import SPLIT_STATES, proxy_app
from shardmw.swift.concurrency import Timeout
from shardmw.swift.infocache import INFOCACHE_ENV, info_at_hand

RESERVED_NAMES_ENV = 'HTTP_X_BACKEND_ALLOW_RESERVED_NAMES'
NEWEST_ENV = 'HTTP_X_NEWEST'

#: The Host of the filter's own requests, which container servers get as part
#: of the Referer. The client's Host may be as long as a header can be.
HOST = 'shardmw'


class Backend:
    """Sends the filter's requests to Swift.

    :param app: the rest of the pipeline
    :param logger: the filter's logger
    :param concurrency: how many requests to shards to send at once for one
                        client request
    :param idle_connections: how many connections to each container server to
                             keep open after shards were read
    :param turns: the turns of client requests that read or write many backing
                  containers; None does not bound their number
    :param read_turns: the turns of their reads of single backing containers
    :param other_read_turns: the turns of such reads for requests without a
                             turn of their own, such as uploads that need the
                             sums of a container
    :param metrics: what sends the metrics
    """

    def __init__(
        self,
        app: Callable,
        logger,
        concurrency: int,
        idle_connections: int = 0,
        turns: Turns | None = None,
        read_turns: Turns | None = None,
        other_read_turns: Turns | None = None,
        metrics: Metrics = SILENT,
    ) -> None:
        self.app = app
        self.logger = logger
        self.metrics = metrics
        self.concurrency = concurrency
        self._turns = turns
        self._read_turns = read_turns
        self._other_read_turns = other_read_turns
        # When to ask servers for batches again, by address.
        self._without_batches: dict[Address, float] = {}
        #: Limits the requests with rows that move.
        self.throttle = Throttle()
        #: Open connections to container servers; None if none stay open.
        self.connections = (
            Connections(idle_connections) if idle_connections else None
        )

    def takes_batches(self, address: Address) -> bool:
        """Return True if a server may be asked for batches now."""
        return self._without_batches.get(address, 0) < time.monotonic()

    def without_batches(self, address: Address, seconds: float) -> None:
        """Do not ask a server for batches for a while."""
        self._without_batches[address] = time.monotonic() + seconds

    @property
    def proxy_app(self) -> Application:
        """Return Swift's proxy app."""
        return proxy_app.proxy_app_of(self.app)

    def container_info(self, env: dict) -> dict:
        """Return Swift's cached info of the container that a path names.

        The caller must not change it.
        """
        path = parse_path(env['PATH_INFO'])
        info = info_at_hand(env, path.account, path.container)
        if info is None:
            return proxy_app.get_container_info(
                env, self.app, swift_source=SWIFT_SOURCE
            )
        return info

    def container_info_of(self, env: dict, path: Path) -> dict:
        """Return Swift's cached info of another container.

        :param path: the path of the container, or of an object in it
        """
        return self.container_info(dict(env, PATH_INFO=path.to_wsgi()))

    def account_info(self, env: dict, account: str | None = None) -> dict:
        """Return Swift's cached info of an account.

        :param account: a native string; None for the one that `env` names
        """
        if account is not None:
            env = dict(env, PATH_INFO=Path(API_VERSION, account).to_wsgi())
        return proxy_app.get_account_info(
            env, self.app, swift_source=SWIFT_SOURCE
        )

    def account_exists(self, env: dict, account: str) -> bool:
        """Return True if an account has a database, as cached by Swift."""
        info = self.account_info(env, account)
        # It is False in an answer that Swift makes up (account_autocreate).
        is_missing = info['status'] in (HTTP_NOT_FOUND, HTTP_GONE)
        return not is_missing and bool(info.get('account_really_exists', True))

    def create_hidden_account(self, env: dict, account: str) -> None:
        """Create a hidden account and register it, if it does not exist.

        It may have any number of containers, even if Swift limits the number
        of containers of an account.

        :raises BackendError: if it cannot be registered
        """
        proxy_app.allow_any_number_of_containers(
            self.proxy_app, is_hidden_account
        )
        if not self.account_exists(env, account):
            self.register(env, owner_of(account))
            self._autocreate(env, account)

    def register(self, env: dict, owner: str) -> None:
        """Add an account to the register.

        :raises BackendError: if that fails
        """
        if not self.account_exists(env, REGISTER):
            self.create_register(env)
        place = Place(REGISTER, owner)
        answer = self.send(self.owner_env(env), 'PUT', place.path.to_wsgi())
        if not answer.is_success:
            raise BackendError(
                None,
                answer.status,
                f'container {place} answered {answer.status}',
            )

    def create_register(self, env: dict) -> None:
        """Create the account that is the register."""
        self._autocreate(env, REGISTER)

    def _autocreate(self, env: dict, account: str) -> None:
        proxy_app.autocreate_account(
            self.proxy_app, self.owner_env(env), account
        )

    def may_use(self, env: dict, header: str) -> bool:
        """Return True if a client may see and set a header of a container.

        Swift reserves some headers for the owners of the account.

        :param env: the environment of the client's authorized request
        """
        if env.get('swift_owner'):
            return True
        return header not in self.proxy_app.swift_owner_headers

    def with_cors(self, req: Request, path: Path, resp: Response) -> Response:
        """Add CORS headers to a response of the filter, and return it.

        The proxy app adds them to its own responses if the container has a
        CORS setting for the Origin of the request.

        :param path: the path of a container
        """
        return proxy_app.with_cors(
            self.proxy_app, req, path.account, path.container, resp
        )

    def forget_info(self, env: dict, path: Path) -> None:
        """Drop what memcached and the request have cached of a container."""
        proxy_app.clear_info_cache(env, path.account, path.container)

    def database_of(self, env: dict, place: Place, name: str) -> Place:
        """Return the container whose database takes the row of an object.

        That is the container itself, or a shard of it if Swift's own sharder
        has split it.
        """
        info = self.container_info_of(env, place.path)
        if info.get('sharding_state') in SPLIT_STATES:
            path = place.path._replace(name=name).to_wsgi()
            env = {**env, 'PATH_INFO': path}
            target = proxy_app.update_target(self.proxy_app, env, place, name)
            if target:
                return target
        return place

    def owner_env(self, env: dict, uncached: bool = False) -> dict:
        """Return the base of pre-authorized requests on behalf of a request.

        They have neither the client's Host nor its query. Both may be long,
        and the Referer header must have room for the filter's own query.

        :param uncached: True to bypass memcached
        """
        base = make_pre_authed_env(env, swift_source=SWIFT_SOURCE)
        base.pop('HTTP_ORIGIN', None)
        base['HTTP_HOST'] = HOST
        base['QUERY_STRING'] = ''
        base['swift_owner'] = True
        base['swift.proxy_access_log_made'] = True
        base[RESERVED_NAMES_ENV] = 'true'
        if uncached:
            base.pop('swift.cache', None)
            base[INFOCACHE_ENV] = dict(env.get(INFOCACHE_ENV, {}))
        return base

    def send(
        self,
        base: dict,
        method: str,
        path: str,
        query: str = '',
        headers: Mapping[str, str] | None = None,
        shard: int | None = None,
        body: bytes = b'',
    ) -> Answer:
        """Send one request and read its whole answer.

        :param base: an environment of :meth:`owner_env`
        :param path: the unquoted path, a WSGI string
        :param query: the quoted query string
        """
        env = dict(
            base,
            REQUEST_METHOD=method,
            PATH_INFO=path,
            QUERY_STRING=query,
            CONTENT_LENGTH=str(len(body)),
        )
        env['wsgi.input'] = BytesIO(body)
        req = Request(env)
        req.headers.update(headers or {})
        return self._whole(req, shard)

    def send_to_shard(
        self,
        base: dict,
        target: LogicalContainer,
        shard: int,
        method: str,
        query: str = '',
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request to a backing container."""
        path = target.backing_path(shard).to_wsgi()
        return self.send(base, method, path, query, headers, shard)

    def send_as_client(
        self, req: Request, changes: Mapping[str, str] | None = None
    ) -> Answer:
        """Forward a client's request and read the whole answer.

        The forwarded request has an environment of its own.

        :param changes: what to change in the environment
        """
        return self._whole(Request(dict(req.environ, **(changes or {}))))

    def pass_on(self, req: Request) -> Answer:
        """Forward a client's request in its own environment.

        The app stores there what other filters need to know, such as that the
        client owns the account.
        """
        return self._whole(req)

    def _whole(self, req: Request, shard: int | None = None) -> Answer:
        status, headers, body = req.call_application(self.app)
        try:
            parts = [b''.join(body)]
        finally:
            close_if_possible(body)
        return Answer(shard, status, HeaderKeyDict(headers), parts)

    def turn(self, env: dict, account: str) -> AbstractContextManager:
        """Hold a turn to read or write many backing containers.

        :param env: the environment of the client's request
        :param account: the account of the logical container
        :raises NoTurn: if the request would have to wait too long
        """
        if self._turns is None:
            return nullcontext()
        return self._turns.turn(env, account)

    def read_turn(
        self, account: str, is_within_turn: bool
    ) -> AbstractContextManager:
        """Hold a turn to send one request for backing containers.

        :param account: the account of the logical container
        :param is_within_turn: True if the request holds a turn to read many
        """
        turns = self._read_turns if is_within_turn else self._other_read_turns
        return nullcontext() if turns is None else turns.turn({}, account)

    def fan_out(
        self,
        send: Callable[..., Answer],
        calls: Iterable[tuple],
        concurrency: int | None = None,
        ends_at_failure: bool = False,
    ) -> list[Answer]:
        """Call a function for many arguments at once.

        :param send: the function; if it raises, the result is a 503
        :param calls: the arguments, the shard (None: the root) first
        :param concurrency: the most calls at once, by default as many as reads
        :param ends_at_failure: True to make no further calls after an
                                unsuccessful answer; their results are 503s
        :returns: the answers, in the order of the calls
        """
        leave_out_lasting_objects()
        calls = list(calls)
        most = concurrency or self.concurrency
        has_failed = False

        def guarded(index: int, *args) -> tuple[int, Answer]:
            nonlocal has_failed
            failure = Answer(
                args[0], '503 Service Unavailable', HeaderKeyDict(), []
            )
            if has_failed and ends_at_failure:
                return index, failure
            try:
                answer = send(*args)
            except (Exception, Timeout):
                self.logger.exception('shardmw: request to shard failed')
                answer = failure
            has_failed = has_failed or not answer.is_success
            return index, answer

        with StreamingPile(max(1, min(most, len(calls)))) as pile:
            numbered = [(i, *args) for i, args in enumerate(calls)]
            answers = dict(pile.asyncstarmap(guarded, numbered))
        return [answers[i] for i in range(len(calls))]

    def for_each(
        self, act: Callable, items: Iterable, concurrency: int
    ) -> list:
        """Call a function for many items at once.

        :returns: the results, in the order of the items
        :raises Exception: the error that one of the calls has raised
        """
        results = {}
        failures = []

        def guarded(_shard: None, number: int, item: object) -> Answer:
            try:
                results[number] = act(item)
            except Exception as err:
                failures.append(err)
            return Answer(None, '200 OK', HeaderKeyDict(), [])

        calls = [(None, *each) for each in enumerate(items)]
        self.fan_out(guarded, calls, concurrency)
        for failure in failures:
            raise failure
        if len(results) < len(calls):
            raise BackendError(None, 503, 'servers did not answer in time')
        return [results[number] for number in range(len(calls))]

    def head_shards(
        self, env: dict, target: LogicalContainer, newest: bool = False
    ) -> list[Answer]:
        """HEAD every backing container.

        :param newest: True to ask all replicas of each
        :returns: the answers in the order of the shards, errors included
        """
        reads = self.shard_reads(env, target, newest)
        answers = [
            answer
            for stage in target.read_stages()
            for answer in reads.heads(stage)
        ]
        return sorted(answers, key=lambda answer: answer.shard)

    def shard_reads(
        self, env: dict, target: LogicalContainer, newest: bool = False
    ) -> ShardReads:
        """Return a reader of a container's shards for a request.

        :param newest: True to ask all replicas of each, even if the client
                       does not
        """
        headers = {'X-Newest': 'true'} if newest else newest_header(env)
        base = self.owner_env(env, uncached=True)
        return ShardReads(self, base, target, headers, TURN_ENV in env)


def newest_header(env: dict) -> dict[str, str]:
    """Return the client's X-Newest, for requests to shards on its behalf.

    It multiplies the number of requests, so it is ignored unless the client
    owns the account.
    """
    newest = env.get(NEWEST_ENV)
    return {'X-Newest': newest} if newest and env.get('swift_owner') else {}


def to_environ(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers under their names in a WSGI environment."""
    return {
        'HTTP_' + name.upper().replace('-', '_'): value
        for name, value in headers.items()
    }
