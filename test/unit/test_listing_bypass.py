# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from swift.common.swob import Request, Response
from swift.common.utils import get_logger

from shardmw.proxy.listings_filter import (
    ORDER_ENV,
    ListingBypass,
    divert,
    may_concern_others,
    note_head,
    take_order,
)

PATH = '/v1/a/c'
ROWS = [{'bytes': 1, 'hash': 'etag', 'name': 'a', 'content_type': 'x; y=z'}]
LISTING = json.dumps(ROWS).encode()


def answer(path: str, inner, query: str = 'format=json') -> Response:
    """Return the response to a GET through shardmw-listings.

    :param inner: the other filters, with shardmw on their right
    """
    app = ListingBypass(inner, get_logger({}))
    return Request.blank(f'{path}?{query}').get_response(app)


def listing(env, start_response):
    """Answer with a listing, as shardmw does."""
    body = divert(Request(env), LISTING)
    return Response(body=body)(env, start_response)


def test_a_listing_is_carried_around_other_filters():
    seen = []

    def others(env, start_response):
        seen.append(b''.join(listing(env, start_response)))
        return seen

    got = answer(PATH, others)
    assert seen == [b'[]']
    assert got.body == LISTING
    assert got.headers['Content-Length'] == str(len(LISTING))


def test_a_header_that_occurs_twice_stays_twice():
    def others(env, start_response):
        def with_two(status, headers):
            start_response(status, [*headers, ('Vary', 'a'), ('Vary', 'b')])

        return listing(env, with_two)

    env = Request.blank(f'{PATH}?format=json').environ
    app = ListingBypass(others, get_logger({}))
    _status, headers, _body = Request(env).call_application(app)
    assert [v for k, v in headers if k == 'Vary'] == ['a', 'b']


@pytest.mark.parametrize('path', ['/v1/a', '/v1/a/c/o'])
def test_other_requests_have_no_bypass(path):
    assert answer(path, listing).body == LISTING


def test_a_listing_of_another_path_passes_through_other_filters():
    def others(env, start_response):
        return listing(dict(env, PATH_INFO='/v1/a/other'), start_response)

    assert answer(PATH, others).body == LISTING


def test_a_list_of_versions_passes_through_other_filters():
    def others(env, start_response):
        assert b''.join(listing(env, start_response)) == LISTING
        return [b'theirs']

    assert answer(PATH, others, 'versions&format=json').body == b'theirs'


def test_a_refusal_by_another_filter_is_kept():
    def others(env, start_response):
        listing(env, lambda *args: None)
        return Response(status=403, body=b'no')(env, start_response)

    assert answer(PATH, others).status_int == 403


def test_a_changed_empty_listing_is_answered_with_503():
    def others(env, start_response):
        listing(env, lambda *args: None)
        return Response(status=204)(env, start_response)

    assert answer(PATH, others).status_int == 503


@pytest.mark.parametrize('query', ['', 'format=plain', 'format=xml'])
def test_other_formats_than_json_pass_through_other_filters(query):
    def others(env, start_response):
        assert b''.join(listing(env, start_response)) == LISTING
        return [b'text']

    assert answer(PATH, others, query).body == b'text'


def test_a_listing_with_reserved_names_may_concern_other_filters():
    body = json.dumps([{**ROWS[0], 'name': '\0a'}]).encode()
    assert may_concern_others(body)


@pytest.mark.parametrize('tag', ['e; slo_etag=x', 'e; symlink_target=c/o'])
def test_a_listing_with_stored_etags_may_concern_other_filters(tag):
    body = json.dumps([*ROWS, {**ROWS[0], 'hash': tag}]).encode()
    assert may_concern_others(body)
    assert not may_concern_others(LISTING)


def test_a_name_that_looks_like_a_stored_etag_does_not():
    name = '"hash": "e; slo_etag=x"'
    body = json.dumps([{**ROWS[0], 'name': name}]).encode()
    assert not may_concern_others(body)


BUCKET = '/bucket'
COUNTED = {
    'X-Container-Object-Count': '7',
    'X-Container-Shard-Count': '4',
    'X-Container-Read': '.r:*',
}


def head_by_s3(
    last_path: str, status: int = 200, counted: dict[str, str] = COUNTED
) -> Response:
    """Return the response to a HEAD, with an s3api that drops all headers.

    :param last_path: the path of s3api's last request, after a HEAD of
                      ``PATH``
    :param status: the status of that request
    :param counted: the headers of the container
    """

    def s3api(env, start_response):
        note_head(Request({**env, 'PATH_INFO': PATH}), counted)
        env['s3api.backend_path'] = last_path
        return Response(status=status)(env, start_response)

    app = ListingBypass(s3api, get_logger({}))
    return Request.blank(BUCKET, method='HEAD').get_response(app)


def test_a_head_of_a_bucket_shows_the_counts():
    headers = head_by_s3(PATH).headers
    assert headers['X-Container-Object-Count'] == '7'
    assert headers['X-Container-Shard-Count'] == '4'


def test_a_head_of_a_bucket_shows_nothing_else_of_the_container():
    assert 'X-Container-Read' not in head_by_s3(PATH).headers


def test_a_head_of_a_key_does_not_show_the_counts_of_its_bucket():
    headers = head_by_s3(f'{PATH}/o').headers
    assert 'X-Container-Object-Count' not in headers


def test_a_refused_head_of_a_bucket_shows_no_counts():
    headers = head_by_s3(PATH, status=403).headers
    assert 'X-Container-Object-Count' not in headers


def test_a_head_by_another_client_than_s3s_has_each_header_once():
    def shardmw(env, start_response):
        note_head(Request(env), COUNTED)
        return Response(headers=COUNTED)(env, start_response)

    env = Request.blank(PATH, method='HEAD').environ
    app = ListingBypass(shardmw, get_logger({}))
    _status, headers, _body = Request(env).call_application(app)
    assert [v for k, v in headers if k == 'X-Container-Object-Count'] == ['7']


def test_a_head_without_shardmw_listings_is_left_alone():
    req = Request.blank(PATH, method='HEAD')
    note_head(req, COUNTED)
    assert not [name for name in req.environ if name.startswith('shardmw.')]


def query_of_listing(
    query: str, method: str = 'GET', environ=(), source: str = 'S3'
) -> str:
    """Return the query of a container GET, as shardmw answers it.

    :param query: the query of the client
    :param method: the method of the client
    :param environ: further keys of its environment
    :param source: the filter that sends the GET of the container
    """
    seen = []

    def sender(env, start_response):
        changes = {'REQUEST_METHOD': 'GET', 'QUERY_STRING': 'limit=3'}
        req = Request({**env, **changes, 'swift.source': source})
        take_order(req)
        seen.append(req.query_string)
        return Response()(env, start_response)

    app = ListingBypass(sender, get_logger({}))
    req = Request.blank(f'{BUCKET}?{query}', environ=dict(environ))
    req.method = method
    req.get_response(app)
    return seen[0]


@pytest.mark.parametrize('other', ['', '&list-type=2', '&prefix=p'])
def test_list_objects_without_an_order_is_passed_on(other):
    query = query_of_listing(f'allow-unordered=true{other}')
    assert query == 'limit=3&allow_unordered=true'


@pytest.mark.parametrize('value', ['', 'false', 'a%26b%3D', '%FF'])
def test_the_value_that_list_objects_has_is_passed_on(value):
    query = query_of_listing(f'allow-unordered={value}')
    assert query == f'limit=3&allow_unordered={value}'


def test_list_objects_without_the_parameter_is_left_alone():
    assert query_of_listing('list-type=2') == 'limit=3'


@pytest.mark.parametrize('other', ['uploads', 'uploadId=i', 'versions'])
def test_other_lists_of_s3_keep_their_order(other):
    assert query_of_listing(f'{other}&allow-unordered=true') == 'limit=3'


@pytest.mark.parametrize('method', ['DELETE', 'HEAD', 'POST', 'PUT'])
def test_a_listing_for_another_method_of_s3_keeps_its_order(method):
    assert query_of_listing('allow-unordered=true', method) == 'limit=3'


@pytest.mark.parametrize('source', [None, 'OV', 'SW'])
def test_a_listing_that_s3api_does_not_send_keeps_its_order(source):
    query = query_of_listing('allow-unordered=true', source=source)
    assert query == 'limit=3'


@pytest.mark.parametrize('method', ['DELETE', 'GET'])
def test_the_order_of_an_earlier_request_is_forgotten(method):
    environ = {ORDER_ENV: 'true'}
    assert query_of_listing('list-type=2', method, environ) == 'limit=3'


def test_a_header_cannot_set_the_order_without_shardmw_listings():
    headers = {ORDER_ENV.removeprefix('HTTP_'): 'true'}
    req = Request.blank(f'{PATH}?limit=3', headers=headers)
    req.environ['swift.source'] = 'S3'
    take_order(req)
    assert req.query_string == 'limit=3'
