# SPDX-License-Identifier: Apache-2.0
"""The filter of container servers writes nothing; Swift merges its rows."""

import json
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from swift.common.exceptions import LockTimeout
from swift.common.utils import Timestamp, get_logger
from swift.container.backend import ContainerBroker
from swift.container.server import ContainerController

from shardmw.container_server import background_merges
from shardmw.container_server import filter as container_filter
from shardmw.container_server.filter import ContainerFilter
from shardmw.core.batch import TOMBSTONES, Read, encode_reads
from shardmw.swift.concurrency import sleep
from test.unit.test_container_filter import (
    ACCOUNT,
    TEXTS,
    ask,
    names_in,
    pending,
    read,
    report,
    send,
)

NAMES = ['a', 'a/b', 'a/c', 'b/', 'b/\U0001f600', 'é']
CONTAINERS = ['full', 'empty', 'gone', 'split', 'none']

#: Parameters of listings that need no merge of pending rows.
PARAMS = {
    'limit': st.integers(-1, 10_001),
    'marker': TEXTS,
    'end_marker': TEXTS,
    'prefix': TEXTS,
    'delimiter': TEXTS,
    'format': st.sampled_from(['json', 'xml', '?']),
    'states': st.just('listing'),
}
#: Parameters of listings for which Swift first merges pending rows.
SWIFTS_PARAMS = {
    'path': TEXTS,
    'reverse': st.sampled_from(['', 'true', 'no', 'on']),
}


def reads(methods, optional):
    """Return a strategy of lists of reads."""
    params = st.fixed_dictionaries({}, optional=optional)
    read_ = st.builds(
        Read,
        st.sampled_from(['sdb1', 'sdb1', 'sdb1', 'sdb2', '..', '']),
        st.sampled_from([1, 1, 1, 0]),
        st.just(ACCOUNT),
        st.sampled_from(CONTAINERS),
        st.sampled_from(methods),
        params.map(urlencode) | st.sampled_from(['', 'marker=%ff', '&&=']),
    )
    return st.lists(read_, min_size=1, max_size=4)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=20,
)
MALFORMED = st.binary(max_size=20) | JSON.map(
    lambda value: json.dumps(value).encode()
)

requests_settings = settings(
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def devices(tmp_path):
    (tmp_path / 'sdb1').mkdir()
    return tmp_path


@pytest.fixture
def server(devices):
    conf = {
        'devices': str(devices),
        'mount_check': 'false',
        'log_requests': 'false',
    }
    server = ContainerController(conf, get_logger({}, log_route='reads'))
    for container in ('full', 'empty', 'gone', 'split'):
        send(server, 'PUT', container)
    for name in NAMES:
        send(server, 'PUT', 'full', name, {'X-Size': '7'})
    send(server, 'DELETE', 'full', NAMES[0])
    send(server, 'PUT', 'split', 'a')
    send(server, 'DELETE', 'gone')
    split = broker_of(server, 'split')
    split.enable_sharding(Timestamp.now())
    assert split.set_sharding_state()
    return server


@pytest.fixture
def merged(server):
    """Return the server, without pending rows."""
    for container in ('full', 'split'):
        send(server, 'GET', container)
        assert pending(server, container).read_bytes() == b''
    return server


@pytest.fixture
def filtered(server):
    return ContainerFilter(server, get_logger({}, log_route='reads'))


def broker_of(server, container):
    return server._get_container_broker('sdb1', '1', ACCOUNT, container)


def files(folder: Path) -> dict[Path, bytes]:
    """Return the contents of all files in a folder, at any depth."""
    return {
        path: path.read_bytes() for path in folder.rglob('*') if path.is_file()
    }


def names_in_database(server, container):
    """Return the names of the rows that are merged into the database."""
    path = broker_of(server, container).db_file
    with closing(sqlite3.connect(path)) as connection:
        query = 'SELECT name FROM object WHERE deleted = 0 ORDER BY name'
        return [name for (name,) in connection.execute(query)]


def wait_until(is_so):
    until = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < until
        sleep(0.01)


@requests_settings
@given(
    reads(['GET', 'HEAD', TOMBSTONES], PARAMS | SWIFTS_PARAMS).map(
        encode_reads
    )
    | MALFORMED
)
def test_no_request_changes_a_byte_of_a_file(devices, merged, filtered, body):
    before = files(devices)
    ask(filtered, body)
    assert files(devices) == before


@requests_settings
@given(reads(['GET', 'HEAD'], PARAMS).map(encode_reads))
def test_no_listing_changes_a_byte_while_rows_wait(
    devices, filtered, monkeypatch, body
):
    monkeypatch.setattr(background_merges, 'DELAY_SECONDS', 3600)
    assert pending(filtered.app, 'full').read_bytes()
    before = files(devices)
    ask(filtered, body)
    assert files(devices) == before


def test_a_reader_cannot_write(merged, filtered):
    broker = filtered._reading_broker('sdb1', '1', ACCOUNT, 'full')
    with (
        broker.get() as connection,
        pytest.raises(sqlite3.OperationalError, match='readonly'),
    ):
        connection.execute('DELETE FROM policy_stat')


def test_rows_that_were_listed_are_soon_in_the_database(
    devices, server, filtered, monkeypatch
):
    monkeypatch.setattr(background_merges, 'DELAY_SECONDS', 0.2)
    rows = pending(server, 'full')
    before = files(devices)
    found = report(filtered, [read('full')])[0]
    assert names_in(found) == sorted(NAMES[1:])
    assert files(devices) == before
    assert names_in_database(server, 'full') == []
    wait_until(lambda: not rows.read_bytes())
    assert names_in_database(server, 'full') == sorted(NAMES[1:])
    assert report(filtered, [read('full')])[0] == found


def test_rows_that_only_a_head_has_counted_are_soon_in_the_database(
    server, filtered, monkeypatch
):
    monkeypatch.setattr(background_merges, 'DELAY_SECONDS', 0)
    report(filtered, [read('full', 'HEAD')])
    wait_until(lambda: not pending(server, 'full').read_bytes())
    assert names_in_database(server, 'full') == sorted(NAMES[1:])


@pytest.mark.parametrize(
    ('asked', 'most'),
    [
        (read('full'), 16384),
        (read('full'), 1),
        (read('full', reverse='on'), 16384),
        (read('full', path=''), 16384),
        (read('full', TOMBSTONES), 16384),
    ],
    ids=['waiting', 'too many', 'reverse', 'path', 'tombstones'],
)
def test_only_swifts_own_broker_merges_rows(
    server, filtered, monkeypatch, asked, most
):
    monkeypatch.setattr(background_merges, 'DELAY_SECONDS', 0)
    monkeypatch.setattr(container_filter, 'MOST_PENDING_BYTES', most)
    merge_items = ContainerBroker.merge_items
    merging = []

    def merge(self, *args):
        merging.append((type(self), self.skip_commits))
        merge_items(self, *args)

    monkeypatch.setattr(ContainerBroker, 'merge_items', merge)
    report(filtered, [asked])
    wait_until(lambda: not pending(server, 'full').read_bytes())
    assert merging == [(ContainerBroker, False)]


def test_rows_are_merged_before_they_are_listed_if_too_many_containers_wait(
    server, filtered, monkeypatch
):
    monkeypatch.setattr(background_merges, 'MOST_CONTAINERS', 0)
    found = report(filtered, [read('full')])[0]
    assert pending(server, 'full').read_bytes() == b''
    assert names_in(found) == names_in_database(server, 'full')
    assert names_in(found) == sorted(NAMES[1:])


def test_a_name_is_listed_before_while_and_after_it_is_merged(
    server, filtered, monkeypatch
):
    merge_items = ContainerBroker.merge_items
    commit_puts = ContainerBroker._commit_puts
    listed = []

    def list_names():
        found = report(filtered, [read('full'), read('full', 'HEAD')])
        counts = {each.headers['X-Container-Object-Count'] for each in found}
        listed.append((names_in(found[0]), counts))

    def merge(self, *args):
        list_names()
        merge_items(self, *args)
        list_names()

    def commit(self, *args):
        commit_puts(self, *args)
        list_names()

    monkeypatch.setattr(ContainerBroker, 'merge_items', merge)
    monkeypatch.setattr(ContainerBroker, '_commit_puts', commit)
    monkeypatch.setattr(background_merges, 'DELAY_SECONDS', 0)
    list_names()
    wait_until(lambda: len(listed) == 4)
    assert pending(server, 'full').read_bytes() == b''
    list_names()
    assert listed == [(sorted(NAMES[1:]), {str(len(NAMES) - 1)})] * 5


def test_a_merge_that_fails_is_logged_and_others_follow(
    server, filtered, monkeypatch
):
    monkeypatch.setattr(background_merges, 'DELAY_SECONDS', 0)
    send(server, 'PUT', 'empty', 'a')
    failures = []

    def fail(self):
        failures.append(self.container)
        raise LockTimeout(None, 'lock')

    monkeypatch.setattr(
        filtered.logger, 'exception', lambda line, *_: failures.append(line)
    )
    with monkeypatch.context() as patched:
        patched.setattr(ContainerBroker, 'get_info', fail)
        report(filtered, [read('full'), read('empty')])
        wait_until(lambda: len(failures) == 4)
    line = 'shardmw-container: could not merge rows into /%s/%s'
    assert failures == ['full', line, 'empty', line]
    report(filtered, [read('empty')])
    wait_until(lambda: not pending(server, 'empty').read_bytes())


def test_a_device_that_is_gone_is_left_alone(
    devices, server, filtered, monkeypatch
):
    monkeypatch.setattr(background_merges, 'DELAY_SECONDS', 0)
    logged = []
    monkeypatch.setattr(
        filtered.logger, 'exception', lambda line, *_: logged.append(line)
    )
    report(filtered, [read('full')])
    shutil.rmtree(devices / 'sdb1')
    wait_until(lambda: not filtered._merges._is_running)
    assert files(devices) == {}
    assert not list(devices.iterdir())
    assert logged == []


def test_a_damaged_database_is_left_to_the_server(devices, server, filtered):
    database = Path(broker_of(server, 'full').db_file)
    database.write_bytes(b'no database' * 1000)
    before = files(devices)
    assert report(filtered, [read('full'), read('full', 'HEAD')]) == [None] * 2
    assert files(devices) == before
    send(server, 'GET', 'full')
    assert not database.exists()


def test_a_half_written_row_of_a_killed_process_is_left_to_the_server(
    devices, merged, filtered
):
    database = Path(broker_of(merged, 'full').db_file)
    journal = database.with_name(f'{database.name}-journal')
    with closing(sqlite3.connect(database)) as connection:
        connection.execute('PRAGMA cache_size = 1')
        connection.executemany(
            'INSERT INTO policy_stat (storage_policy_index) VALUES (?)',
            ((policy,) for policy in range(1, 5000)),
        )
        half_written = [database.read_bytes(), journal.read_bytes()]
        connection.rollback()
    database.write_bytes(half_written[0])
    journal.write_bytes(half_written[1])
    before = files(devices)
    assert report(filtered, [read('full')]) == [None]
    assert files(devices) == before
    send(merged, 'GET', 'full')
    assert not journal.exists()
    assert names_in(report(filtered, [read('full')])[0]) == sorted(NAMES[1:])


@given(
    st.sampled_from(['UPDATE', 'PUT', 'GET', 'DELETE', 'REPLICATE']),
    st.dictionaries(
        st.sampled_from(
            [
                'X-Backend-Shardmw-Offset',
                'X-Backend-Record-Type',
                'Content-Type',
                'X-Newest',
            ]
        ),
        st.text('0123456789abcdef', max_size=4),
    ),
    st.binary(max_size=20),
)
def test_all_but_reads_reach_the_server_as_they_were_sent(
    method, headers, body
):
    seen = []

    def app(env, start_response):
        seen.append((dict(env), env['wsgi.input'].read(), start_response))
        return [b'answer']

    def start_response(*_args):
        pass

    names = {
        f'HTTP_{name.upper().replace("-", "_")}': value
        for name, value in headers.items()
    }
    env = {**names, 'REQUEST_METHOD': method, 'wsgi.input': Input(body)}
    sent = dict(env)
    answer = ContainerFilter(app, get_logger({}))(env, start_response)
    assert answer == [b'answer']
    assert seen == [(sent, body, start_response)]


class Input:
    """The body of a request, which can be read once."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def read(self) -> bytes:
        body, self._body = self._body, b''
        return body
