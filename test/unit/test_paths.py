# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from swift.common.swob import Request, str_to_wsgi, wsgi_to_str

from shardmw.core.paths import Path, Place, parse_path

texts = st.text(st.characters(exclude_categories=['Cs']), max_size=8)
parts = st.text(
    st.characters(exclude_categories=['Cs'], exclude_characters='/'),
    min_size=1,
    max_size=8,
)


@given(st.lists(texts, max_size=6))
@example(['v1', 'a', ''])
def test_a_path_is_split_as_swift_splits_it(parts):
    path = str_to_wsgi('/'.join(['', *parts]))
    try:
        wsgi_parts = Request({'PATH_INFO': path}).split_path(2, 4, True)
    except ValueError:
        with pytest.raises(ValueError, match='not the path'):
            parse_path(path)
    else:
        assert parse_path(path) == tuple(
            part and wsgi_to_str(part) for part in wsgi_parts
        )


def test_only_short_paths_are_kept():
    short, long = '/v1/a/c/o', '/v1/a/c/' + 'o' * 8000
    assert parse_path(short) is parse_path(short)
    assert parse_path(long) == parse_path(long)
    assert parse_path(long) is not parse_path(long)


def test_an_object_name_may_contain_slashes():
    path = parse_path('/v1/AUTH_test/logs/a/b/')
    assert path == Path('v1', 'AUTH_test', 'logs', 'a/b/')


def test_a_path_that_is_not_utf8_is_split():
    path = parse_path('/v1/a/\xff')
    assert path.container == '\udcff'
    assert path.to_wsgi() == '/v1/a/\xff'


@pytest.mark.parametrize(
    'path', ['', '/', '/v1', 'v1/a', '/v1//c', '/v1/a//o']
)
def test_a_path_without_an_account_is_refused(path):
    with pytest.raises(ValueError, match='not the path'):
        parse_path(path)


@given(st.lists(parts, min_size=2, max_size=4))
def test_a_path_reads_back_from_its_wsgi_string(parts):
    path = Path(*parts)
    assert parse_path(path.to_wsgi()) == path


def test_the_path_of_another_container_names_no_object():
    path = Path('v1', 'a', 'c', 'o')
    assert path.of_container('d') == Path('v1', 'a', 'd')


def test_the_place_of_an_object_is_that_of_its_container():
    place = Path('v1', 'a', 'c', 'o').place
    assert place == Place('a', 'c')
    assert place.path == Path('v1', 'a', 'c')
    assert str(place) == 'a/c'
