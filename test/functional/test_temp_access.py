# SPDX-License-Identifier: Apache-2.0
"""Access without an account's token: temporary URLs, forms, static web."""

import hashlib
import hmac
import re
import time
from urllib.parse import unquote, urljoin

import pytest

BODY = b'the body'
KEY = 'a key of the container'
BOUNDARY = 'xYzZy'


def signature(*lines, digest=hashlib.sha256) -> str:
    text = '\n'.join(str(line) for line in lines)
    return hmac.new(KEY.encode(), text.encode(), digest).hexdigest()


def in_an_hour() -> int:
    return int(time.time()) + 3600


def temp_query(method, path, expires=None, **more) -> dict:
    """Return the query of a temporary URL."""
    expires = in_an_hour() if expires is None else expires
    sig = signature(method, expires, path)
    return {'temp_url_sig': sig, 'temp_url_expires': expires, **more}


@pytest.fixture
def keyed(client, container):
    """A container with a key for temporary URLs, and the object ``a/ö``."""
    client.post(container, headers={'X-Container-Meta-Temp-URL-Key': KEY})
    client.put(container, 'a/ö', BODY)
    return container


@pytest.fixture
def key_of_the_account(client):
    client.post(headers={'X-Account-Meta-Temp-URL-Key': KEY})
    yield
    client.post(headers={'X-Remove-Account-Meta-Temp-URL-Key': 'yes'})


class TestTemporaryUrl:
    def test_lets_anybody_get(self, client, keyed):
        path = f'{client.account_path}/{keyed}/a/ö'
        query = temp_query('GET', path)
        got = client.anonymous().get(keyed, 'a/ö', query=query)
        assert (got.status, got.body) == (200, BODY)
        assert got.headers['content-disposition'] == (
            'attachment; filename="%C3%B6"; filename*=UTF-8\'\'%C3%B6'
        )

    def test_for_get_lets_anybody_head(self, client, keyed):
        path = f'{client.account_path}/{keyed}/a/ö'
        query = temp_query('GET', path)
        got = client.anonymous().head(keyed, 'a/ö', query=query)
        assert got.status == 200

    def test_for_get_lets_nobody_put(self, client, keyed):
        path = f'{client.account_path}/{keyed}/a/ö'
        query = temp_query('GET', path)
        answer = client.anonymous().put(keyed, 'a/ö', b'new', query=query)
        assert answer.status == 401
        assert client.get(keyed, 'a/ö').body == BODY

    def test_lets_anybody_put(self, client, keyed):
        query = temp_query('PUT', client.path(keyed, 'new'))
        answer = client.anonymous().put(keyed, 'new', b'new', query=query)
        assert answer.status == 201
        assert client.get(keyed, 'new').body == b'new'
        assert client.listing(keyed).names() == ['a/ö', 'new']

    def test_lets_anybody_delete(self, client, keyed):
        path = f'{client.account_path}/{keyed}/a/ö'
        query = temp_query('DELETE', path)
        answer = client.anonymous().delete(keyed, 'a/ö', query=query)
        assert answer.status == 204
        assert client.listing(keyed).json() == []

    def test_lets_anybody_post(self, client, keyed):
        path = f'{client.account_path}/{keyed}/a/ö'
        query = temp_query('POST', path)
        headers = {'X-Object-Meta-Public-Colour': 'blue'}
        answer = client.anonymous().post(
            keyed, 'a/ö', query=query, headers=headers
        )
        assert answer.status == 202

    def test_of_a_missing_object_is_404(self, client, keyed):
        query = temp_query('GET', client.path(keyed, 'missing'))
        answer = client.anonymous().get(keyed, 'missing', query=query)
        assert answer.status == 404

    def test_of_another_object_is_401(self, client, keyed):
        client.put(keyed, 'other', b'other')
        query = temp_query('GET', client.path(keyed, 'a'))
        answer = client.anonymous().get(keyed, 'other', query=query)
        assert answer.status == 401

    def test_that_expired_is_401(self, client, keyed):
        path = f'{client.account_path}/{keyed}/a/ö'
        query = temp_query('GET', path, int(time.time()) - 1)
        answer = client.anonymous().get(keyed, 'a/ö', query=query)
        assert answer.status == 401

    def test_with_the_key_of_another_container_is_401(
        self, client, keyed, sharded
    ):
        client.put(sharded, 'o', BODY)
        query = temp_query('GET', client.path(sharded, 'o'))
        answer = client.anonymous().get(sharded, 'o', query=query)
        assert answer.status == 401

    def test_for_a_prefix_reaches_only_its_objects(self, client, keyed):
        client.put(keyed, 'a/b', b'b')
        client.put(keyed, 'c', b'c')
        path = f'prefix:{client.account_path}/{keyed}/a/'
        query = temp_query('GET', path, temp_url_prefix='a/')
        anonymous = client.anonymous()
        assert anonymous.get(keyed, 'a/ö', query=query).body == BODY
        assert anonymous.get(keyed, 'a/b', query=query).body == b'b'
        assert anonymous.get(keyed, 'c', query=query).status == 401

    def test_can_name_the_file(self, client, keyed):
        path = f'{client.account_path}/{keyed}/a/ö'
        query = temp_query('GET', path, filename='name.txt')
        got = client.anonymous().get(keyed, 'a/ö', query=query)
        assert 'filename="name.txt"' in got.headers['content-disposition']
        query = temp_query('GET', path, inline='')
        got = client.anonymous().get(keyed, 'a/ö', query=query)
        assert got.headers['content-disposition'].startswith('inline')

    def test_may_use_a_key_of_the_account(
        self, client, container, key_of_the_account
    ):
        client.put(container, 'o', BODY)
        query = temp_query('GET', client.path(container, 'o'))
        got = client.anonymous().get(container, 'o', query=query)
        assert got.body == BODY

    def test_may_be_for_a_name_of_1024_bytes(self, client, keyed):
        name = 'n' * 1024
        query = temp_query('PUT', client.path(keyed, name))
        anonymous = client.anonymous()
        answer = anonymous.put(keyed, name, BODY, query=query)
        assert answer.status == 201
        query = temp_query('GET', client.path(keyed, name))
        assert anonymous.get(keyed, name, query=query).body == BODY

    def test_cannot_create_a_manifest(self, client, keyed):
        query = temp_query('PUT', client.path(keyed, 'new'))
        headers = {'X-Object-Manifest': f'{keyed}/a'}
        answer = client.anonymous().put(
            keyed, 'new', b'', query=query, headers=headers
        )
        assert answer.status == 400


def form(files, **fields) -> bytes:
    """Return the body that a browser sends for a form."""
    lines = []
    for name, value in fields.items():
        lines += [
            f'--{BOUNDARY}',
            f'Content-Disposition: form-data; name="{name}"',
            '',
            str(value),
        ]
    for i, (name, text) in enumerate(files.items()):
        lines += [
            f'--{BOUNDARY}',
            f'Content-Disposition: form-data; name="file{i}"; '
            f'filename="{name}"',
            'Content-Type: text/plain',
            '',
            text,
        ]
    lines += [f'--{BOUNDARY}--', '']
    return '\r\n'.join(lines).encode()


def post_form(client, container, prefix, files, *, most=10, size=1000):
    """Upload files by a form whose signature has some limits."""
    path = client.path(container, prefix)
    expires = in_an_hour()
    sig = signature(path, '', size, most, expires)
    body = form(
        files,
        redirect='',
        max_file_size=size,
        max_file_count=most,
        expires=expires,
        signature=sig,
    )
    content_type = f'multipart/form-data; boundary={BOUNDARY}'
    return client.anonymous().post(
        container, prefix, body=body, headers={'Content-Type': content_type}
    )


class TestForm:
    def test_uploads_its_files(self, client, keyed):
        files = {'one': 'first', 'two': 'second'}
        answer = post_form(client, keyed, 'up/', files)
        assert answer.status == 201
        assert client.get(keyed, 'up/one').body == b'first'
        assert client.get(keyed, 'up/two').body == b'second'
        headers = client.head(keyed, 'up/one').headers
        assert headers['content-type'] == 'text/plain'
        assert client.listing(keyed, prefix='up/').names() == [
            'up/one',
            'up/two',
        ]

    def test_uploads_into_the_container(self, client, keyed):
        answer = post_form(client, keyed, None, {'one': 'first'})
        assert answer.status == 201
        assert client.get(keyed, 'one').body == b'first'

    def test_with_too_large_a_file_is_400(self, client, keyed):
        answer = post_form(client, keyed, 'up/', {'one': 'x' * 20}, size=10)
        assert answer.status == 400
        assert answer.text == 'FormPost: max_file_size exceeded'
        assert client.get(keyed, 'up/one').status == 404

    def test_with_too_many_files_is_400(self, client, keyed):
        files = {'one': 'first', 'two': 'second'}
        answer = post_form(client, keyed, 'up/', files, most=1)
        assert answer.status == 400

    def test_without_a_key_is_401(self, client, container):
        answer = post_form(client, container, 'up/', {'one': 'first'})
        assert answer.status == 401
        assert client.listing(container).json() == []


class TestStaticWeb:
    @pytest.fixture
    def web(self, client, container):
        """A container that everybody may read, with some pages."""
        headers = {'X-Container-Read': '.r:*,.rlistings'}
        client.post(container, headers=headers)
        client.put(container, 'index.html', b'<p>index</p>')
        client.put(container, 'sub/index.html', b'<p>sub</p>')
        client.put(container, 'sub/page.html', b'<p>page</p>')
        client.put(container, 'files/one.txt', b'one')
        client.put(container, 'files/two.txt', b'two, longer')
        client.put(container, 'files/more/three.txt', b'three')
        return container

    def visit(self, client, container, path):
        url = f'{client.path(container)}{path}'
        return client.anonymous().raw('GET', url)

    def links(self, page, path) -> dict[str, str]:
        """Return the targets of a page's links, by their texts.

        :param path: the page's own path
        """
        found = re.findall(r'<a href="([^"]*)">([^<]*)</a>', page)
        return {text: unquote(urljoin(path, href)) for href, text in found}

    def set_web(self, client, container, **settings):
        headers = {
            f'X-Container-Meta-Web-{name.replace("_", "-")}': value
            for name, value in settings.items()
        }
        assert client.post(container, headers=headers).status == 204

    def test_shows_the_index_page(self, client, web):
        self.set_web(client, web, Index='index.html')
        got = self.visit(client, web, '/')
        assert (got.status, got.body) == (200, b'<p>index</p>')
        assert got.headers['content-type'] == 'text/html'
        assert self.visit(client, web, '/sub/').body == b'<p>sub</p>'

    def test_redirects_a_directory_to_its_path_with_a_slash(self, client, web):
        self.set_web(client, web, Index='index.html')
        got = self.visit(client, web, '')
        assert got.status == 301
        assert got.headers['location'].endswith(f'/{web}/')
        got = self.visit(client, web, '/sub')
        assert got.status == 301
        assert got.headers['location'].endswith(f'/{web}/sub/')

    def test_shows_a_page(self, client, web):
        self.set_web(client, web, Index='index.html')
        got = self.visit(client, web, '/sub/page.html')
        assert got.body == b'<p>page</p>'

    def test_shows_a_listing(self, client, web):
        self.set_web(client, web, Listings='true')
        got = self.visit(client, web, '/files/')
        assert got.status == 200
        assert got.headers['content-type'].startswith('text/html')
        assert f'Listing of {client.path(web)}/files/' in got.text
        assert self.links(got.text, '/files/') == {
            '../': '/',
            'more/': '/files/more/',
            'one.txt': '/files/one.txt',
            'two.txt': '/files/two.txt',
        }

    def test_shows_a_listing_of_the_top(self, client, web):
        self.set_web(client, web, Listings='true')
        got = self.visit(client, web, '/')
        assert got.status == 200
        assert self.links(got.text, '/') == {
            'files/': '/files/',
            'index.html': '/index.html',
            'sub/': '/sub/',
        }

    def test_shows_a_listing_with_a_style_sheet(self, client, web):
        settings = {'Listings': 'true', 'Listings_CSS': 'list.css'}
        self.set_web(client, web, **settings)
        got = self.visit(client, web, '/files/')
        assert 'href="../list.css"' in got.text

    def test_without_listings_is_404(self, client, web):
        self.set_web(client, web, Index='none.html')
        assert self.visit(client, web, '/files/').status == 404

    def test_shows_the_error_page(self, client, web):
        client.put(web, '404error.html', b'<p>not here</p>')
        settings = {'Index': 'index.html', 'Error': 'error.html'}
        self.set_web(client, web, **settings)
        got = self.visit(client, web, '/missing')
        assert (got.status, got.body) == (404, b'<p>not here</p>')

    def test_directory_type_marks_directories(self, client, web):
        client.put(web, 'marked', headers={'Content-Type': 'text/dir'})
        client.put(web, 'marked/index.html', b'<p>marked</p>')
        settings = {'Index': 'index.html', 'Directory_Type': 'text/dir'}
        self.set_web(client, web, **settings)
        assert self.visit(client, web, '/marked').status == 301
        assert self.visit(client, web, '/marked/').body == b'<p>marked</p>'

    def test_owner_sees_the_api_unless_it_asks_for_the_web(self, client, web):
        settings = {'Index': 'index.html', 'Listings': 'true'}
        self.set_web(client, web, **settings)
        assert 'index.html' in client.listing(web).names()
        headers = {'X-Web-Mode': 'true'}
        path = f'{client.path(web)}/'
        got = client.raw('GET', path, headers=headers)
        assert got.body == b'<p>index</p>'
