# SPDX-License-Identifier: Apache-2.0
"""Rows of a database, compared with Swift's container broker."""

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker
from swift.container.server import ContainerController

from shardmw.swift.container_rows import listed_rows, simple_text

TEXTS = st.text(alphabet='ab/é\U0001f600-', max_size=6)
NAMES = st.lists(TEXTS.filter(bool), max_size=25, unique=True)
CLOCK = itertools.count(1)


@pytest.fixture
def broker(tmp_path):
    broker = ContainerBroker(
        str(tmp_path / 'x.db'), account='AUTH_t', container='c'
    )
    broker.initialize(Timestamp(1).internal, 0)
    return broker


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    devices = str(tmp_path_factory.mktemp('devices'))
    return ContainerController({'devices': devices})


def _put(broker, names, deleted=()):
    for number, name in enumerate(names):
        now = Timestamp(next(CLOCK))
        # Copied objects have offsets; POSTs are later than PUTs.
        broker.put_object(
            name,
            Timestamp(now, offset=number % 3).internal,
            7,
            'text/plain',
            'etag',
            ctype_timestamp=Timestamp(now, delta=number % 2).internal,
            meta_timestamp=Timestamp(now, delta=number % 5).internal,
        )
    for name in deleted:
        broker.delete_object(name, Timestamp(next(CLOCK)).internal)
    broker.get_info()


def _clear(broker):
    for name, *_ in broker.list_objects_iter(
        10000, '', '', None, None, allow_reserved=True
    ):
        broker.delete_object(name, Timestamp(next(CLOCK)).internal)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_rows_are_those_of_swifts_broker(broker, data):
    _clear(broker)
    names = data.draw(NAMES)
    gone = (
        data.draw(st.lists(st.sampled_from(names), max_size=3))
        if names
        else ()
    )
    _put(broker, names, gone)
    markers = st.one_of(TEXTS, st.sampled_from(names)) if names else TEXTS
    asked = {
        'limit': data.draw(st.integers(0, 30)),
        'marker': data.draw(markers),
        'end_marker': data.draw(markers),
        'prefix': data.draw(TEXTS),
        'delimiter': data.draw(TEXTS),
    }
    swifts = broker.list_objects_iter(**asked, allow_reserved=True)
    with broker.get() as connection:
        ours = listed_rows(connection, 0, **asked)
    assert [tuple(row) for row in ours] == [tuple(row) for row in swifts]


@given(
    st.integers(0, 2**33 * 10**5 - 1),  # Swift rounds times after 2242
    st.sampled_from(
        [
            '',
            'a/b',
            ' a ',
            'a;b=c',
            'a; swift_bytes=3',
            'a;swift_bytes=x',
            'é;',
        ]
    ),
    st.sampled_from(['', '_00000000000000001', '+1']),
    st.text(),
    st.sampled_from([0, 7, 2**62, None]),
)
def test_records_are_those_of_swifts_server(
    server, hundred_thousandths, content_type, offset, text, size
):
    changed = Timestamp(hundred_thousandths / 10**5).normal + offset
    row = (text, changed, size, content_type, text)
    record = simple_text(row)
    if offset or ';' in content_type or size is None:
        assert record is None
    else:
        assert record == json.dumps(server.update_object_record(row))


@given(st.text())
def test_the_record_of_a_pseudo_directory_is_that_of_swifts_server(
    server, text
):
    row = (text, '0', 0, None, '')
    assert simple_text(row) == json.dumps(server.update_object_record(row))


def test_the_record_of_a_row_without_an_etag_is_left_to_swift():
    assert simple_text(('a', Timestamp(1).normal, 7, 'x', None)) is None


def test_rows_of_other_policies_are_left_out(broker):
    broker.put_object('a/b', Timestamp(1).internal, 7, 'text/plain', 'e')
    broker.put_object(
        'a', Timestamp(1).internal, 7, 'x', 'e', storage_policy_index=1
    )
    broker.get_info()
    with broker.get() as connection:
        rows = listed_rows(connection, 0, 10, '/')
    assert rows == [('a/', '0', 0, None, '')]


@pytest.mark.parametrize('last', ['\U0010ffff', '\ud7ff'])
def test_a_delimiter_without_a_successor_is_refused(broker, last):
    _put(broker, [f'a{last}b'])
    with broker.get() as connection, pytest.raises(ValueError):
        listed_rows(connection, 0, 10, last)


def test_no_transaction_stays_open(broker):
    _put(broker, ['a/b', 'c'])
    with broker.get() as connection:
        listed_rows(connection, 0, 10, '/')
        assert not connection.in_transaction
