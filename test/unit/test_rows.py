# SPDX-License-Identifier: Apache-2.0
import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw import rows
from shardmw.rows import Rows, parse_rows, rows_of, to_json

# What could be taken for the end of a string, a row or a name.
tricky = st.lists(
    st.sampled_from(
        ['}', '{', '"', ', ', ': ', '\\', 'name', 'subdir', 'a', '\u2603',
         '\U0001f600', '\n', '\0', '"name": "', '}, {"', '", "', '}]', '[{']
    )
).map(''.join)  # fmt: skip
objects = st.builds(
    lambda size, etag, name, kind: {
        'bytes': size,
        'hash': etag,
        'name': name,
        'content_type': kind,
        'last_modified': '2026-01-01T00:00:00.000000',
    },
    st.integers(0, 2**60),
    tricky,
    tricky,
    tricky,
)
subdirs = st.builds(lambda name: {'subdir': name}, tricky)
listings = st.lists(objects | subdirs, max_size=5)


def name_of(row: dict) -> str:
    return row['name'] if 'name' in row else row['subdir']


def hidden(row: dict) -> dict:
    key = 'name' if 'name' in row else 'subdir'
    return {**row, key: '\0' + row[key]}


@given(listings)
def test_what_is_cut_and_joined_is_what_swift_wrote(listing):
    body = json.dumps(listing).encode()
    cut = parse_rows(body)
    assert cut.names == [name_of(row) for row in listing]
    assert to_json(cut.texts) == body


@given(listings)
def test_names_are_shown_without_what_hides_them(listing):
    body = json.dumps([hidden(row) for row in listing]).encode()
    cut = parse_rows(body, are_hidden=True)
    assert cut.names == [name_of(row) for row in listing]
    assert to_json(cut.texts) == json.dumps(listing).encode()


@given(listings, st.booleans())
def test_what_is_written_in_another_way_is_decoded(listing, are_hidden):
    stored = [hidden(row) for row in listing] if are_hidden else listing
    cut = parse_rows(orjson.dumps(stored), are_hidden)
    assert cut == rows_of(listing)
    assert to_json(cut.texts) == json.dumps(listing).encode()


def test_rows_written_in_two_ways_are_not_taken_for_one():
    first, second = {'name': 'a', 'hash': 'x'}, {'name': 'b', 'hash': 'y'}
    body = f'[{json.dumps(first)},{json.dumps(second)}]'.encode()
    assert parse_rows(body).names == ['a', 'b']


@pytest.mark.parametrize('name', ['a', '\u2603'])
@pytest.mark.parametrize('are_hidden', [False, True])
def test_a_name_may_come_first_in_its_row(name, are_hidden):
    row = {'name': name, 'hash': 'x'}
    stored = hidden(row) if are_hidden else row
    cut = parse_rows(json.dumps([stored]).encode(), are_hidden)
    assert cut.names == [name]
    assert to_json(cut.texts) == json.dumps([row]).encode()


def test_an_empty_body_has_no_rows():
    assert parse_rows(b'') == Rows([], [])


def test_no_body_is_no_listing():
    with pytest.raises(ValueError):
        parse_rows(b'{"name": "a"')


def test_the_newer_of_two_rows_is_kept():
    older = '"last_modified": "2026-01-01T00:00:00.000000"'[1:]
    newer = '"last_modified": "2026-01-01T00:00:00.000001"'[1:]
    assert rows.newer(older, newer) == newer
    assert rows.newer(newer, older) == newer
