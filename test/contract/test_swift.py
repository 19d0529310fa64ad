# SPDX-License-Identifier: Apache-2.0
"""The contract with Swift: each part that is used without a promise.

Swift promises plug-ins its WSGI interface, ``swift.common.swob`` and the like.
shardmw needs more. Each test here is one part: its docstring says what is used
and why, and it fails if a release of Swift changes that part. The tests run on
every release that ``doc/compatibility.md`` names, and ``make contract
SWIFT=DIR`` runs them on a checkout of Swift.
"""

import inspect
import json
import pickle
import sqlite3
from base64 import b64decode
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from swift.common import constraints, utils
from swift.common.db import GreenDBConnection
from swift.common.memcached import MemcacheRing
from swift.common.middleware.crypto.crypto_utils import CRYPTO_KEY_CALLBACK
from swift.common.middleware.crypto.keymaster import KeyMasterContext
from swift.common.middleware.listing_formats import get_listing_content_type
from swift.common.middleware.memcache import MemcacheMiddleware
from swift.common.middleware.ratelimit import interpret_conf_limits
from swift.common.middleware.s3api.utils import MULTIUPLOAD_SUFFIX
from swift.common.middleware.versioned_writes.object_versioning import (
    SYSMETA_VERSIONS_CONT,
)
from swift.common.request_helpers import (
    get_reserved_name,
    split_reserved_name,
)
from swift.common.swob import Request, Response, str_to_wsgi, wsgi_to_str
from swift.common.utils import NamespaceBoundList, Timestamp, split_path
from swift.common.wsgi import loadcontext, loadwsgi, make_pre_authed_env
from swift.container import backend
from swift.container.backend import (
    ContainerBroker,
    update_new_item_from_existing,
)
from swift.container.server import ContainerController
from swift.obj import server as object_server
from swift.obj.watchers import dark_data
from swift.proxy.controllers import base
from swift.proxy.controllers.obj import BaseObjectController

from shardmw.core import placement
from shardmw.core.paths import Place, native, parse_path, wsgi_of
from shardmw.swift import SPLIT_STATES, object_audit, proxy_app, statsd
from shardmw.swift.infocache import redirected
from shardmw.swift.memcached import servers_in, servers_of
from shardmw.swift.start_check import redirection_problem
from test.unit.fakeswift import ACCOUNT, loaded

NOW = Timestamp(1_700_000_000).internal
LATER = Timestamp(1_700_000_001).internal
#: The headers that make an object server update a container server.
UPDATED = {
    'X-Container-Host': '127.0.0.1:1',
    'X-Container-Device': 'sdb1',
    'X-Container-Partition': '1',
}
PUT = 'PUT', NOW, {'Content-Type': 'text/plain', 'Content-Length': '0'}
TYPED = 'POST', LATER, {'Content-Type': 'text/x'}
MANIFEST = {
    'Content-Type': 'text/plain;swift_bytes=99',
    'X-Object-Sysmeta-Container-Update-Override-Etag': 'e; slo_etag=f',
}
FRAGMENT = {
    'X-Object-Sysmeta-Ec-Etag': 'whole',
    'X-Object-Sysmeta-Ec-Content-Length': '999',
    'X-Backend-Container-Update-Override-Etag': 'whole',
    'X-Backend-Container-Update-Override-Size': '999',
}

#: The requests for an object of each kind.
WRITES = {
    'put': [PUT],
    'put with an offset': [(PUT[0], f'{NOW}_{1:016x}', PUT[2])],
    'content type posted': [PUT, TYPED],
    'metadata posted': [PUT, ('POST', LATER, {'X-Object-Meta-A': 'b'})],
    'manifest': [(*PUT[:2], {**PUT[2], **MANIFEST})],
    'manifest posted': [(*PUT[:2], {**PUT[2], **MANIFEST}), TYPED],
    'fragment': [(*PUT[:2], {**PUT[2], **FRAGMENT})],
    'fragment posted': [(*PUT[:2], {**PUT[2], **FRAGMENT}), TYPED],
}
COLUMNS = [
    *('ROWID', 'name', 'created_at', 'size', 'content_type', 'etag'),
    *('deleted', 'storage_policy_index'),
]


@pytest.fixture
def server(tmp_path) -> ContainerController:
    """Return a container server with one device."""
    (tmp_path / 'sdb1').mkdir()
    conf = {'devices': str(tmp_path), 'mount_check': 'false'}
    return ContainerController(conf)


def send(server, method, path, body=b'', **headers):
    """Send a request to a container server."""
    environ = {'REQUEST_METHOD': method}
    names = {name.replace('_', '-'): text for name, text in headers.items()}
    headers = {
        'X-Timestamp': NOW,
        'X-Backend-Storage-Policy-Index': '0',
        **names,
    }
    req = Request.blank(f'/sdb1/1{path}', environ, headers, body=body)
    return req.get_response(server)


def row(name, timestamp=NOW, **columns) -> dict:
    return {
        'name': name,
        'created_at': timestamp,
        'size': 3,
        'content_type': 'text/plain',
        'etag': 'etag',
        'deleted': 0,
        'storage_policy_index': 0,
        **columns,
    }


def put_row(server, path='/a/c/o', **headers):
    about = {'X-Size': '3', 'X-Content-Type': 'text/plain', 'X-Etag': 'etag'}
    return send(server, 'PUT', path, **about, **headers)


@pytest.fixture
def broker(server) -> ContainerBroker:
    """Return the broker of a container that has just been created."""
    assert send(server, 'PUT', '/a/c').status_int == 201
    return server._get_container_broker('sdb1', '1', 'a', 'c')


class TestProxy:
    def test_the_row_of_an_object_goes_to_a_shard_in_the_info_cache(
        self, swift
    ):
        """``BaseObjectController._get_update_target`` and its info cache.

        The filter redirects rows by what Swift has for its own sharder. It
        checks this at start-up, too.
        """
        assert redirection_problem(swift) is None

    def test_bound_lists_of_namespaces_find_the_only_range(self):
        """``NamespaceBoundList([['', name]])`` is one range for all names."""
        bounds = NamespaceBoundList([['', '.shards_x/c']])
        for name in ('a', '\U0010ffff'):
            assert bounds.get_namespace(name).name == '.shards_x/c'

    def test_keys_of_the_info_cache_tell_containers_and_accounts_apart(self):
        """``get_cache_key``: the filter reads and replaces cached info."""
        keys = {
            base.get_cache_key('a'),
            base.get_cache_key('a', 'c'),
            base.get_cache_key('a', 'c', shard='updating'),
        }
        assert len(keys) == 3

    def test_info_in_the_request_is_used_before_memcached(self, swift):
        """``swift.infocache`` in the environment, with unpickled info."""
        info = base.headers_to_container_info({}, 200)
        env = {'PATH_INFO': '/v1/a/c', 'REQUEST_METHOD': 'GET'}
        env['swift.infocache'] = redirected(
            {}, 'a', 'c', info, Place('x', 'y')
        )
        found = base.get_container_info(env, swift, swift_source='SMW')
        assert found['sharding_state'] == 'sharded'
        assert not swift.calls

    def test_info_has_what_the_filter_reads(self):
        """``headers_to_container_info`` makes info from headers."""
        headers = {
            'x-container-object-count': '3',
            'x-container-bytes-used': '7',
            'x-container-sysmeta-shardmw-layout': 'record',
            'x-backend-storage-policy-index': '1',
            'x-backend-sharding-state': 'sharding',
        }
        info = base.headers_to_container_info(headers, 200)
        assert (int(info['object_count']), int(info['bytes'])) == (3, 7)
        assert info['sysmeta'] == {'shardmw-layout': 'record'}
        assert info['storage_policy'] == '1'
        assert info['sharding_state'] == 'sharding'
        assert {'status', 'write_acl', 'read_acl', 'sync_key'} <= info.keys()

    def test_account_info_has_counts_by_policy(self):
        """``headers_to_account_info``: quotas of accounts are by policy."""
        headers = {
            'x-account-object-count': '3',
            'x-account-bytes-used': '7',
            'x-account-storage-policy-gold-bytes-used': '7',
        }
        info = base.headers_to_account_info(headers, 200)
        assert int(info['total_object_count']) == 3
        assert int(info['bytes']) == 7
        assert int(info['storage_policies'][0].get('bytes', 0)) == 0

    def test_info_can_be_dropped_from_request_and_memcached(self, swift):
        """``clear_info_cache(env, account, container)``."""
        key = base.get_cache_key('a', 'c')
        env = {'swift.infocache': {key: 1}, 'swift.cache': swift.memcached}
        swift.memcached.set(key, {'status': 200})
        base.clear_info_cache(env, 'a', 'c')
        assert key not in env['swift.infocache']
        assert not swift.memcached.get(key)

    def test_the_app_has_what_requests_to_servers_need(self, swift):
        """Rings, timeouts, error limits and options of the app."""
        for name in (
            *('account_ring', 'container_ring', 'conn_timeout'),
            *('node_timeout', 'object_chunk_size', 'backend_user_agent'),
            *('recheck_container_existence', 'swift_owner_headers'),
            *('max_containers_whitelist', 'error_limited', 'logger'),
            *('exception_occurred', 'check_response', 'set_node_timing'),
        ):
            assert hasattr(swift, name), name
        assert not swift.get_policy_options(None).concurrent_gets

    def test_replicas_come_in_the_order_to_read_them(self, swift):
        """``NodeIter``: the filter reads shards as the proxy would."""
        part = swift.container_ring.get_part('a', 'c')
        nodes = proxy_app.replicas_in_order(swift, swift.container_ring, part)
        assert next(iter(nodes))['ip']

    def test_an_account_can_be_created_by_the_proxys_own_code(self):
        """``Controller.autocreate_account``, for hidden accounts."""
        params = inspect.signature(base.Controller.autocreate_account)
        assert [*params.parameters] == ['self', 'req', 'account']

    def test_cors_headers_can_be_added_to_an_answer(self, swift):
        """``cors_validation`` decorates methods of a controller."""
        req = Request.blank('/v1/a/c', headers={'Origin': 'http://x'})
        resp = proxy_app.with_cors(swift, req, 'a', 'c', Response())
        assert resp.status_int == 200

    def test_a_connection_can_be_closed(self):
        """``close_swift_conn``, if an answer is not read to its end."""
        closed = []
        close = SimpleNamespace(close=lambda: closed.append(True))
        answer = SimpleNamespace(swift_conn=close, nuke_from_orbit=close.close)
        base.close_swift_conn(answer)
        assert closed

    def test_the_timestamp_of_a_container_is_passed_on(self):
        """``ContainerController.pass_through_headers``.

        The root of a container gets the time of its record.
        """
        proxy_app.pass_timestamps_on()
        headers = proxy_app.ContainerController.pass_through_headers
        assert headers.count('x-timestamp') == 1

    def test_accounts_can_be_exempt_from_the_limit_of_containers(self, swift):
        """``max_containers_whitelist`` is a list that the app looks into."""
        proxy_app.allow_any_number_of_containers(
            swift, placement.is_hidden_account
        )
        assert '.shards_shardmw_a' in swift.max_containers_whitelist
        assert 'a' not in swift.max_containers_whitelist

    def test_the_loader_tells_filters_their_pipeline(self, swift):
        """``_pipeline``, ``_pipeline_final_app`` and the app for info.

        The filter puts its own app where filters send requests for info.
        """
        app = loaded(swift, ['memcache'])
        assert app._pipeline[-1] is swift
        assert app._pipeline_final_app is swift
        assert app._pipeline_request_logging_app is not swift

    def test_a_filter_is_told_its_pipeline_before_the_app(self):
        """The loader sets ``_pipeline_final_app`` of a filter last."""
        source = inspect.getsource(loadwsgi_of_swift())
        names = ('_pipeline', '_pipeline_request_logging_app')
        last = source.index('_pipeline_final_app =')
        assert all(source.index(f'{name} =') < last for name in names)

    def test_statsd_clients_send_any_kind_of_metric(self):
        """``_send`` of the clients: they have no public method for gauges."""
        conf = {'log_statsd_host': '127.0.0.1'}
        sent = []
        client = statsd.get_statsd_client(conf, 'x', None)
        client._open_socket = lambda: SimpleNamespace(
            sendto=lambda line, _target: sent.append(line), close=lambda: None
        )
        client._send('name', 5, 'g', None)
        assert sent == [b'x.name:5|g']

    def test_requests_on_behalf_of_a_client_need_no_authorization(self):
        """``make_pre_authed_env``: the filter's own requests."""
        env = make_pre_authed_env({'HTTP_X': 'x'}, swift_source='SMW')
        assert env['swift.authorize_override']
        assert env['swift.authorize'](Request(env)) is None

    def test_a_configuration_shows_the_filters_of_its_pipeline(self, tmp_path):
        """``loadcontext``: the order is checked at start-up."""
        path = tmp_path / 'proxy.conf'
        path.write_text(
            '[pipeline:main]\npipeline = healthcheck proxy-server\n'
            '[filter:healthcheck]\nuse = egg:swift#healthcheck\n'
            '[app:proxy-server]\nuse = egg:swift#proxy\n'
        )
        context = loadcontext(loadwsgi.APP, str(path))
        assert context.object_type.name == 'pipeline'
        (only,) = context.filter_contexts
        assert only.entry_point_name == 'healthcheck'

    def test_memcached_has_the_timeouts_of_its_options(self):
        """``_io_timeout`` and the like: how late a value may arrive."""
        ring = MemcacheRing(['127.0.0.1:1'], io_timeout=3, pool_timeout=4)
        assert (ring._io_timeout, ring._pool_timeout) == (3, 4)
        assert ring._connect_timeout > 0

    def test_the_cache_filter_knows_its_memcached_servers(self, tmp_path):
        """``MemcacheMiddleware.memcache`` and its ``memcache_servers``.

        ``/info`` has a digest of them. Swift reads them from the section of
        the filter, or from ``memcache.conf``.
        """
        (tmp_path / 'memcache.conf').write_text(
            '[memcache]\nmemcache_servers = b:1, a:2\n'
        )
        conf = {'swift_dir': str(tmp_path)}
        cache = MemcacheMiddleware(None, conf)
        assert servers_of([cache]) == servers_in(conf) == ['b:1', 'a:2']
        conf['memcache_servers'] = 'c:3'
        cache = MemcacheMiddleware(None, conf)
        assert servers_of([cache]) == servers_in(conf) == ['c:3']
        assert servers_of([]) is None

    def test_memcached_takes_bytes_as_they_are(self):
        """``set_multi(..., serialize=False)``: pages are not encoded."""
        params = inspect.signature(MemcacheRing.set_multi).parameters
        assert 'serialize' in params

    def test_keymasters_derive_keys_for_the_path_that_they_have_noted(self):
        """``CRYPTO_KEY_CALLBACK`` is a method of a ``KeyMasterContext``.

        The filter replaces the path for container-sync, which reads objects
        by the names of backing containers.
        """
        assert CRYPTO_KEY_CALLBACK
        params = inspect.signature(KeyMasterContext.__init__).parameters
        assert {'account', 'container', 'obj'} <= params.keys()
        source = inspect.getsource(KeyMasterContext)
        assert 'self.account' in source
        assert 'alternate_fetch_keys' in source

    def test_rates_are_parsed_as_swifts_ratelimit_filter_does(self):
        """``interpret_conf_limits``: the same options, the same rates."""
        conf = {'container_ratelimit_0': '100', 'container_ratelimit_10': '5'}
        rates = interpret_conf_limits(conf, 'container_ratelimit_')
        assert [size for size, _rate, _line in rates] == [0, 10]

    def test_listings_have_the_format_that_the_client_asks_for(self):
        """``get_listing_content_type``: the bypass is for JSON alone."""
        req = Request.blank('/v1/a/c?format=json')
        assert get_listing_content_type(req) == 'application/json'

    def test_names_of_containers_that_belong_together(self):
        """``+segments``, and the sysmeta of the versions container."""
        assert MULTIUPLOAD_SUFFIX == '+segments'
        assert SYSMETA_VERSIONS_CONT.lower() == (
            'x-container-sysmeta-versions-container'
        )

    def test_shard_updates_carry_the_name_of_the_shard(self, swift):
        """``namespace.name`` is ``account/container``."""
        params = inspect.signature(BaseObjectController._get_update_shard)
        assert [*params.parameters][1:] == [
            *('req', 'account', 'container', 'obj')
        ]


def loadwsgi_of_swift():
    """Return the function of Swift that loads a pipeline."""
    from swift.common import wsgi

    return wsgi.loadapp


class TestNames:
    """The core has its own versions of these, so that it needs no Swift."""

    def test_prefix_of_accounts_that_clients_cannot_use(self):
        prefix = constraints.AUTO_CREATE_ACCOUNT_PREFIX
        assert prefix == placement.INTERNAL_PREFIX

    @pytest.mark.parametrize(
        'name', ['c', get_reserved_name('versions', 'c'), 'a\0b', '\0x\0y']
    )
    def test_reserved_names(self, name):
        assert utils.RESERVED_STR == placement.RESERVED
        owner = placement.versions_owner(name)
        try:
            parts = split_reserved_name(name)
        except ValueError:
            parts = []
        is_of_versions = len(parts) == 2 and parts[0] == 'versions'
        assert owner == (parts[1] if is_of_versions else None)
        if owner:
            assert placement.versions_container(owner) == name

    @pytest.mark.parametrize('text', ['a', 'ä€', '\udcff', '\x80'])
    def test_wsgi_strings(self, text):
        assert wsgi_of(text) == str_to_wsgi(text)
        assert native(str_to_wsgi(text)) == wsgi_to_str(str_to_wsgi(text))

    @pytest.mark.parametrize(
        'path',
        [
            *('/v1/a', '/v1/a/', '/v1/a/c', '/v1/a/c/', '/v1/a/c/o'),
            *('/v1/a/c/o/p/', '/v1', '/v1/', '//a', 'v1/a', '/v1//c', '/'),
            *('', '/v1/a/c//', '/v1/a/c//o'),
        ],
    )
    def test_paths(self, path):
        try:
            expected = split_path(path, 2, 4, True)
        except ValueError:
            with pytest.raises(ValueError, match='not the path'):
                parse_path(path)
        else:
            assert [*parse_path(path)] == expected


class TestContainerServer:
    def test_update_merges_rows_and_creates_no_database(self, server):
        """``UPDATE`` with JSON rows, and ``X-Backend-Auto-Create: False``.

        The mover writes rows with it, and must not create a database that
        would lack all other rows.
        """
        body = json.dumps([row('o')]).encode()
        answer = send(
            *(server, 'UPDATE', '/.shards_a/c', body),
            X_Backend_Auto_Create='False',
        )
        assert answer.status_int == 404
        send(server, 'PUT', '/.shards_a/c')
        assert send(server, 'UPDATE', '/.shards_a/c', body).status_int == 202
        listing = send(server, 'GET', '/.shards_a/c?format=json')
        assert [each['name'] for each in json.loads(listing.body)] == ['o']

    def test_options_need_no_disk(self, server, tmp_path):
        """``OPTIONS`` is the mover's probe of a server's load."""
        (tmp_path / 'sdb1').rmdir()
        assert send(server, 'OPTIONS', '/a/c').status_int == 200

    def test_a_row_creates_no_shard(self, server):
        """Accounts whose names begin with ``.shards_``.

        A missing database that is created for a row would lack all others.
        """
        assert put_row(server, '/.shards_shardmw_a/c.0/o').status_int == 404
        assert put_row(server, '/.expiring/c/o').status_int == 201

    def test_a_404_tells_if_the_container_was_deleted(self, server):
        """``X-Backend-Delete-Timestamp`` is proof; a bare 404 is none."""
        missing = send(server, 'HEAD', '/a/c')
        assert missing.status_int == 404
        assert not float(missing.headers.get('X-Backend-Delete-Timestamp', 0))
        send(server, 'PUT', '/a/c')
        present = send(server, 'HEAD', '/a/c')
        assert present.headers['X-Backend-Put-Timestamp'] == NOW
        send(server, 'DELETE', '/a/c', X_Timestamp=LATER)
        deleted = send(server, 'HEAD', '/a/c')
        assert deleted.headers['X-Backend-Delete-Timestamp'] == LATER

    def test_a_listed_row_has_all_columns_that_a_client_sees(self, server):
        """Rows are moved by what a listing shows of them."""
        send(server, 'PUT', '/a/c')
        put_row(server)
        listing = send(server, 'GET', '/a/c?format=json')
        assert json.loads(listing.body) == [
            {
                'name': 'o',
                'bytes': 3,
                'hash': 'etag',
                'content_type': 'text/plain',
                'last_modified': Timestamp(NOW).isoformat,
            }
        ]

    def test_the_table_of_rows_has_only_these_columns(self, broker):
        """A move of rows, and the listing filter, know these columns."""
        with broker.get() as conn:
            found = conn.execute('PRAGMA table_info(object)').fetchall()
        assert [column[1] for column in found] == COLUMNS

    def test_rows_are_found_by_deleted_and_name(self, broker):
        """``ix_object_deleted_name``: listings do not scan tombstones."""
        with broker.get() as conn:
            found = conn.execute('PRAGMA index_list(object)').fetchall()
        assert 'ix_object_deleted_name' in [index[1] for index in found]

    def test_a_tombstone_must_be_newer_than_the_row(self, broker):
        """``merge_items``: rows are last-write-wins by timestamps."""
        broker.merge_items([row('o')])
        broker.merge_items([row('o', deleted=1)])
        assert broker.get_info()['object_count'] == 1
        broker.merge_items([row('o', f'{NOW}_0000000000000001', deleted=1)])
        assert broker.get_info()['object_count'] == 0

    def test_a_row_waits_in_a_file_of_pickles(self, server, broker):
        """``.pending``: rows that are listed while they wait."""
        put_row(server)
        with open(broker.pending_file, 'rb') as file:
            entries = [e for e in file.read().split(b':') if e]
        (values,) = [pickle.loads(b64decode(entry)) for entry in entries]
        rows: list[dict] = []
        broker._commit_puts_load(rows, values)
        (found,) = rows
        assert row('o').items() <= found.items()

    def test_a_new_row_is_compared_with_the_one_that_it_replaces(self):
        """``update_new_item_from_existing``: what a merge will do."""
        new, old = row('o', NOW), row('o', LATER)
        assert not update_new_item_from_existing(dict(new), dict(old))
        assert update_new_item_from_existing(dict(old), dict(new))
        assert update_new_item_from_existing(dict(new), None)

    def test_the_states_of_a_container_that_swift_has_split(self):
        """``X-Backend-Sharding-State`` and ``get_db_state``."""
        assert SPLIT_STATES == (backend.SHARDING, backend.SHARDED)

    def test_a_broker_reads_its_figures(self, broker):
        """``_do_get_info_query`` and ``_is_deleted_info``."""
        broker.merge_items([row('o')])
        with broker.get() as conn:
            info = broker._do_get_info_query(conn)
        assert (info['object_count'], info['bytes_used']) == (1, 3)
        assert info['storage_policy_index'] == 0
        assert 'put_timestamp' in info
        assert not broker._is_deleted_info(**info)
        assert broker.get_db_state() == 'unsharded'

    def test_a_broker_lists_tombstones(self, broker):
        """``get_objects(include_deleted=True)``, after a change."""
        broker.merge_items([row('o', deleted=1)])
        (found,) = broker.get_objects(10, '', include_deleted=True)
        assert (found['name'], found['created_at']) == ('o', NOW)

    def test_a_broker_can_leave_waiting_rows_alone(self):
        """``skip_commits``: the reading broker merges nothing."""
        params = inspect.signature(ContainerBroker.__init__).parameters
        assert 'skip_commits' in params

    def test_the_server_opens_brokers_with_patience(self, server, broker):
        """``_get_container_broker``: the server knows where databases are."""
        again = server._get_container_broker(
            *('sdb1', '1', 'a', 'c'), pending_timeout=1, stale_reads_ok=True
        )
        assert again.db_file == broker.db_file
        assert again.pending_timeout == 1

    def test_the_server_makes_the_record_of_a_listing(self, server):
        """``update_object_record``, for rows that need Swift's own code."""
        made = server.update_object_record(
            ('o', NOW, 3, 'text/plain;swift_bytes=9', 'etag')
        )
        assert made['bytes'] == 9

    def test_the_server_has_what_a_filter_beside_it_needs(self, server):
        """``root``, ``mount_check`` and ``log_requests``."""
        assert server.root
        assert server.mount_check is False
        assert server.log_requests is True

    def test_connections_to_databases_wait_for_locks(self, broker):
        """``GreenDBConnection`` as the factory of a connection."""
        conn = sqlite3.connect(
            broker.db_file, factory=GreenDBConnection, timeout=1
        )
        assert conn.execute('SELECT count(*) FROM object').fetchone()[0] == 0
        conn.close()


class TestObjectServer:
    def test_the_watcher_of_dark_data_can_be_extended(self):
        """``DarkDataWatcher`` counts, and asks container servers."""
        watcher = dark_data.DarkDataWatcher
        params = inspect.signature(watcher.policy_based_object_handling)
        assert [*params.parameters] == ['self', 'data_file_path', 'metadata']
        source = inspect.getsource(dark_data)
        for name in ('tot_dark', 'tot_unknown', 'tot_okay', 'container_ring'):
            assert f'self.{name}' in source
        assert [*inspect.signature(dark_data.get_info_1).parameters][:2] == [
            *('container_ring', 'obj_path')
        ]

    @pytest.mark.parametrize('name', ['o', 'ä ö', '漢', 'a&b=c', '%41+'])
    def test_the_watcher_asks_for_names_of_any_characters(
        self, swift, name, monkeypatch
    ):
        """``get_info_1``: its parameter ``includes`` has to be quoted."""
        path = f'/{ACCOUNT}/c/{name}'
        swift.put_container(f'/{ACCOUNT}/c')
        swift.put_row(path)
        asked = []
        answer = swift.servers.answer

        def note(port, method, url, *rest):
            asked.extend(parse_qs(urlsplit(url).query)['includes'])
            return answer(port, method, url, *rest)

        monkeypatch.setattr(swift.servers, 'answer', note)
        found = object_audit.get_info_1(swift.container_ring, path)
        assert found['name'] == name
        assert asked == [name]

    @pytest.mark.parametrize('kind', sorted(WRITES))
    def test_the_row_of_an_object_can_be_made_from_its_files(
        self, server, tmp_path, kind, monkeypatch
    ):
        """``DiskFile``, and the updates that ``ObjectController`` sends.

        The watcher writes the row that the object server would have sent.
        """
        for container in ('sent', 'read'):
            send(server, 'PUT', f'/a/{container}')

        def connect(ip, port, device, part, method, path, headers):
            about = {k.replace('-', '_'): v for k, v in headers.items()}
            answer = send(server, method, '/a/sent/o', **about)
            return SimpleNamespace(
                getresponse=lambda: SimpleNamespace(
                    status=answer.status_int, read=lambda: b''
                )
            )

        monkeypatch.setattr(object_server, 'http_connect', connect)
        conf = {'devices': str(tmp_path), 'mount_check': 'false'}
        objects = object_server.ObjectController(conf)
        for method, at, headers in WRITES[kind]:
            timestamp = {'X-Timestamp': at}
            req = Request.blank(
                '/sdb1/1/a/sent/o',
                {'REQUEST_METHOD': method},
                {**UPDATED, **timestamp, **headers},
            )
            assert req.get_response(objects).status_int in (201, 202)
        (path,) = tmp_path.glob('sdb1/objects/*/*/*/*.data')
        stored = object_audit.StoredObjects(conf, utils.get_logger({})).read(
            str(path)
        )
        about = {k.replace('-', '_'): v for k, v in stored.row.items()}
        assert send(server, 'PUT', '/a/read/o', **about).status_int == 201
        sent, read = (
            server._get_container_broker(
                'sdb1', '1', 'a', container
            ).get_items_since(-1, 9)
            for container in ('sent', 'read')
        )
        assert len(read) == 1
        assert sent[-1] | {'ROWID': 1} == read[0]
        assert stored.policy_index == 0
        assert stored.written == Timestamp(WRITES[kind][0][1])
        assert stored.changed == Timestamp(WRITES[kind][-1][1])
