# SPDX-License-Identifier: Apache-2.0
import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.constraints import MAX_CONTAINER_NAME_LENGTH

from shardmw import placement

COUNTS = (1, 2, 8, 32, 64, 512)
VECTORS = [
    ('a', '2f42665b399ef840', (0, 0, 3, 26, 51, 333)),
    ('obj/0000000001', '84d8585267dbd94b', (0, 0, 7, 9, 45, 45)),
    (
        'logs/2015/03/24/console.html.gz',
        '714e61846b116478',
        (0, 1, 1, 31, 31, 504),
    ),
    ('☃', '63c63279cc447805', (0, 0, 0, 23, 43, 408)),
    ('x' * 1000, '1786154c896b309a', (0, 0, 0, 30, 55, 442)),
]

names = st.text(
    st.characters(exclude_characters='\0', exclude_categories=['Cs']),
    min_size=1,
    max_size=60,
)
containers = names.filter(
    lambda name: '/' not in name and len(name) <= MAX_CONTAINER_NAME_LENGTH
)
counts = st.integers(1, placement.SHARD_COUNT_LIMIT)


@pytest.mark.parametrize(('name', 'key', 'shards'), VECTORS)
def test_published_vectors(name, key, shards):
    assert f'{placement.object_key(name):016x}' == key
    assert tuple(placement.shard_of(name, n) for n in COUNTS) == shards


@given(names, counts)
def test_a_shard_is_an_index_below_the_count(name, count):
    assert 0 <= placement.shard_of(name, count) < count


@given(names, counts, counts)
def test_growing_moves_objects_only_into_new_shards(name, count, other):
    few, many = sorted((count, other))
    before = placement.shard_of(name, few)
    after = placement.shard_of(name, many)
    assert after == before or few <= after < many


@pytest.mark.parametrize('count', [2, 8, 32, 128])
def test_objects_spread_evenly(count):
    expected = 500
    spread = Counter(
        placement.shard_of(f'logs/{i:08}', count)
        for i in range(count * expected)
    )
    deviation = expected**0.5
    assert len(spread) == count
    assert min(spread.values()) > expected - 5 * deviation
    assert max(spread.values()) < expected + 5 * deviation


def test_growing_by_half_moves_a_third_of_the_objects():
    sample = [f'logs/{i:08}' for i in range(6000)]
    moved = sum(
        placement.shard_of(name, 8) != placement.shard_of(name, 12)
        for name in sample
    )
    assert 1800 < moved < 2200


def test_backing_names_lie_in_the_reserved_namespace():
    assert placement.backing_container('c', 7) == '\0shardmw\0c\x007'
    assert placement.backing_object('c', 'a/b') == '\0a/b'


VERSIONS = '\0versions\0c'


def test_versions_lie_in_shards_of_their_own_by_the_names_they_have():
    backing = placement.backing_container(VERSIONS, 7)
    assert backing == '\0shardmw-versions\0c\x007'
    assert placement.backing_object(VERSIONS, '\0o\0123') == '\0o\0123'


@given(st.sampled_from(['c', VERSIONS]), st.text())
def test_bounds_are_the_names_of_objects(container, name):
    backing = placement.backing_bound(container, name)
    assert placement.logical_name(container, backing) == name


@pytest.mark.parametrize(
    ('container', 'owner'),
    [
        ('c', None),
        ('versions', None),
        (VERSIONS, 'c'),
        ('\0versions\0c\0d', None),
        ('\0shardmw\0c\x001', None),
        ('\0versions', None),
    ],
)
def test_whose_versions_a_container_holds(container, owner):
    assert placement.versions_owner(container) == owner


@pytest.mark.parametrize('length', [1, 200, 241, 242, 256])
def test_a_backing_name_fits_whatever_the_container_name(length):
    last = placement.SHARD_COUNT_LIMIT - 1
    backing = placement.backing_container('c' * length, last)
    assert len(backing) <= MAX_CONTAINER_NAME_LENGTH


def test_a_long_container_name_is_replaced_by_its_digest():
    backing = placement.backing_container('c' * 256, 3)
    digest = hashlib.sha256(b'c' * 256).hexdigest()
    assert backing == f'\0shardmw-long\0{digest}\x003'


containers_and_versions = containers | containers.map(
    placement.versions_container
)


@given(containers_and_versions, counts)
def test_a_backing_name_says_whose_it_is(container, shard):
    backing = placement.backing_container(container, shard)
    assert placement.logical_key(backing) == placement.key_of(container)
    assert backing.startswith(placement.backing_prefix(container))


@given(containers_and_versions, containers_and_versions, counts, counts)
def test_no_two_containers_share_a_backing_name(one, other, i, j):
    same = placement.backing_container(one, i) == placement.backing_container(
        other, j
    )
    assert same == ((one, i) == (other, j))


@pytest.mark.parametrize(
    'name',
    [
        'c',
        '\0versions\0c',
        '\0shardmw\0c',
        '\0shardmw\0c\0x',
        '\0shardmw\0c\x001\x002',
        '\0other\0c\x001',
    ],
)
def test_other_names_are_nobodys_backing_container(name):
    assert placement.logical_key(name) is None


@pytest.mark.parametrize(
    ('name', 'in_root'),
    [('x' * 1023, False), ('x' * 1024, True), ('é' * 1023, False)],
)
def test_a_name_too_long_to_prefix_lies_in_the_root(name, in_root):
    assert placement.lies_in_root('c', name) == in_root


def test_a_version_lies_in_a_shard_whatever_its_length():
    assert not placement.lies_in_root(VERSIONS, '\0o\0' + 'x' * 1021)
