# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.swob import Request, str_to_wsgi, wsgi_to_str

from shardmw.paths import Path, parse_path

texts = st.text(st.characters(exclude_categories=['Cs']), max_size=8)


@given(st.lists(texts, max_size=6))
def test_a_path_is_split_as_swift_splits_it(parts):
    path = str_to_wsgi('/'.join(['', *parts]))
    try:
        wsgi_parts = Request({'PATH_INFO': path}).split_path(2, 4, True)
    except ValueError:
        with pytest.raises(ValueError, match='Invalid path'):
            parse_path(path)
    else:
        assert parse_path(path) == tuple(
            part and wsgi_to_str(part) for part in wsgi_parts
        )


def test_a_name_may_hold_slashes():
    path = parse_path('/v1/AUTH_test/logs/a/b/')
    assert path == Path('v1', 'AUTH_test', 'logs', 'a/b/')


def test_what_is_not_utf8_is_split_all_the_same():
    assert parse_path('/v1/a/\xff').container == '\udcff'


@pytest.mark.parametrize(
    'path', ['', '/', '/v1', 'v1/a', '/v1//c', '/v1/a//o']
)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match='Invalid path'):
        parse_path(path)
