# SPDX-License-Identifier: Apache-2.0
"""Whether attributes lie in an XFS inode."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.bench.xfs import INODES, Inode, fork_bytes

ATTRIBUTES = st.dictionaries(
    st.text('ab.', min_size=1, max_size=12).map('user.{}'.format),
    st.integers(0, 300),
    max_size=5,
)
INODE = st.sampled_from([Inode(512, 4), *INODES])
EXTENTS = st.integers(0, 12)


@pytest.mark.parametrize(
    ('inode', 'room'),
    [
        # by hand: the size, less the core, less 52 bytes in steps of 8
        (Inode(256, 4), 256 - 100 - 56),
        (Inode(512, 4), 512 - 100 - 56),
        (Inode(512, 5), 512 - 176 - 56),
        (Inode(1024, 5), 1024 - 176 - 56),
        (Inode(2048, 5), 2048 - 176 - 56),
    ],
)
def test_the_room_is_what_core_and_data_leave(inode, room):
    assert inode.room() == room


def test_up_to_three_extents_take_no_more_than_one():
    assert [Inode(512).room(n) for n in range(5)] == [280] * 4 + [272]


def test_v5_has_no_inodes_of_256_bytes():
    with pytest.raises(ValueError, match='v5 has 512 bytes or more'):
        Inode(256, 5)


def test_an_attribute_goes_without_its_namespace():
    assert fork_bytes({'user.ab': 10}) == 4 + 3 + 2 + 10


@given(ATTRIBUTES, ATTRIBUTES)
def test_more_attributes_take_more(some, more):
    assert fork_bytes({**more, **some}) >= fork_bytes(some)


@given(ATTRIBUTES, INODE, EXTENTS)
def test_a_larger_inode_holds_what_a_smaller_one_does(
    attributes, inode, extents
):
    larger = Inode(inode.size * 2, inode.version)
    assert larger.holds(attributes, extents) >= inode.holds(
        attributes, extents
    )


@given(ATTRIBUTES, INODE, EXTENTS)
def test_v4_inodes_have_more_room(attributes, inode, extents):
    older = Inode(inode.size, 4)
    assert older.room(extents) >= inode.room(extents)


@given(INODE, st.dictionaries(st.just('user.b'), st.integers(0, 60)))
def test_the_longest_value_is_held_and_one_longer_is_not(inode, others):
    longest = inode.longest('user.a', others)
    if longest >= 0:
        assert inode.holds({**others, 'user.a': longest})
    assert not inode.holds({**others, 'user.a': max(0, longest + 1)})


def test_no_inode_holds_a_value_whose_length_is_no_byte():
    large = Inode(2048)
    assert large.holds({'user.a': 254, 'user.b': 254, 'user.c': 254})
    assert not large.holds({'user.a': 255})
