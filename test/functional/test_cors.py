# SPDX-License-Identifier: Apache-2.0
"""Cross-origin requests of browsers, on plain and sharded containers."""

import pytest

from test.functional.conftest import USER

ORIGIN = 'http://www.example.com'
STRANGE = 'http://other.example.org'
BODY = b'0123456789'


@pytest.fixture(scope='class')
def shared(login, lasting):
    """A public container that one origin may use."""
    owner = login(USER)
    headers = {
        'X-Container-Read': '.r:*,.rlistings',
        'X-Container-Meta-Access-Control-Allow-Origin': ORIGIN,
        'X-Container-Meta-Access-Control-Max-Age': '5',
        'X-Container-Meta-Access-Control-Expose-Headers': 'X-Own',
    }
    assert owner.post(lasting, headers=headers).status == 204
    meta = {'X-Object-Meta-Colour': 'blue'}
    owner.put(lasting, 'o', BODY, headers=meta)
    owner.put(lasting, 'n' * 1024, BODY, headers=meta)
    return lasting


@pytest.fixture(
    params=[None, 'o', 'missing'],
    ids=['container', 'object', 'missing'],
)
def name(request):
    """The name of an object, or None for the container itself."""
    return request.param


def preflight(client, container, name, origin, **headers):
    sent = {'Origin': origin, 'Access-Control-Request-Method': 'PUT'}
    sent.update(headers)
    return client.anonymous().request('OPTIONS', container, name, headers=sent)


class TestPreflight:
    def test_of_an_allowed_origin_succeeds(self, client, shared, name):
        answer = preflight(client, shared, name, ORIGIN)
        assert answer.status == 200
        headers = answer.headers
        assert headers['access-control-allow-origin'] == ORIGIN
        assert headers['access-control-max-age'] == '5'
        methods = headers['access-control-allow-methods'].split(', ')
        assert {'GET', 'PUT', 'POST', 'DELETE'} <= set(methods)
        assert 'Origin' in headers['vary']

    def test_allows_the_headers_that_are_asked_for(self, client, shared, name):
        asked = {'Access-Control-Request-Headers': 'x-auth-token, x-own'}
        answer = preflight(client, shared, name, ORIGIN, **asked)
        allowed = answer.headers['access-control-allow-headers'].split(', ')
        assert sorted(allowed) == ['x-auth-token', 'x-own']

    def test_of_another_origin_is_401(self, client, shared, name):
        answer = preflight(client, shared, name, STRANGE)
        assert answer.status == 401
        assert 'access-control-allow-origin' not in answer.headers

    def test_of_an_unknown_method_is_401(self, client, shared, name):
        asked = {'Access-Control-Request-Method': 'NONSENSE'}
        answer = preflight(client, shared, name, ORIGIN, **asked)
        assert answer.status == 401

    def test_of_a_container_without_cors_is_401(self, client, container, name):
        assert preflight(client, container, name, ORIGIN).status == 401


class TestRequest:
    @pytest.mark.parametrize('method', ['GET', 'HEAD'])
    def test_for_an_object_shows_its_headers(self, client, shared, method):
        got = client.anonymous().request(
            method, shared, 'o', headers={'Origin': ORIGIN}
        )
        assert got.status == 200
        assert got.headers['access-control-allow-origin'] == ORIGIN
        exposed = got.headers['access-control-expose-headers'].split(', ')
        assert 'x-object-meta-colour' in exposed
        assert 'etag' in exposed
        assert 'x-own' in exposed

    def test_for_an_object_with_a_long_name_succeeds(self, client, shared):
        got = client.anonymous().get(
            shared, 'n' * 1024, headers={'Origin': ORIGIN}
        )
        assert got.body == BODY
        assert got.headers['access-control-allow-origin'] == ORIGIN

    @pytest.mark.parametrize(
        ('method', 'status'), [('GET', 200), ('HEAD', 204)]
    )
    def test_for_the_container_shows_its_headers(
        self, client, shared, method, status
    ):
        got = client.anonymous().request(
            method, shared, headers={'Origin': ORIGIN}
        )
        assert got.status == status
        assert got.headers['access-control-allow-origin'] == ORIGIN
        assert got.headers['x-container-object-count'] == '2'
        exposed = got.headers['access-control-expose-headers'].split(', ')
        assert 'x-timestamp' in exposed

    @pytest.mark.parametrize('headers', [{}, {'X-Own': 'v'}])
    def test_exposes_what_a_plain_container_exposes(
        self, client, pair, headers
    ):
        meta = {'X-Container-Meta-Access-Control-Allow-Origin': '*'}
        client.post(pair.plain, headers=meta)
        client.post(pair.sharded, headers=meta)
        client.put(pair.plain, 'o', BODY)
        client.put(pair.sharded, 'o', BODY)
        sent = {'Origin': ORIGIN, **headers}
        plain = client.get(pair.plain, 'o', headers=sent).headers
        sharded = client.get(pair.sharded, 'o', headers=sent).headers
        assert list(sharded) == list(plain)
        assert sharded['access-control-allow-origin'] == '*'
        assert (
            sharded['access-control-expose-headers']
            == (plain['access-control-expose-headers'])
        )

    def test_to_upload_from_an_allowed_origin_succeeds(self, client, shared):
        answer = client.put(shared, 'new', BODY, headers={'Origin': ORIGIN})
        assert answer.status == 201
        assert answer.headers['access-control-allow-origin'] == ORIGIN
        answer = client.delete(shared, 'new', headers={'Origin': ORIGIN})
        assert answer.status == 204
        assert answer.headers['access-control-allow-origin'] == ORIGIN

    def test_of_another_origin_gets_no_cors_headers(
        self, client, shared, name
    ):
        got = client.anonymous().get(shared, name, headers={'Origin': STRANGE})
        assert 'access-control-allow-origin' not in got.headers

    def test_without_an_origin_has_no_cors_headers(self, client, shared, name):
        headers = client.anonymous().get(shared, name).headers
        assert [h for h in headers if h.startswith('access-control')] == []

    def test_for_a_missing_object_gets_cors_headers(self, client, shared):
        got = client.anonymous().get(
            shared, 'missing', headers={'Origin': ORIGIN}
        )
        assert got.status == 404
        assert got.headers['access-control-allow-origin'] == ORIGIN
