# SPDX-License-Identifier: Apache-2.0
import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core import listing_rows as rows
from shardmw.core.listing_rows import Rows, parse_rows, rows_of, to_json

# Text that a parser could mistake for the end of a string, a row or a name.
tricky = st.lists(
    st.sampled_from(
        ['}', '{', '"', ', ', ': ', '\\', 'name', 'subdir', 'a', '\u2603',
         '\U0001f600', '\n', '\0', '"name": "', '}, {"', '}, {', '", "',
         '}]', '[{']
    )
).map(''.join)  # fmt: skip
harmless = st.text('a}{,: name', max_size=8)


def objects(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict]:
    return st.builds(
        lambda size, etag, name, kind: {
            'bytes': size,
            'hash': etag,
            'name': name,
            'content_type': kind,
            'last_modified': '2026-01-01T00:00:00.000000',
        },
        st.integers(0, 2**60),
        text,
        text,
        text,
    )


def subdirs(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict]:
    return st.builds(lambda name: {'subdir': name}, text)


listings = st.one_of(
    st.lists(objects(harmless), max_size=5),
    st.lists(objects(harmless) | subdirs(harmless), max_size=5),
    st.lists(objects(tricky) | subdirs(tricky), max_size=5),
)


def names_of(listing: list[dict]) -> list[str]:
    return [row['name'] if 'name' in row else row['subdir'] for row in listing]


@given(listings)
def test_rows_have_the_names_that_json_has(listing):
    body = json.dumps(listing).encode()
    assert parse_rows(body).names == names_of(json.loads(body))


@given(listings)
def test_rows_joined_again_are_what_swift_wrote(listing):
    body = json.dumps(listing).encode()
    assert to_json(parse_rows(body).texts) == body


@given(listings)
def test_each_row_has_the_json_of_its_name(listing):
    cut = parse_rows(json.dumps(listing).encode())
    assert [json.loads(b'{%b}' % text) for text in cut.texts] == listing


@given(listings)
def test_json_written_in_another_way_is_decoded(listing):
    cut = parse_rows(orjson.dumps(listing))
    assert cut == rows_of(listing)
    assert to_json(cut.texts) == json.dumps(listing).encode()


def test_rows_written_in_two_ways_are_not_taken_for_one():
    first, second = {'name': 'a', 'hash': 'x'}, {'name': 'b', 'hash': 'y'}
    body = f'[{json.dumps(first)},{json.dumps(second)}]'.encode()
    assert parse_rows(body).names == ['a', 'b']


@pytest.mark.parametrize('name', ['a', '\u2603'])
def test_a_name_may_come_first_in_its_row(name):
    row = {'name': name, 'hash': 'x'}
    cut = parse_rows(json.dumps([row]).encode())
    assert cut.names == [name]
    assert to_json(cut.texts) == json.dumps([row]).encode()


@pytest.mark.parametrize(
    'second', [{'bytes': 2, 'name': '\u2603'}, {'subdir': 'b/'}]
)
def test_a_listing_is_not_decoded(monkeypatch, second):
    monkeypatch.setattr(rows, 'rows_of', None)
    listing = [{'bytes': 1, 'name': '{a}'}, second]
    assert parse_rows(json.dumps(listing).encode()).names == names_of(listing)


@pytest.mark.parametrize('body', [b'', b'[]'])
def test_an_empty_listing_has_no_rows(body):
    assert parse_rows(body) == Rows([], [])


@pytest.mark.parametrize('body', [b'{"name": "a"', b'[{"name": "a"', b'[{]'])
def test_a_body_that_is_not_json_is_no_listing(body):
    with pytest.raises(ValueError):
        parse_rows(body)


def test_the_newer_of_two_rows_is_kept():
    older = b'"last_modified": "2026-01-01T00:00:00.000000"'
    newer = b'"last_modified": "2026-01-01T00:00:00.000001"'
    assert rows.newer(older, newer) == newer
    assert rows.newer(newer, older) == newer


@pytest.mark.parametrize(
    'body',
    [
        *(b'0', b'null', b'{}', b'""', b'{"name": "a"}', b'[1]', b'["name"]'),
        *(b'[null]', b'[{}]', b'[{"name": 1}]', b'[{"subdir": null}]'),
    ],
)
def test_json_that_is_no_listing_is_refused(body):
    with pytest.raises(ValueError):
        parse_rows(body)


@pytest.mark.parametrize(
    ('body', 'text'),
    [
        (b'{}', 'no JSON array but'),
        (b'[{"name": "a"}, 1]', 'no name in row 1'),
    ],
)
def test_the_error_says_why_json_is_no_listing(body, text):
    with pytest.raises(ValueError, match=text):
        parse_rows(body)


def test_of_two_rows_of_one_time_the_first_is_kept():
    row = b'"hash": "x", "last_modified": "2026-01-01T00:00:00.000000"'
    other = row.replace(b'x', b'y')
    assert rows.newer(row, other) == row


def test_a_row_is_newer_than_a_subdir():
    row = b'"name": "a", "last_modified": "2026-01-01T00:00:00.000000"'
    subdir = b'"subdir": "a"'
    assert rows.newer(subdir, row) == rows.newer(row, subdir) == row
