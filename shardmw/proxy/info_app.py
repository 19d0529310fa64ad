# SPDX-License-Identifier: Apache-2.0
"""Container and account info with the counts of shards, for quotas.

Swift's quota filters use ``get_container_info`` and ``get_account_info``.
These send a HEAD to the proxy app past all filters, so they would see the
counts of roots only. Swift gives every filter of a pipeline the app to which
these requests go, in the attribute ``_pipeline_request_logging_app``. This
module puts an app there that adds the counts of the shards, so that Swift's
own filters enforce the quotas, with their own answers.

The counts of shards are read only if there is a quota, and for the containers
of old versions, whose bytes Swift counts against the quota of their owners.

They are a part of Swift's cached info: they are read when the info is read,
and dropped with it. A client's GET or HEAD renews the info of a sharded
container, like that of a plain one, with the counts that the client gets.
"""

from collections.abc import Callable, Mapping

from swift.common.header_key_dict import HeaderKeyDict
from swift.common.http import HTTP_OK, is_success
from swift.common.swob import Request, Response

from shardmw.backend.accounts import AccountStats, add_counts
from shardmw.backend.answers import Answer, ContainerStats
from shardmw.backend.containers import (
    RECORD_HEADER,
    ROOT_BYTES_KEY,
    ROOT_OBJECTS_KEY,
    STORED_SYNC_TO_NAME,
    BackendError,
    LogicalContainer,
    described_by,
)
from shardmw.core.layout import LayoutError
from shardmw.core.paths import Path, parse_path
from shardmw.core.placement import is_hidden_account, versions_owner
from shardmw.proxy.shard_sums import SummedStats
from shardmw.swift.concurrency import sleep
from shardmw.swift.infocache import (
    INFOCACHE_ENV,
    RequestState,
    Unshared,
    get_cache_key,
    info_at_hand,
    without_sharing_info,
)
from shardmw.swift.loading import InfoTarget
from shardmw.swift.memcached import SharedCache
from shardmw.swift.proxy_app import headers_to_account_info

#: While a request reads the sums, the others wait for the info that it shares.
#: After LOCK_SECONDS they read the sums, too.
LOCK_KEY = 'shardmw/counting/{}'
LOCK_SECONDS = 2
POLL_SECONDS = 0.05

QUOTA_MARK = '-quota-'
OBJECT_COUNT_HEADER = 'X-Container-Object-Count'
BYTES_USED_HEADER = 'X-Container-Bytes-Used'

#: In Swift's answer to a listing if it has cached the shard ranges of a root
#: that is split. The headers are made from the cached info.
CACHED_HEADER = 'X-Backend-Cached-Results'


class InfoApp(InfoTarget):
    """Answers the requests for info of a pipeline's filters.

    :param app: the app to which Swift sends these requests
    """

    def __init__(
        self,
        app: Callable,
        stats: SummedStats,
        account_stats: AccountStats,
        logger,
    ) -> None:
        self.app = app
        self.stats = stats
        self.account_stats = account_stats
        self.logger = logger

    def __getattr__(self, name: str):
        """Return an attribute of the wrapped app."""
        return getattr(self.app, name)

    def __call__(self, env: dict, start_response: Callable):
        """WSGI entry point."""
        if env['REQUEST_METHOD'] != 'HEAD':
            return self.app(env, start_response)
        try:
            path = parse_path(env['PATH_INFO'])
        except ValueError:
            return self.app(env, start_response)
        if path.name or is_hidden_account(path.account):
            return self.app(env, start_response)
        resp = self._head(env, path)
        if not (resp.is_success and _needs_sums(path, resp.headers)):
            _set_info(env, path, resp.headers)
            return resp(env, start_response)
        lock = LOCK_KEY.format(get_cache_key(path.account, path.container))
        cache = SharedCache(env)
        readers = cache.add(lock, 1, LOCK_SECONDS)
        is_shared = _shared_seconds(path, resp.headers) > 0
        if is_shared and (readers or 0) > 1 and _await_info(env, path):
            return resp(env, start_response)
        # While memcached is away, each upload would read all shards.
        read = self.stats.of if readers is None else self.stats.anew
        try:
            resp = self._share_sums(env, path, resp, read)
        finally:
            cache.delete(lock)
        return resp(env, start_response)

    def _share_sums(
        self, env: dict, path: Path, resp: Response, read: Callable
    ) -> Response:
        """Put the info with the sums into memcached.

        :param resp: the answer of the root, or of the account itself
        :param read: a method of the stats
        :returns: a later answer, with the sums
        """
        sums = self._sums(env, path, resp, read)
        # Reading the sums may have taken long. The rest of the info, such as
        # ACLs, must not be older than that of a plain container.
        resp = self._head(env, path)
        if resp.is_success:
            add_counts(resp.headers, sums)
            _add_figures(env, path, resp.headers)
        _set_info(env, path, resp.headers)
        return resp

    def _head(self, env: dict, path: Path) -> Response:
        """Return the answer of the root, or of the account itself."""
        _forget_in_request(env, path)
        with without_sharing_info(env, path):
            return Request(env).get_response(self.app)

    def _sums(
        self, env: dict, path: Path, resp: Response, read: Callable
    ) -> dict[str, int]:
        """Return the counts to add to an answer, by header.

        :returns: an empty dictionary if they cannot be read
        """
        try:
            if path.container is None:
                return self.account_stats.totals(env, path.account)
            return _sums_of_shards(env, path, resp, read)
        except (BackendError, LayoutError) as err:
            names = filter(None, (path.account, path.container))
            self.logger.warning(
                'shardmw: quotas of /%s lack the counts of shards: %s',
                '/'.join(names),
                err,
            )
            return {}


def read_and_share(
    env: dict, path: Path, read: Callable[..., Answer], *args
) -> Answer:
    """Return the answer to a client's GET or HEAD, and share its info.

    The proxy app would put the info into memcached with the counts of the root
    alone, so info that needs sums waits for :func:`share_with_sums`. Other
    info goes there at once: later, it could replace the info of a POST that
    was acknowledged meanwhile.

    :param path: the path of the container or account
    :param read: sends the request in `env`, or in a copy of it
    """
    with without_sharing_info(env, path):
        answer = read(*args)
    if not answer.is_success:
        return answer
    if CACHED_HEADER in answer.headers:
        _show_root_alone(env, path, answer.headers)
    if _needs_sums(path, answer.headers):
        key = get_cache_key(path.account, path.container)
        RequestState.of(env).unshared[key] = Unshared(
            _forget_in_request(env, path),
            answer.headers,
            SharedCache(env).get(key),
        )
    else:
        _set_info(env, path, answer.headers)
    return answer


def _show_root_alone(env: dict, path: Path, headers: HeaderKeyDict) -> None:
    """Replace the sums in a root's headers by the figures of the root."""
    info = info_at_hand(env, path.account, path.container) or {}
    if ROOT_OBJECTS_KEY in info:
        headers[OBJECT_COUNT_HEADER] = info[ROOT_OBJECTS_KEY]
        headers[BYTES_USED_HEADER] = info[ROOT_BYTES_KEY]


def share_with_sums(env: dict, path: Path, sums: Mapping) -> None:
    """Share the info of a client's GET or HEAD that has waited for the sums.

    If memcached has no info, or other info than when the root had answered, a
    POST may have come meanwhile, and the info of this request may be stale.
    Then it is deleted from memcached, and the next request reads it.

    :param sums: the counts of the whole container or account, by header
    """
    key = get_cache_key(path.account, path.container)
    unshared = RequestState.of(env).unshared.pop(key, None)
    if unshared is None:
        return
    cache = SharedCache(env)
    kept = cache.get(key)
    if unshared.info and kept and kept == unshared.kept:
        env[INFOCACHE_ENV][key] = unshared.info
        _add_figures(env, path, sums)
        _set_info(env, path, unshared.headers)
    else:
        cache.delete(key)


def share_stats(
    env: dict, target: LogicalContainer, stats: ContainerStats
) -> None:
    """Share the info of a client's GET or HEAD of a sharded container.

    :param stats: the sums over the root and the shards
    """
    share_with_sums(env, target.path, _by_header(stats))


def _sums_of_shards(
    env: dict, path: Path, resp: Response, read: Callable
) -> dict[str, int]:
    headers = HeaderKeyDict(resp.headers.items())
    answer = Answer(None, resp.status, headers, [])
    target = described_by(path, answer.info())
    return _by_header(read(env, target)) if target else {}


def _by_header(stats: ContainerStats) -> dict[str, int]:
    return {
        OBJECT_COUNT_HEADER: stats.object_count,
        BYTES_USED_HEADER: stats.bytes_used,
    }


def _add_figures(env: dict, path: Path, headers: Mapping) -> None:
    """Put the counts of an answer into the request's cached info.

    The rest of the info comes from the proxy app: the answer lacks headers
    that the client may not see, such as ACLs.

    :param headers: of an answer to a GET or HEAD, with the counts of shards
    """
    infocache = env.get(INFOCACHE_ENV) or {}
    key = get_cache_key(path.account, path.container)
    if key not in infocache:
        return
    info = {**infocache[key], **_figures(path, headers)}
    info.setdefault(ROOT_OBJECTS_KEY, infocache[key].get('object_count'))
    info.setdefault(ROOT_BYTES_KEY, infocache[key].get('bytes'))
    infocache[key] = info


def _forget_in_request(env: dict, path: Path) -> dict | None:
    """Drop the info that the request has, but not the info in memcached.

    :returns: the dropped info
    """
    infocache = env.get(INFOCACHE_ENV) or {}
    return infocache.pop(get_cache_key(path.account, path.container), None)


def _set_info(env: dict, path: Path, headers: Mapping) -> None:
    """Put the info of the request into memcached, for as long as Swift would.

    Object versioning must see that a sharded container syncs.

    :param headers: of an answer of the proxy app
    """
    key = get_cache_key(path.account, path.container)
    infocache = env.get(INFOCACHE_ENV) or {}
    info = infocache.get(key)
    sync_to = (info or {}).get('sysmeta', {}).get(STORED_SYNC_TO_NAME)
    if sync_to:
        info = infocache[key] = {**info, 'sync_to': sync_to}
    seconds = _shared_seconds(path, headers)
    if info and not is_success(info['status']):
        seconds //= 10
    if info:
        SharedCache(env).set(key, info, seconds)


def _shared_seconds(path: Path, headers: Mapping) -> int:
    """Return for how long Swift keeps info in memcached.

    :param headers: of an answer of the proxy app
    """
    level = 'Container' if path.container else 'Account'
    return int(headers.get(f'X-Backend-Recheck-{level}-Existence', 0))


def _await_info(env: dict, path: Path) -> bool:
    """Wait for the info that another request shares.

    :returns: True if the request has the info now
    """
    key = get_cache_key(path.account, path.container)
    for _ in range(int(LOCK_SECONDS / POLL_SECONDS)):
        sleep(POLL_SECONDS)
        info = SharedCache(env).get(key)
        if info:
            env.setdefault(INFOCACHE_ENV, {})[key] = info
            return True
    return False


def _figures(path: Path, headers: Mapping) -> dict:
    """Return the counts of an answer, with the names of Swift's info."""
    if path.container:
        return {
            'object_count': headers[OBJECT_COUNT_HEADER],
            'bytes': headers[BYTES_USED_HEADER],
        }
    info = headers_to_account_info(headers, HTTP_OK)
    names = ('total_object_count', 'bytes', 'storage_policies')
    return {name: info[name] for name in names}


def _needs_sums(path: Path, headers) -> bool:
    """Return True if a quota may be enforced with the counts of shards."""
    if path.container and RECORD_HEADER not in headers:
        return False
    if path.container and versions_owner(path.container) is not None:
        return True
    return any(QUOTA_MARK in name.lower() for name in headers)
