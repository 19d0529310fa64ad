# SPDX-License-Identifier: Apache-2.0
"""The filter of container servers, in front of Swift's container server."""

import itertools
import json
import pickle
import shutil
import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import eventlet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request, str_to_wsgi
from swift.common.utils import (
    Timestamp,
    get_logger,
    lock_parent_directory,
)
from swift.container.backend import ContainerBroker
from swift.container.server import ContainerController

from shardmw.backend.config import ConfigError
from shardmw.container_server import filter as container_filter
from shardmw.container_server.filter import ContainerFilter, filter_factory
from shardmw.core.batch import (
    METHOD,
    Read,
    decode_found,
    encode_reads,
)
from shardmw.swift import container_server, pending_file
from shardmw.swift.container_rows import listed_rows

ACCOUNT = '.shards_shardmw_AUTH_t'
NAMES = ['a', 'a/b', 'a/c', 'b/', 'b/\U0001f600', 'c"\n', '\0v\0x', 'é']
TEXTS = st.sampled_from(['', 'a', 'a/', 'b/', 'é', '\0', '/'])
CLOCK = itertools.count(1)


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    devices = tmp_path_factory.mktemp('devices')
    (devices / 'sdb1').mkdir()
    conf = {'devices': str(devices), 'mount_check': 'false'}
    server = ContainerController(conf)
    for container in ('full', 'empty', 'gone', 'split'):
        send(server, 'PUT', container)
    for name in NAMES:
        send(server, 'PUT', 'full', name, {'X-Size': '7'})
    send(server, 'DELETE', 'gone')
    return server


def send(server, method, container, name=None, headers=None, query=''):
    path = f'/sdb1/1/{ACCOUNT}/{container}' + (f'/{name}' if name else '')
    request = Request.blank(
        str_to_wsgi(path),
        environ={'REQUEST_METHOD': method, 'QUERY_STRING': query},
        headers={
            'X-Timestamp': Timestamp(next(CLOCK)).internal,
            'X-Backend-Storage-Policy-Index': '0',
            'X-Backend-Allow-Reserved-Names': 'true',
            'X-Content-Type': 'text/plain',
            'X-Etag': 'etag',
            'X-Size': '0',
            'X-Backend-Record-Type': 'auto',
            **(headers or {}),
        },
    )
    if method in ('GET', 'HEAD'):
        del request.headers['X-Backend-Storage-Policy-Index']
    return request.get_response(server)


@pytest.fixture(scope='module')
def filtered(server):
    return ContainerFilter(server, get_logger({}))


def report(filtered, reads):
    """Send reads to the server's filter; return what it has found."""
    answer = ask(filtered, encode_reads(reads))
    assert answer.status_int == 200
    return decode_found(answer.body, len(reads))


def ask(filtered, body):
    request = Request.blank(
        '/sdb1/1/a/c', environ={'REQUEST_METHOD': METHOD}, body=body
    )
    return request.get_response(filtered)


def are_in(headers, answer):
    return (
        HeaderKeyDict(headers).items() <= HeaderKeyDict(answer.headers).items()
    )


def names_in(found):
    return [row['name'] for row in json.loads(found.body)]


def read(container, method='GET', device='sdb1', **params):
    query = urlencode({'format': 'json', **params})
    return Read(device, 1, ACCOUNT, container, method, query)


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            'limit': st.integers(0, 10),
            'marker': TEXTS,
            'end_marker': TEXTS,
            'prefix': TEXTS,
            'delimiter': TEXTS,
            'path': TEXTS,
            'reverse': st.sampled_from(['', 'true', 'no']),
        },
    )
)
def test_listings_are_those_of_the_server(server, filtered, params):
    asked = [read('full', **params), read('empty', **params)]
    for each, found in zip(asked, report(filtered, asked), strict=True):
        answer = send(server, 'GET', each.container, query=each.query)
        assert found.body == answer.body
        assert are_in(found.headers, answer)


def test_figures_are_those_of_the_server(server, filtered):
    (found,) = report(filtered, [read('full', 'HEAD')])
    answer = send(server, 'HEAD', 'full')
    assert found.body == b''
    assert are_in(found.headers, answer)
    assert found.headers['X-Container-Object-Count'] == str(len(NAMES))
    assert float(found.headers['X-PUT-Timestamp'])


def test_rows_that_wait_are_listed(server, filtered):
    broker = server._get_container_broker('sdb1', '1', ACCOUNT, 'full')
    broker.put_object('waits', Timestamp(1).internal, 7, 'text/plain', 'e')
    try:
        (found,) = report(filtered, [read('full', delimiter='/')])
        assert 'waits' in {row.get('name') for row in json.loads(found.body)}
    finally:
        send(server, 'DELETE', 'full', 'waits')


@pytest.mark.parametrize(
    'asked',
    [
        read('missing'),
        read('gone'),
        read('full', device='sdb2'),
        read('full', device='..'),
        read('full', limit=10001),
        read('full', delimiter='\U0010ffff', prefix='a\U0010ffff'),
        Read('sdb1', 1, ACCOUNT, 'full', 'GET', 'marker=%ff'),
    ],
    ids=lambda asked: f'{asked.device} {asked.container} {asked.query}',
)
def test_any_other_read_is_left_to_a_request_of_its_own(filtered, asked):
    found = report(filtered, [read('empty'), asked, read('empty', 'HEAD')])
    assert [each is not None for each in found] == [True, False, True]


def test_a_container_that_swift_has_split_is_left_to_the_server(
    server, filtered, monkeypatch
):
    kind = type(server._get_container_broker('sdb1', '1', ACCOUNT, 'split'))
    monkeypatch.setattr(kind, 'get_db_state', lambda _self: 'sharded')
    reads = [read('split'), read('split', 'HEAD')]
    assert report(filtered, reads) == [None] * 2


def test_the_state_is_not_read_while_the_database_is_locked(
    server, filtered, monkeypatch
):
    broker = server._get_container_broker('sdb1', '1', ACCOUNT, 'split')
    state = type(broker).get_db_state

    # The server may open a second connection to read the state.
    def written(self):
        with closing(sqlite3.connect(broker.db_file, timeout=0)) as other:
            other.execute('BEGIN EXCLUSIVE')
        return state(self)

    monkeypatch.setattr(type(broker), 'get_db_state', written)
    assert None not in report(filtered, [read('split'), read('split', 'HEAD')])


def test_writes_and_reads_take_turns(server, filtered):
    names = ['later', 'latest']
    asked = read('full', prefix='late')
    for count in range(len(names) + 1):
        (found,) = report(filtered, [asked])
        assert names_in(found) == names[:count]
        for name in names[count : count + 1]:
            send(server, 'PUT', 'full', name)
    for name in names:
        send(server, 'DELETE', 'full', name)
    assert report(filtered, [asked])[0].body == b'[]'


TIMES = st.integers(1, 8).map(lambda time: Timestamp(time).internal)
#: The values of ContainerBroker.put_object().
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(NAMES[:5]),
        TIMES,
        st.integers(0, 9),
        st.sampled_from(['a/b', 'a/b; c=d']),
        st.sampled_from(['etag', 'other']),
        st.sampled_from([0, 0, 1]),  # a tombstone
        st.sampled_from([0, 0, 0, 1]),  # the storage policy
        st.none() | TIMES,
        st.none() | TIMES,
    ),
    max_size=8,
)
#: Changes, and whether the server merges them.
ROUNDS = st.lists(st.tuples(CHANGES, st.booleans()), min_size=1, max_size=4)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    ROUNDS,
    st.fixed_dictionaries(
        {},
        optional={
            'limit': st.integers(0, 5),
            'marker': TEXTS,
            'end_marker': TEXTS,
            'prefix': TEXTS,
            'delimiter': TEXTS,
        },
    ),
)
def test_rows_are_listed_while_they_wait(server, filtered, rounds, params):
    container = f'waits-{next(CLOCK)}'
    send(server, 'PUT', container)
    broker = server._get_container_broker('sdb1', '1', ACCOUNT, container)
    rows = Path(broker.pending_file)
    query = urlencode({'format': 'json', **params})
    for added, is_merged in [*rounds, ([], True)]:
        for change in added:
            broker.put_object(*change)
        text = rows.exists() and rows.read_bytes()
        found, figures = report(
            filtered,
            [read(container, **params), read(container, 'HEAD')],
        )
        if text:
            assert rows.read_bytes() == text
        if is_merged:
            plain = send(server, 'GET', container, query=query)
            assert json.loads(found.body) == json.loads(plain.body)
            assert are_in(found.headers, plain)
            assert are_in(figures.headers, plain)
            assert not rows.exists() or not rows.read_bytes()


def pending(server, container):
    broker = server._get_container_broker('sdb1', '1', ACCOUNT, container)
    return Path(broker.pending_file)


def test_a_read_of_pending_rows_does_not_wait_for_a_merge(server, filtered):
    send(server, 'PUT', 'full', 'waits')
    with lock_parent_directory(str(pending(server, 'full'))):
        found = report(filtered, [read('full', prefix='waits')])[0]
    assert names_in(found) == ['waits']
    send(server, 'DELETE', 'full', 'waits')


@pytest.mark.parametrize('name', ['a', 'd'])
def test_rows_that_others_merge_meanwhile_are_listed_once(
    server, filtered, monkeypatch, name
):
    container = f'merged-{next(CLOCK)}'
    send(server, 'PUT', container)
    for each in 'abc':
        send(server, 'PUT', container, each, {'X-Size': '2'})
    send(server, 'GET', container)
    send(server, 'PUT', container, name, {'X-Size': '5'})
    send(server, 'DELETE', container, 'b')
    read_file = pending_file.ReadingBroker._read_file

    def merge_later(self, most):
        read_file(self, most)
        send(server, 'GET', container)
        assert not pending(server, container).read_bytes()

    monkeypatch.setattr(pending_file.ReadingBroker, '_read_file', merge_later)
    found = report(filtered, [read(container)])[0]
    plain = send(server, 'GET', container, query='format=json')
    assert json.loads(found.body) == json.loads(plain.body)
    assert are_in(found.headers, plain)


def test_counts_and_rows_are_of_one_moment(server, filtered, monkeypatch):
    database = pending(server, 'full').with_suffix('')
    attempts = []

    def others_cannot_commit(*args):
        other = sqlite3.connect(database, timeout=0)
        with closing(other), pytest.raises(sqlite3.OperationalError):
            attempts.append(other.execute('DELETE FROM container_info'))
            other.commit()
        return listed_rows(*args)

    monkeypatch.setattr(container_filter, 'listed_rows', others_cannot_commit)
    assert report(filtered, [read('full')])[0].body != b'[]'
    assert attempts


@pytest.mark.parametrize('when', ['before', 'after'])
def test_the_file_is_read_before_the_database(
    server, filtered, monkeypatch, when
):
    container = f'read-{when}'
    send(server, 'PUT', container)
    send(server, 'PUT', container, 'a')
    read_file = pending_file.ReadingBroker._read_file

    def merge_and_read(broker, most):
        if when == 'before':
            send(server, 'GET', container)
        read_file(broker, most)
        if when == 'after':
            send(server, 'GET', container)

    broker = pending_file.ReadingBroker
    monkeypatch.setattr(broker, '_read_file', merge_and_read)
    found = report(filtered, [read(container)])[0]
    assert names_in(found) == ['a']
    assert found.headers['X-Container-Object-Count'] == '1'


def test_many_rows_are_merged(server, filtered):
    send(server, 'PUT', 'many')
    rows = pending(server, 'many')
    names = []
    while (
        not names or rows.stat().st_size <= container_filter.MOST_PENDING_BYTES
    ):
        assert len(names) == len(
            json.loads(report(filtered, [read('many')])[0].body)
        )
        names.append(f'{len(names):03}')
        send(server, 'PUT', 'many', names[-1])
    found = report(filtered, [read('many')])[0]
    assert names_in(found) == names
    assert rows.read_bytes() == b''


def test_many_rows_are_listed_while_others_keep_them_from_being_merged(
    server, filtered, monkeypatch
):
    monkeypatch.setattr(container_server, 'PENDING_SECONDS', 0.05)
    send(server, 'PUT', 'locked')
    rows = pending(server, 'locked')
    names = [f'{number:04}' for number in range(1000)]
    broker = server._get_container_broker('sdb1', '1', ACCOUNT, 'locked')
    for name in names:
        broker.put_object(
            name, Timestamp(next(CLOCK)).internal, 0, 'a/b', 'etag', 0, 0
        )
    with lock_parent_directory(str(rows)):
        found = report(filtered, [read('locked', 'HEAD'), read('locked')])
    assert rows.stat().st_size > container_filter.MOST_PENDING_BYTES
    assert found[0].headers['X-Container-Object-Count'] == str(len(names))
    assert [row['name'] for row in json.loads(found[1].body)] == names


def test_a_name_that_a_database_has_twice_counts_as_once_merged(
    server, filtered
):
    send(server, 'PUT', 'twice')
    broker = server._get_container_broker('sdb1', '1', ACCOUNT, 'twice')
    with broker.get() as connection:
        for etag in 'ab':
            connection.execute(
                'INSERT INTO object (name, created_at, size, content_type, '
                "etag, deleted) VALUES ('a', '0000000001.00000', 3, 'a/b', "
                '?, 0)',
                [etag],
            )
        connection.commit()
    for size in '57':
        send(server, 'PUT', 'twice', 'a', {'X-Size': size})
        found = report(filtered, [read('twice')])[0]
        assert found.headers['X-Container-Object-Count'] == '1'
        assert found.headers['X-Container-Bytes-Used'] == size
    plain = send(server, 'GET', 'twice', query='format=json')
    assert json.loads(found.body) == json.loads(plain.body)
    assert are_in(found.headers, plain)


@pytest.mark.parametrize('params', [{'reverse': 'on'}, {'limit': 9}])
def test_no_row_is_merged_into_a_database_that_another_one_has_replaced(
    server, filtered, monkeypatch, params
):
    """SQLite refuses to write into the old file.

    The error is ``SQLITE_READONLY_DBMOVED``.
    """
    container = f'replaced-{next(CLOCK)}'
    send(server, 'PUT', container)
    report(filtered, [read(container)])
    send(server, 'PUT', container, 'a')
    broker = server._get_container_broker('sdb1', '1', ACCOUNT, container)
    copied = Path(broker.db_dir, 'copied')
    shutil.copy(broker.db_file, copied)
    commit = ContainerBroker._commit_puts

    def replace_and_commit(broker, *args):
        # As Swift's replicator does, without waiting for the lock.
        copied.exists() and copied.rename(broker.db_file)
        commit(broker, *args)

    monkeypatch.setattr(container_filter, 'MOST_PENDING_BYTES', 1)
    monkeypatch.setattr(ContainerBroker, '_commit_puts', replace_and_commit)
    found = report(filtered, [read(container, **params)])[0]
    assert names_in(found) == ['a']
    assert not copied.exists()
    plain = send(server, 'GET', container, query='format=json')
    assert [row['name'] for row in json.loads(plain.body)] == ['a']


def test_rows_that_a_read_has_merged_count_once(server, filtered):
    container = 'reversed'
    send(server, 'PUT', container)
    send(server, 'PUT', container, 'a')
    for params in ({}, {'reverse': 'on'}, {}):
        (found,) = report(filtered, [read(container, **params)])
        assert names_in(found) == ['a']
        assert found.headers['X-Container-Object-Count'] == '1'


def test_a_pending_file_with_a_torn_row_is_left_to_swift(server, filtered):
    send(server, 'PUT', 'torn')
    send(server, 'PUT', 'torn', 'waits')
    rows = pending(server, 'torn')
    with rows.open('ab') as file:
        file.write(b':torn')
    found = report(filtered, [read('torn')])[0]
    assert names_in(found) == ['waits']
    assert rows.read_bytes() == b''


def test_no_code_in_a_row_is_run(server, filtered, monkeypatch, tmp_path):
    class Row:
        def __reduce__(self):
            return Path.mkdir, (tmp_path / 'made',)

    send(server, 'PUT', 'code')
    pending(server, 'code').write_bytes(b':' + b64encode(pickle.dumps(Row())))
    # Swift before 2.38 runs the code.
    monkeypatch.setattr(ContainerBroker, '_commit_puts', lambda broker: None)
    found = report(filtered, [read('code')])[0]
    assert found.body == b'[]'
    assert not (tmp_path / 'made').exists()


def test_a_read_that_merges_rows_waits_for_another_merge(server, filtered):
    send(server, 'PUT', 'full', 'waits')
    rows = pending(server, 'full')

    def hold() -> None:
        with lock_parent_directory(str(rows)):
            eventlet.sleep(0.3)

    holder = eventlet.spawn(hold)
    eventlet.sleep()
    (found,) = report(filtered, [read('full', prefix='waits', reverse='on')])
    holder.wait()
    assert names_in(found) == ['waits']
    send(server, 'DELETE', 'full', 'waits')


def test_a_device_that_is_not_mounted_is_left_to_the_server(
    filtered, monkeypatch
):
    monkeypatch.setattr(filtered.app, 'mount_check', True)
    assert report(filtered, [read('full')]) == [None]


def test_a_read_waits_for_a_database_that_is_locked(server, filtered):
    report(filtered, [read('full')])  # it stays open
    broker = server._get_container_broker('sdb1', '1', ACCOUNT, 'full')
    with closing(sqlite3.connect(broker.db_file)) as other:
        other.execute('BEGIN EXCLUSIVE')
        reading = eventlet.spawn(report, filtered, [read('full')])
        eventlet.sleep(0.1)
        assert not reading.dead
        other.rollback()
        (found,) = reading.wait()
    assert found


@pytest.mark.parametrize('seconds', [-1, 60])
def test_a_response_that_takes_long_is_sent_in_parts(
    filtered, monkeypatch, seconds
):
    monkeypatch.setattr(container_filter, 'SEND_SECONDS', seconds)
    reads = [
        read('full'),
        read('missing'),
        read('full', device='none'),
        read('empty'),
    ]
    request = Request.blank(
        '/sdb1/1/a/c',
        environ={'REQUEST_METHOD': METHOD},
        body=encode_reads(reads),
    )
    _status, headers, parts = request.call_application(filtered)
    parts = list(filter(None, parts))
    is_long = seconds < 0
    assert len(parts) == (len(reads) if is_long else 1)
    assert ('Content-Length' in dict(headers)) is not is_long
    found = decode_found(b''.join(parts), len(reads))
    are_found = [each is not None for each in found]
    assert are_found == [True, False, False, True]


@pytest.mark.parametrize('body', [b'', b'{', b'[]', b'[[1]]'])
def test_a_body_that_is_no_list_of_reads_is_a_bad_request(filtered, body):
    assert ask(filtered, body).status_int == 400


def test_other_requests_reach_the_server(server, filtered):
    assert (
        send(filtered, 'GET', 'full').body == send(server, 'GET', 'full').body
    )
    assert send(server, METHOD, 'full').status_int == 405


def test_the_filter_must_be_next_to_the_container_server(server):
    make = filter_factory({})
    assert isinstance(make(server), ContainerFilter)
    with pytest.raises(ConfigError, match='next to container-server'):
        make(lambda _env, _start_response: [])


def test_the_filter_has_no_options():
    with pytest.raises(ConfigError, match='most'):
        filter_factory({}, most='1')
