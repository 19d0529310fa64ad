# SPDX-License-Identifier: Apache-2.0
import hashlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.constraints import (
    AUTO_CREATE_ACCOUNT_PREFIX,
    MAX_CONTAINER_NAME_LENGTH,
)

from shardmw.core import placement
from shardmw.core.layout import DEPTH_LIMIT, SHARD_COUNT_LIMIT
from shardmw.core.placement import BackingName, NameRange

PAGE = Path(__file__).parents[2] / 'doc' / 'design.md'

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

#: Name, depth, shard key, key, and the shards for N = 8, 32 and 512.
DEPTH_COUNTS = (8, 32, 512)
DEPTH_VECTORS = [
    (
        'logs/2015/03/24/console.html.gz',
        1,
        'logs/',
        '7844dc32481500ff',
        (4, 14, 432),
    ),
    (
        'logs/2015/03/24/console.html.gz',
        2,
        'logs/2015/',
        '915d67ad776b7ad6',
        (4, 11, 79),
    ),
    ('a', 1, 'a', '2f42665b399ef840', (3, 26, 333)),
    ('a/', 1, 'a/', '1d0376ddcfbebd03', (5, 25, 82)),
    ('/a/b', 1, '/', '901d479c282838bf', (3, 3, 429)),
    ('a//b', 2, 'a//', '59aab798816da492', (0, 14, 374)),
    ('a//b', 3, 'a//b', '7ebc1b15849b43b2', (6, 18, 76)),
    ('☃/☃/☃', 2, '☃/☃/', '40df85b8ccd9e6a1', (2, 10, 173)),
]
ID = '65a1b2c3d4e5f'
VERSIONS = '\0versions\0c'
LAST_SHARD = SHARD_COUNT_LIMIT - 1

names = st.text(
    st.characters(exclude_characters='\0', exclude_categories=['Cs']),
    min_size=1,
    max_size=60,
)
counts = st.integers(1, SHARD_COUNT_LIMIT)
depths = st.integers(1, DEPTH_LIMIT)
few_depths = st.integers(0, 3)
#: Names that share directories, with slashes anywhere; '.' and '0' are the
#: characters before and after the slash.
paths = st.text(st.sampled_from('/a.0☃'), max_size=8)
ranges = st.builds(NameRange, paths, paths, paths)
shards = st.integers(0, LAST_SHARD)
ids = st.integers(0, 16**13 - 1).map('{:013x}'.format)
clients_containers = st.text(
    # A backing name adds dots, digits and hex letters.
    st.sampled_from('.0123456789abcdef') | st.characters(codec='utf-8'),
    min_size=1,
    max_size=MAX_CONTAINER_NAME_LENGTH,
).filter(lambda name: not {'/', '\0'} & set(name))
containers = clients_containers | clients_containers.map(
    placement.versions_container
)


@pytest.mark.parametrize(('name', 'key', 'shards'), VECTORS)
def test_published_vectors(name, key, shards):
    assert f'{placement.object_key(name):016x}' == key
    assert tuple(placement.shard_of(name, n) for n in COUNTS) == shards


@pytest.mark.parametrize(('key', 'shards'), [v[1:] for v in VECTORS])
def test_vectors_are_those_of_the_page(key, shards):
    columns = ' | '.join([key, *map(str, shards)])
    assert f'| {columns} |' in PAGE.read_text()


@pytest.mark.parametrize(
    ('name', 'depth', 'shard_key', 'key', 'shards'), DEPTH_VECTORS
)
def test_published_vectors_of_depths(name, depth, shard_key, key, shards):
    assert placement.shard_key(name, depth) == shard_key
    assert f'{placement.object_key(name, depth):016x}' == key
    found = tuple(placement.shard_of(name, n, depth) for n in DEPTH_COUNTS)
    assert found == shards


@given(names, counts)
def test_depth_0_is_the_whole_name(name, count):
    assert placement.shard_key(name, 0) == name
    assert placement.shard_of(name, count, 0) == placement.shard_of(
        name, count
    )


@given(paths, paths, paths, depths, counts)
def test_names_in_one_directory_of_the_depth_share_a_shard(
    top, name, other, depth, count
):
    directory = '/'.join([top, *'a' * (depth - 1), ''])
    assert placement.shard_of(
        directory + name, count, depth
    ) == placement.shard_of(directory + other, count, depth)


@given(names | paths, depths)
def test_a_shard_key_is_the_shortest_part_with_as_many_slashes(name, depth):
    key = placement.shard_key(name, depth)
    assert name.startswith(key)
    if name.count('/') < depth:
        assert key == name
    else:
        assert key.endswith('/')
        assert key.count('/') == depth


@given(ranges, paths, few_depths)
def test_a_listing_reads_the_shard_of_every_name_of_its_range(
    names, name, depth
):
    is_listed = (
        name.startswith(names.prefix)
        and name > names.after
        and (not names.before or name < names.before)
    )
    if is_listed:
        shards = placement.shards_of_range(names, 512, depth)
        assert placement.shard_of(name, 512, depth) in shards


@given(paths, paths, paths, st.integers(1, 3), counts)
def test_a_listing_of_a_directory_of_the_depth_reads_one_shard(
    top, rest, marker, depth, count
):
    prefix = '/'.join([top, *'a' * (depth - 1), rest])
    names = NameRange(prefix, marker)
    (shard,) = placement.shards_of_range(names, count, depth)
    assert shard == placement.shard_of(prefix, count, depth)


@pytest.mark.parametrize(
    ('names', 'depth', 'is_one'),
    [
        (NameRange('a'), 1, False),
        (NameRange('a/'), 1, True),
        (NameRange('a/'), 2, False),
        (NameRange('a/'), 0, False),
        (NameRange('', 'a/', 'a0'), 1, True),
        (NameRange('', 'a/b', 'a/c'), 1, True),
        (NameRange('a', 'a/b', 'a/c'), 1, True),
        (NameRange('', 'a/', 'a00'), 1, False),
        (NameRange('', 'a', 'a0'), 1, False),
        (NameRange('', 'a/b'), 1, False),
        (NameRange('', '', 'a/b'), 1, False),
        (NameRange('', 'a/b/', 'a/c'), 2, False),
        (NameRange('', 'a/b/', 'a/b/c'), 2, True),
    ],
)
def test_a_range_within_one_directory_of_the_depth_reads_one_shard(
    names, depth, is_one
):
    shards = placement.shards_of_range(names, 32, depth)
    assert (len(shards) == 1) is is_one


def test_a_listing_of_all_names_reads_all_shards():
    assert tuple(placement.ALL_NAMES) == ('', '', '')
    assert placement.shards_of_range(placement.ALL_NAMES, 8, 1) == range(8)


def test_a_listing_without_a_depth_reads_all_shards():
    assert placement.shards_of_range(NameRange('a/'), 8) == range(8)


def test_a_plain_container_has_no_shards_to_read():
    assert placement.shards_of_range(NameRange('a/'), 0, 1) == range(0)


@pytest.mark.parametrize(
    ('key', 'bucket'),
    [(0x021FBF4E666313AB, 0), (0x355997F8666313AB, 1023)],
)
def test_the_last_key_of_a_bucket_and_the_next_one(key, bucket):
    """The first jump is to 2 ** 31 / 2 ** 21 = 1024, or to just below it."""
    assert placement.jump_consistent_hash(key, 1024) == bucket


@given(names, counts)
def test_a_shard_is_an_index_below_the_count(name, count):
    assert 0 <= placement.shard_of(name, count) < count


@given(names, counts, counts)
def test_growing_moves_rows_only_into_new_shards(name, count, other):
    few, many = sorted((count, other))
    before = placement.shard_of(name, few)
    after = placement.shard_of(name, many)
    assert after == before or few <= after < many


@pytest.mark.parametrize('count', [2, 8, 32, 128])
def test_rows_spread_evenly(count):
    expected = 200
    spread = Counter(
        placement.shard_of(f'logs/{i:08}', count)
        for i in range(count * expected)
    )
    deviation = expected**0.5
    assert len(spread) == count
    assert min(spread.values()) > expected - 5 * deviation
    assert max(spread.values()) < expected + 5 * deviation


def test_growing_by_half_moves_a_third_of_the_rows():
    sample = [f'logs/{i:08}' for i in range(6000)]
    moved = sum(
        placement.shard_of(name, 8) != placement.shard_of(name, 12)
        for name in sample
    )
    assert 1800 < moved < 2200


def test_a_backing_container_is_named_after_container_id_and_shard():
    backing = placement.backing_container('logs', ID, 7)
    assert backing == 'logs.65a1b2c3d4e5f.7'


def test_versions_have_backing_containers_of_their_own():
    backing = placement.backing_container(VERSIONS, ID, 7)
    assert backing == '\0versions\0c.65a1b2c3d4e5f.7'


def test_the_end_of_a_long_container_name_is_replaced_by_its_digest():
    backing = placement.backing_container('é' * 256, ID, 3)
    digest = hashlib.sha256(('é' * 256).encode()).hexdigest()
    assert backing == 'é' * 173 + f'{digest}.65a1b2c3d4e5f.3'


@given(containers, ids, shards)
def test_swift_takes_every_backing_name(container, layout_id, shard):
    backing = placement.backing_container(container, layout_id, shard)
    assert len(backing) <= MAX_CONTAINER_NAME_LENGTH
    assert '/' not in backing


def test_the_longest_name_without_a_digest_fits_with_the_last_shard():
    longest = next(
        'z' * length
        for length in range(MAX_CONTAINER_NAME_LENGTH, 0, -1)
        if not placement.has_digest('z' * length)
    )
    backing = placement.backing_container(longest, ID, LAST_SHARD)
    assert len(backing) == MAX_CONTAINER_NAME_LENGTH
    assert backing.startswith(longest)


@given(containers, ids, shards)
def test_a_backing_name_tells_its_parts(container, layout_id, shard):
    backing = placement.backing_container(container, layout_id, shard)
    assert placement.parse_backing(backing) == BackingName(
        placement.backing_base(container), layout_id, shard
    )
    assert backing.startswith(placement.backing_prefix(container))


@given(containers, containers, ids, ids, shards, shards)
def test_no_two_containers_share_a_backing_name(a, b, id_a, id_b, i, j):
    one = placement.backing_container(a, id_a, i)
    other = placement.backing_container(b, id_b, j)
    assert (one == other) == ((a, id_a, i) == (b, id_b, j))


def test_a_container_named_like_a_digest_does_not_share_backing_names():
    digest = placement.backing_base('c' * 256)
    assert placement.backing_base(digest) != digest


def test_names_that_begin_with_another_containers_prefix_are_not_its_own():
    backing = placement.backing_container('c.d', ID, 0)
    assert backing.startswith(placement.backing_prefix('c'))
    assert placement.parse_backing(backing).base == 'c.d'


@pytest.mark.parametrize(
    'name',
    [
        '',
        'c',
        'c.1',
        f'c.{ID}',
        f'c.{ID}.',
        f'c.{ID}.x',
        f'c.{ID}.-1',
        f'c.{ID}.01',
        f'c.{ID}.{SHARD_COUNT_LIMIT}',
        f'c.{ID}.10000',
        f'c.{ID}.1.',
        f'c.{ID}.1\n',
        f'c.{ID.upper()}.1',
        f'c.{ID[1:]}.1',
        f'c.0{ID}.1',
    ],
)
def test_other_names_are_no_names_of_backing_containers(name):
    assert placement.parse_backing(name) is None


@given(names)
def test_a_hidden_account_is_one_that_swift_keeps_from_clients(account):
    hidden = placement.hidden_account(account)
    assert hidden.startswith(AUTO_CREATE_ACCOUNT_PREFIX)
    assert hidden.endswith(account)
    assert placement.is_hidden_account(hidden)


def test_a_hidden_account_tells_its_owner():
    hidden = placement.hidden_account('AUTH_a')
    assert hidden == '.shards_shardmw_AUTH_a'
    assert placement.owner_of(hidden) == 'AUTH_a'
    assert placement.is_hidden_account(placement.REGISTER)


@pytest.mark.parametrize('account', ['AUTH_a', 'shardmw_a', '.shards_a', '.a'])
def test_other_accounts_are_not_hidden_ones(account):
    assert not placement.is_hidden_account(account)


@pytest.mark.parametrize(
    ('container', 'owner'),
    [
        ('c', None),
        ('versions', None),
        (VERSIONS, 'c'),
        ('\0versions\0c\0d', None),
        ('\0other\0c', None),
        ('\0versions', None),
    ],
)
def test_the_owner_of_a_container_of_old_versions(container, owner):
    assert placement.versions_owner(container) == owner


@given(clients_containers)
def test_the_container_of_old_versions_tells_its_owner(container):
    versions = placement.versions_container(container)
    assert placement.versions_owner(versions) == container


@pytest.mark.parametrize(
    ('container', 'can_be'),
    [('c', True), (VERSIONS, True), ('\0other\0c', False), ('\0c', False)],
)
def test_other_reserved_containers_cannot_be_sharded(container, can_be):
    assert placement.can_be_sharded(container) is can_be


@pytest.mark.parametrize(
    ('name', 'is_reserved'),
    [('o', False), ('', False), (None, False), ('\0o', True), ('o\0', True)],
)
def test_reserved_names_contain_a_nul(name, is_reserved):
    assert placement.is_reserved(name) is is_reserved
