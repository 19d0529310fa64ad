# SPDX-License-Identifier: Apache-2.0
"""The names that shardmw-admin takes."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.admin.names import parse_name
from shardmw.reshard.errors import AdminError

parts = st.text(
    st.characters(exclude_characters='/', exclude_categories=['Cs']),
    min_size=1,
)


@given(parts, parts, st.text(min_size=1))
def test_a_quoted_name_is_taken_apart(account, container, name):
    name = name.encode('utf-8', 'ignore').decode() or 'o'
    text = '/'.join(map(quote, (account, container, name)))
    assert parse_name(text, 3) == (account, container, name)


@pytest.mark.parametrize(
    ('text', 'names'),
    [
        ('AUTH_ci/logs', ('AUTH_ci', 'logs')),
        ('/AUTH_ci/logs', ('AUTH_ci', 'logs')),
        ('AUTH_ci/50% done', ('AUTH_ci', '50% done')),
        ('AUTH_ci/%E2%98%83', ('AUTH_ci', '☃')),
        ('AUTH_ci/%00versions%00c', ('AUTH_ci', '\0versions\0c')),
    ],
)
def test_a_name_may_be_quoted(text, names):
    assert parse_name(text, 2) == names


def test_the_name_of_an_object_may_have_slashes():
    assert parse_name('a/c/o/p/', 3) == ('a', 'c', 'o/p/')


@pytest.mark.parametrize(
    ('text', 'count'),
    [
        ('', 1),
        ('a/c', 1),
        ('a', 2),
        ('a/', 2),
        ('/a', 2),
        ('//c', 2),
        ('a/c/o', 2),
        ('a/c/', 2),
        ('a/c', 3),
        ('a/c/', 3),
    ],
)
def test_another_number_of_names_is_an_error(text, count):
    with pytest.raises(AdminError, match='not a name like ACCOUNT'):
        parse_name(text, count)
