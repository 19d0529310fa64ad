# SPDX-License-Identifier: Apache-2.0
"""Batches of reads: how they are encoded, and which shards they have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.batch import (
    METHOD,
    MOST_READS,
    TOMBSTONES,
    Found,
    Read,
    Source,
    decode_found,
    decode_reads,
    encode_found,
    encode_reads,
    grouped,
)

TEXTS = st.text(st.characters(exclude_categories=['Cs']), max_size=20)
READS = st.builds(
    Read,
    TEXTS,
    st.integers(0, 2**32),
    TEXTS,
    TEXTS,
    st.sampled_from(['GET', 'HEAD']),
    TEXTS,
)
FOUND = st.none() | st.builds(
    Found,
    st.dictionaries(TEXTS, TEXTS, min_size=1),
    st.binary(max_size=20).filter(lambda body: b'\n' not in body),
)
ADDRESSES = [('127.0.0.1', port) for port in range(4)]


def test_servers_of_other_releases_read_the_same_request():
    reads = [Read('sdb1', 7, 'a', '☃', TOMBSTONES)] * 128
    text = '["sdb1",7,"a","☃","TOMBSTONES",""]'
    body = f'[{",".join([text] * 128)}]'.encode()
    assert METHOD == 'REPORT'
    assert encode_reads(reads) == body
    assert decode_reads(body) == reads


@given(st.lists(READS, min_size=1, max_size=MOST_READS))
def test_reads_arrive_as_they_were_sent(reads):
    assert decode_reads(encode_reads(reads)) == reads


@pytest.mark.parametrize(
    'body',
    [
        b'',
        b'{}',
        b'[]',
        b'null',
        b'[1]',
        b'[["d"]]',
        b'[["d", 1, "a", "c", "PUT", ""]]',
        b'[["d", "1", "a", "c", "GET", ""]]',
        b'[["d", -1, "a", "c", "GET", ""]]',
        b'[["d", 1, null, "c", "GET", ""]]',
        b'[["d", 1, "a", "c", "GET", "", 1]]',
        encode_reads([Read('d', 1, 'a', 'c', 'GET')] * 129),
        encode_reads([Read('d', 1, 'a', 'c', 'GET')])[:-1],
    ],
)
def test_a_body_that_is_no_list_of_reads_is_refused(body):
    with pytest.raises(ValueError):
        decode_reads(body)


@pytest.mark.parametrize(
    ('body', 'text'),
    [
        (b'[1]', 'must be an iterable'),
        (b'[]', '0 reads'),
        (b'[["d", 1, null, "c", "GET", ""]]', 'no text: Read'),
        (b'[["d", -1, "a", "c", "GET", ""]]', 'no partition: Read'),
        (b'[["d", 1, "a", "c", "PUT", ""]]', 'no method: Read'),
    ],
)
def test_the_error_says_what_is_wrong_with_a_body(body, text):
    with pytest.raises(ValueError, match=text):
        decode_reads(body)


@given(st.lists(FOUND, min_size=1, max_size=MOST_READS))
def test_answers_arrive_as_they_were_sent(found):
    body = b''.join(map(encode_found, found))
    assert decode_found(body, len(found)) == found


@given(st.lists(FOUND, min_size=1), st.data())
def test_an_answer_that_is_cut_off_is_refused(found, data):
    body = b''.join(map(encode_found, found))
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(ValueError, match=f' no answer to {len(found)} reads'):
        decode_found(body[:cut], len(found))


@pytest.mark.parametrize('body', [b'null\n\nnull', b'\nnull\n\n'])
def test_an_answer_with_more_than_was_asked_for_is_refused(body):
    with pytest.raises(ValueError):
        decode_found(body, 1)


@pytest.mark.parametrize(
    'headers', [b'0', b'""', b'[]', b'false', b'1', b'["X"]', b'{"X": 1}']
)
def test_an_answer_without_headers_is_refused(headers):
    with pytest.raises(ValueError, match='no headers in line 0'):
        decode_found(headers + b'\n[]\n', 1)


@st.composite
def places(draw):
    return {
        shard: {
            address: Source(shard, {'port': address[1]}, shard)
            for address in draw(st.sets(st.sampled_from(ADDRESSES)))
        }
        for shard in range(draw(st.integers(0, 40)))
    }


@given(places(), st.integers(1, MOST_READS))
def test_each_shard_is_read_once_where_it_is(places, size):
    batches = grouped(places, size)
    read = [place.shard for batch in batches for place in batch]
    assert sorted(read) == sorted(places)
    for batch in batches:
        assert 0 < len(batch) <= size
        if batch[0].node is None:
            assert not places[batch[0].shard]
            assert len(batch) == 1
            continue
        assert len({place.node['port'] for place in batch}) == 1
        for place in batch:
            assert place in places[place.shard].values()


def test_servers_take_turns():
    places = {
        shard: {
            address: Source(shard, {'port': address[1]})
            for address in ADDRESSES
        }
        for shard in range(32)
    }
    batches = grouped(places, 8)
    ports = [{place.node['port'] for place in batch} for batch in batches]
    assert sorted(map(sorted, ports)) == [[0], [1], [2], [3]]


def test_a_server_with_more_shards_comes_first():
    first, second = ADDRESSES[:2]
    servers = [[first], [first, second], [second], [second]]
    places = {
        shard: {
            address: Source(shard, {'port': address[1]}) for address in each
        }
        for shard, each in enumerate(servers)
    }
    batches = grouped(places, 8)
    assert [[p.shard for p in batch] for batch in batches] == [[1, 2, 3], [0]]


def test_a_server_with_more_shards_than_a_batch_takes_turns_with_others():
    first, second = ADDRESSES[:2]
    places = {
        shard: {address: Source(shard, {'port': address[1]})}
        for shard, address in enumerate([first] * 16 + [second] * 10)
    }
    batches = grouped(places, 8)
    assert [each[0].node['port'] for each in batches] == [0, 1, 0, 1]
