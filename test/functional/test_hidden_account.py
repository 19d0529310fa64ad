# SPDX-License-Identifier: Apache-2.0
"""A client can neither use the hidden account nor learn that it exists.

Every request is sent twice: for the hidden account of an account that has
sharded containers, and for that of an account that does not exist. Both
answers must be the same, and nothing in the hidden account may change.

Where a request could be wrong in itself, it is also sent for an ordinary
account, where it must succeed.
"""

import configparser
import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, unquote

import pytest
from botocore.exceptions import ClientError
from shardmw_saio import Cluster, ClusterOptions

from shardmw.core.placement import hidden_account, shard_of
from test.functional.alike import masked
from test.functional.archives import archive_of
from test.functional.backing import Backing
from test.functional.client import Answer, Client
from test.functional.conftest import (
    OTHER_OWNER,
    RESELLER_ADMIN,
    SHARDS,
    STRANGER,
    USER,
    make_plain,
    make_sharded,
)
from test.functional.extra_proxy import running_proxy
from test.functional.realclients import s3_client
from test.functional.unfiltered import owner_factory, running_unfiltered_proxy

BODY = b'0123456789'
KEY = 'a key'
NO_PREFIX = {'tempauth.reseller_prefix': "''"}


class Place(NamedTuple):
    """One object, as a client would name it.

    :param account: the account, unquoted
    """

    account: str
    container: str
    name: str

    @property
    def path(self) -> str:
        """Return the quoted path."""
        return quote(f'/v1/{self.account}/{self.container}/{self.name}')


class Scene:
    """A cluster with a sharded container, seen by clients of all kinds.

    :param unfiltered_url: the URL of a proxy without shardmw
    :param url: the URL of the proxy that clients use, if not the first one
    :ivar hidden: an object in its backing container
    :ivar absent: the same in a hidden account that does not exist
    :ivar open: an object in an ordinary container that everybody may use,
                where the requests for `hidden` must succeed
    """

    def __init__(
        self, cluster: Cluster, unfiltered_url: str, url: str | None = None
    ) -> None:
        self.cluster = cluster
        self.url = url or cluster.proxy_urls[0]
        self.owner = self._login(USER)
        self.clients = {
            'owner': self.owner,
            'stranger': self._login(STRANGER),
            'other owner': self._login(OTHER_OWNER),
            'reseller admin': self._login(RESELLER_ADMIN),
            'nobody': self.owner.anonymous(),
        }
        self.sharded = make_sharded(self.owner)
        self.owner.put(self.sharded, 'o', BODY)
        self.backing = Backing(self.owner.on(unfiltered_url))
        shard = shard_of('o', SHARDS)
        backing = self.backing.shard_name(self.sharded, shard)
        account = self.owner.account
        self.hidden = Place(hidden_account(account), backing, 'o')
        # The names have equal lengths, and so must the answers.
        absent = hidden_account(account[:-4] + 'none')
        self.absent = Place(absent, backing, 'o')
        self.open = Place(account, self._open_container(), 'o')
        self.before = self.state()

    def _login(self, user: str) -> Client:
        key = self.cluster.users[user]
        return Client.login(self.cluster.auth_url, user, key).on(self.url)

    def _open_container(self) -> str:
        container = make_plain(
            self.owner,
            X_Container_Read='.r:*,.rlistings,*:*',
            X_Container_Write='*:*',
            X_Container_Meta_Temp_URL_Key=KEY,
            X_Container_Meta_Web_Listings='true',
        )
        assert self.owner.put(container, 'o', BODY).status == 201
        return container

    def state(self) -> list:
        """Return all that the hidden account holds."""
        backing = self.backing.shards(self.sharded)
        rows = [
            self.backing.hidden.get(name, query={'format': 'json'}).body
            for name in backing
        ]
        return [*backing, *rows, self.owner.get(self.sharded, 'o').body]

    def answers(self, attempt: Callable[['Scene', Place], Answer]):
        """Return the answers for both hidden accounts, to be compared."""
        return [
            masked(attempt(self, place), place.account)
            for place in (self.hidden, self.absent)
        ]


@pytest.fixture(scope='module')
def prefixed(cluster, unfiltered_proxy) -> Scene:
    """A cluster whose accounts have a prefix."""
    return Scene(cluster, unfiltered_proxy)


@pytest.fixture(scope='module')
def unprefixed(tmp_path_factory) -> Scene:
    """A cluster whose accounts have no prefix."""
    options = ClusterOptions(settings=NO_PREFIX)
    folder = tmp_path_factory.mktemp('no-prefix')
    with (
        Cluster(folder, options) as cluster,
        running_unfiltered_proxy(cluster) as url,
    ):
        yield Scene(cluster, url)


@pytest.fixture(scope='module')
def permissive(cluster, unfiltered_proxy) -> Scene:
    """A cluster whose auth filter lets every client do everything.

    Auth filters other than tempauth may do so for reseller admins. Here only
    shardmw protects the hidden account.
    """

    def change(conf: configparser.RawConfigParser) -> None:
        factory = f'{owner_factory.__module__}:{owner_factory.__name__}'
        conf['filter:tempauth'] = {'paste.filter_factory': factory}
        # shardmw-listings refuses pipelines with filters it does not know.
        pipeline = conf['pipeline:main']['pipeline'].split()
        pipeline.remove('shardmw-listings')
        conf['pipeline:main']['pipeline'] = ' '.join(pipeline)

    with running_proxy(cluster, 'permissive-proxy', change) as url:
        yield Scene(cluster, unfiltered_proxy, url)


@pytest.fixture(params=['prefixed', 'unprefixed', 'permissive'])
def scene(request) -> Scene:
    """Each cluster; the content of the hidden account must not change."""
    scene = request.getfixturevalue(request.param)
    yield scene
    assert scene.state() == scene.before


METHODS = ('GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'COPY', 'OPTIONS', 'UPDATE')
CONTAINER = '/v1/{0.account}/{0.container}'
PARTS = (
    '/v1/{0.account}',
    CONTAINER,
    '/v1/{0.account}/new',
    f'{CONTAINER}/{{0.name}}',
    f'{CONTAINER}/new',
)
WHO = ('owner', 'stranger', 'other owner', 'reseller admin', 'nobody')

#: Headers that Swift's own daemons and proxies send to storage servers, and
#: headers that operators may send.
HEADERS = {
    'X-Backend-Allow-Reserved-Names': 'true',
    'X-Allow-Reserved-Names': 'true',
    'X-Backend-Allow-Private-Methods': 'true',
    'X-Backend-Record-Type': 'shard',
    'X-Backend-Auto-Create': 'true',
    'X-Backend-Storage-Policy-Index': '0',
    'X-Newest': 'true',
    'Destination': 'c/o',
    'Origin': 'http://here.example.com',
    'Access-Control-Request-Method': 'GET',
}


class TestPlainRequests:
    @pytest.mark.parametrize('who', WHO)
    def test_are_refused_alike(self, scene, who):
        self.assert_refused_alike(scene, who, {})

    @pytest.mark.parametrize('who', ['owner', 'reseller admin'])
    def test_with_internal_headers_are_refused_alike(self, scene, who):
        self.assert_refused_alike(scene, who, HEADERS)

    def assert_refused_alike(self, scene, who, headers):
        client = scene.clients[who]
        for method, part in itertools.product(METHODS, PARTS):
            hidden, absent = scene.answers(
                lambda _scene, place, method=method, part=part: client.raw(
                    method, part.format(place), headers=headers
                )
            )
            assert hidden == absent, (method, part)
            assert hidden.status >= 400, (method, part)

    @pytest.mark.parametrize(
        'form',
        [
            '/v1/{0.account}/', '/v1/{0.account}/{0.container}/',
            '/v1.0/{0.account}/{0.container}', '/v2/{0.account}/c',
            '/V1/{0.account}', '//v1/{0.account}/{0.container}/o',
            '/v1//{0.account}/{0.container}', '/v1/{0.account}//o',
            '/v1/./{0.account}/{0.container}', '/./v1/{0.account}',
            '/v1/AUTH_test/../{0.account}/{0.container}/o',
            '/v1/test/../{0.account}/{0.container}/o',
            '/v1/AUTH_test/..%2F{0.account}%2F{0.container}/o',
            '/v1/{0.account}/../AUTH_test', '/v1/{0.account}/.',
            '/v1/{0.account}%00', '/v1/%00{0.account}/{0.container}',
            '/v1/{0.account}/%00{0.container}', '/v1/{0.account}/c%00/o%00',
            '/v1/{0.account}%2F{0.container}', '/v1/{0.account}%20/c',
            '/v1/{0.account};x/c', '/v1/{0.account}?x', '/v1/{0.account}%3Fx',
            '/v1/{0.account}%FF/c', '/v1/%FF{0.account}/c',
            '/v1/%EF%BC%8E{0.account}/c', '/v1/%C0%AE{0.account}/c',
            '/v1/.{0.account}/{0.container}', '/v1/%20{0.account}',
            '/v1/{0.account}/{0.container}?format=xml&prefix=%00',
            '/v1/{0.account}/{0.container}?multipart-manifest=get',
            '/v1/{0.account}/{0.container}/o?symlink=get&version-id=null',
            '/v1/{0.account}?versions&delimiter=.', 'v1/{0.account}',
        ],
    )  # fmt: skip
    def test_of_other_forms_are_answered_alike(self, permissive, form):
        for who, method in itertools.product(
            ('owner', 'reseller admin'), ('GET', 'PUT', 'DELETE')
        ):
            client = permissive.clients[who]
            hidden, absent = permissive.answers(
                lambda _scene, place, client=client, method=method: client.raw(
                    method, form.format(place)
                )
            )
            assert hidden == absent, (who, method)
        assert permissive.state() == permissive.before

    @pytest.mark.parametrize(
        'characters', ['.', '_', '.sh', '.shards_shardmw_', 'mw']
    )
    def test_with_a_quoted_name_are_refused(self, scene, characters):
        quoted = ''.join(f'%{ord(each):02x}' for each in characters)
        account = scene.hidden.account.replace(characters, quoted)
        assert unquote(account) == scene.hidden.account != account
        for who in WHO:
            path = f'/v1/{account}/{scene.hidden.container}/o'
            assert scene.clients[who].raw('GET', path).status >= 400
            assert scene.clients[who].raw('DELETE', path).status >= 400

    def test_of_strangers_do_not_reveal_who_has_sharded_containers(
        self, scene
    ):
        """An account without sharded containers has no hidden account."""
        other = scene.clients['other owner']
        hidden, own = (
            masked(other.raw('GET', f'/v1/{account}'), account)
            for account in (
                scene.hidden.account,
                hidden_account(other.account),
            )
        )
        assert hidden.status == own.status
        assert hidden.body == own.body


def signed(method: str, path: str) -> str:
    """Return the query of a temporary URL, signed with the key of `open`."""
    expires = int(time.time()) + 3600
    text = f'{method}\n{expires}\n{path}'
    sig = hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()
    return f'?temp_url_sig={sig}&temp_url_expires={expires}'


def form_of(path: str, key: str = KEY) -> tuple[bytes, str]:
    """Return a form that uploads a file to a path, and its type."""
    expires = str(int(time.time()) + 3600)
    text = f'{path}\n\n1000\n1\n{expires}'
    fields = {
        'redirect': '',
        'max_file_size': '1000',
        'max_file_count': '1',
        'expires': expires,
        'signature': hmac.new(
            key.encode(), text.encode(), hashlib.sha256
        ).hexdigest(),
    }
    parts = [
        f'--bound\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        f'{value}\r\n'
        for name, value in fields.items()
    ]
    parts.append(
        '--bound\r\nContent-Disposition: form-data; name="file1"; '
        'filename="formed"\r\nContent-Type: text/plain\r\n\r\nformed\r\n'
        '--bound--\r\n'
    )
    return ''.join(parts).encode(), 'multipart/form-data; boundary=bound'


def copy_from(scene: Scene, client: Client, place: Place) -> Answer:
    headers = {
        'X-Copy-From': f'{place.container}/{place.name}',
        'X-Copy-From-Account': place.account,
    }
    return client.put(scene.open.container, 'copied', headers=headers)


def copy_from_quoted(scene: Scene, client: Client, place: Place) -> Answer:
    headers = {
        'X-Copy-From': quote(f'/{place.container}/{place.name}'),
        'X-Copy-From-Account': place.account.replace('.', '%2E'),
    }
    return client.put(scene.open.container, 'copied', headers=headers)


def copy_to(scene: Scene, client: Client, place: Place) -> Answer:
    headers = {'Destination-Account': place.account}
    return client.copy(
        scene.open.container, 'o', f'{place.container}/copied', headers=headers
    )


def dynamic_link(scene: Scene, client: Client, place: Place) -> Answer:
    headers = {
        'X-Symlink-Target': f'{place.container}/{place.name}',
        'X-Symlink-Target-Account': place.account,
    }
    client.put(scene.open.container, 'link', headers=headers)
    return client.get(scene.open.container, 'link')


def static_link(scene: Scene, client: Client, place: Place) -> Answer:
    headers = {
        'X-Symlink-Target': f'{place.container}/{place.name}',
        'X-Symlink-Target-Account': place.account,
        'X-Symlink-Target-Etag': hashlib.md5(BODY).hexdigest(),
    }
    return client.put(scene.open.container, 'static', headers=headers)


def write_through_link(scene: Scene, client: Client, place: Place) -> Answer:
    dynamic_link(scene, client, place)
    headers = {'X-Object-Meta-Colour': 'red'}
    answer = client.post(scene.open.container, 'link', headers=headers)
    # Swift redirects to the target, where the client is refused.
    location = answer.headers.get('location', '')
    _, _, path = location.partition(client.host)
    return client.raw('POST', path or '/', headers=headers)


def large_object_of_link(scene: Scene, client: Client, place: Place) -> Answer:
    dynamic_link(scene, client, place)
    manifest = [{'path': f'/{scene.open.container}/link'}]
    query = {'multipart-manifest': 'put'}
    body = json.dumps(manifest).encode()
    return client.put(scene.open.container, 'large', body, query=query)


def dynamic_large_object(scene: Scene, client: Client, place: Place) -> Answer:
    """Read an object with segments there.

    Segments are always of the same account, so this cannot succeed for `open`.
    """
    for dots in ('..', '/..', '../..', '%2E%2E', '..%2F..', ''):
        container = f'{dots}/{place.account}/{place.container}'
        headers = {'X-Object-Manifest': f'{container}/'}
        client.put(scene.open.container, 'dynamic', headers=headers)
    return client.get(scene.open.container, 'dynamic')


def static_large_object(scene: Scene, client: Client, place: Place) -> Answer:
    """Put a manifest with segments there."""
    path = f'/{place.account}/{place.container}/{place.name}'
    dots = ('', '/..', '/../..', '/%2E%2E', '/.', f'/{scene.open.container}')
    manifest = [{'path': before + path} for before in dots]
    query = {'multipart-manifest': 'put'}
    body = json.dumps(manifest).encode()
    answer = client.put(scene.open.container, 'large', body, query=query)
    # Segments are looked up in parallel, so their errors are in any order.
    lines = sorted(answer.body.splitlines())
    return answer._replace(body=b'\n'.join(lines))


def quoted_link(scene: Scene, client: Client, place: Place) -> Answer:
    headers = {
        'X-Symlink-Target': f'{place.container}/{place.name}',
        'X-Symlink-Target-Account': place.account.replace('.', '%2E'),
    }
    client.put(scene.open.container, 'quoted', headers=headers)
    return client.get(scene.open.container, 'quoted')


def host_name(scene: Scene, client: Client, place: Place) -> Answer:
    """Send requests to hosts whose names domain_remap turns into paths."""
    told = [
        client.raw('GET', path, headers={'Host': f'{host}.example.com'})
        for host, path in (
            (f'c.{place.account}', '/o'),
            (place.account, f'/{place.container}/o'),
            (place.account.lstrip('.'), f'/{place.container}/o'),
            ('AUTH-test', f'/../{place.account}/{place.container}/o'),
        )
    ]
    assert all(answer.status >= 400 for answer in told)
    return told[-1]


def bulk_upload(scene: Scene, client: Client, place: Place) -> Answer:
    archive = archive_of({'unpacked': b'new'})
    path = f'/v1/{place.account}/{place.container}?extract-archive=tar'
    headers = {'Accept': 'application/json'}
    answer = client.raw('PUT', path, body=archive, headers=headers)
    return with_status_of_bulk(answer)


def bulk_delete(scene: Scene, client: Client, place: Place) -> Answer:
    path = f'/v1/{place.account}?bulk-delete'
    body = f'{place.container}/unpacked\n{place.container}'.encode()
    headers = {'Accept': 'application/json', 'Content-Type': 'text/plain'}
    answer = client.raw('POST', path, body=body, headers=headers)
    return with_status_of_bulk(answer)


def with_status_of_bulk(answer: Answer) -> Answer:
    """Return a bulk answer with the status that is in its body."""
    if answer.status != 200:
        return answer
    status = int(answer.json()['Response Status'].partition(' ')[0])
    return answer._replace(status=status)


def temporary_url(method: str) -> Callable:
    def temporary(scene: Scene, client: Client, place: Place) -> Answer:
        path = place.path + '-temp' * (method != 'GET')
        body = b'temp' if method == 'PUT' else None
        return client.anonymous().raw(
            method, path + signed(method, path), body=body
        )

    return temporary


def form(scene: Scene, client: Client, place: Place) -> Answer:
    path = f'/v1/{place.account}/{place.container}/formed-'
    body, content_type = form_of(path)
    headers = {'Content-Type': content_type}
    return client.anonymous().raw('POST', path, body=body, headers=headers)


def web_listing(scene: Scene, client: Client, place: Place) -> Answer:
    path = f'/v1/{place.account}/{place.container}/'
    return client.raw('GET', path, headers={'X-Web-Mode': 'true'})


def anonymous_web(scene: Scene, client: Client, place: Place) -> Answer:
    path = f'/v1/{place.account}/{place.container}/'
    return client.anonymous().raw('GET', path)


ATTEMPTS = {
    'copy from': copy_from,
    'copy from, quoted': copy_from_quoted,
    'copy to': copy_to,
    'dynamic link': dynamic_link,
    'static link': static_link,
    'large object of a link': large_object_of_link,
    'bulk upload': bulk_upload,
    'temporary GET': temporary_url('GET'),
    'temporary PUT': temporary_url('PUT'),
    'temporary DELETE': temporary_url('DELETE'),
    'form': form,
    'web listing': web_listing,
    'anonymous web': anonymous_web,
}


class TestOtherFilters:
    @pytest.mark.parametrize('attempt', ATTEMPTS.values(), ids=ATTEMPTS)
    @pytest.mark.parametrize('who', ['owner', 'reseller admin'])
    def test_cannot_reach_it(self, scene, who, attempt):
        client = Client(scene.owner.storage_url, scene.clients[who].token)
        assert attempt(scene, client, scene.open).status < 400
        hidden, absent = scene.answers(
            lambda scene, place: attempt(scene, client, place)
        )
        assert hidden == absent
        assert hidden.status >= 400

    @pytest.mark.parametrize(
        'attempt',
        [bulk_delete, dynamic_large_object, host_name, quoted_link,
         static_large_object, write_through_link],
    )  # fmt: skip
    def test_cannot_reach_it_even_if_they_report_success(self, scene, attempt):
        for who in ('owner', 'reseller admin'):
            client = Client(scene.owner.storage_url, scene.clients[who].token)
            hidden, absent = scene.answers(
                lambda scene, place, client=client: attempt(
                    scene, client, place
                )
            )
            assert hidden == absent

    @pytest.mark.parametrize(
        'header', ['X-Versions-Location', 'X-History-Location']
    )
    @pytest.mark.parametrize(
        'form',
        ['../{0.account}/{0.container}', '{0.container}',
         '..%2F{0.account}%2F{0.container}'],
    )  # fmt: skip
    def test_old_versions_cannot_go_there(self, scene, header, form):
        def keep_versions(scene: Scene, place: Place) -> Answer:
            container = make_plain(scene.owner)
            headers = {header: form.format(place)}
            scene.owner.post(container, headers=headers)
            scene.owner.put(container, 'versioned', b'1')
            answer = scene.owner.put(container, 'versioned', b'2')
            scene.owner.delete(container, 'versioned')
            return answer

        hidden, absent = scene.answers(keep_versions)
        assert hidden.status == absent.status

    def test_versioning_cannot_be_enabled_there(self, scene):
        headers = {'X-Versions-Enabled': 'true'}
        for who in ('owner', 'reseller admin'):
            client = scene.clients[who]
            hidden, absent = scene.answers(
                lambda _scene, place, client=client: client.raw(
                    'POST', CONTAINER.format(place), headers=headers
                )
            )
            assert hidden == absent
            assert hidden.status >= 400

    def test_headers_of_uploads_do_not_send_rows_there(self, scene):
        path = f'{scene.hidden.account}/{scene.hidden.container}'
        names = (
            'X-Backend-Quoted-Container-Path',
            'X-Backend-Container-Path',
            'X-Backend-Shard-Container',
            'X-Container-Sysmeta-Shard-Quoted-Root',
        )
        headers = dict.fromkeys(names, path)
        for who in ('owner', 'reseller admin'):
            client = Client(scene.owner.storage_url, scene.clients[who].token)
            container = make_plain(client)
            assert client.put(container, 'p', headers=headers).status == 201
            assert client.listing(container).names() == ['p']
            assert client.delete(container, 'p').status == 204


class TestS3:
    @pytest.fixture
    def s3(self, prefixed):
        return s3_client(prefixed.cluster)

    @pytest.mark.parametrize(
        'bucket', ['{0.account}', '..', '{0.account}%2F{0.container}', '.']
    )
    def test_bucket_cannot_name_it(self, prefixed, s3, bucket):
        name = bucket.format(prefixed.hidden)
        with pytest.raises(Exception, match='bucket|Bucket|Access'):
            s3.list_objects_v2(Bucket=name)
        assert prefixed.state() == prefixed.before

    @pytest.mark.parametrize('dots', ['..', '../..', '.', ''])
    def test_source_of_a_copy_cannot_name_it(self, prefixed, s3, dots):
        codes = []
        for place in (prefixed.hidden, prefixed.absent):
            with pytest.raises(ClientError) as raised:
                s3.copy_object(
                    Bucket=prefixed.open.container,
                    Key='copied',
                    CopySource=f'{dots}{place.path[3:]}',
                )
            codes.append(raised.value.response['Error']['Code'])
        assert codes[0] == codes[1]
        assert prefixed.state() == prefixed.before


class TestSharded:
    """Answers to requests for a sharded container name no shard."""

    @pytest.mark.parametrize('who', ['owner', 'reseller admin'])
    def test_answers_name_no_backing_container(self, scene, who):
        client = Client(scene.owner.storage_url, scene.clients[who].token)
        answers = [
            client.put(scene.sharded),
            client.head(scene.sharded),
            client.listing(scene.sharded),
            client.get(scene.sharded, 'o'),
            client.put(scene.sharded, 'told', b'x'),
            client.post(scene.sharded, 'told'),
            client.delete(scene.sharded, 'told'),
            client.delete(scene.sharded),
            client.head(),
            client.listing(),
        ]
        for answer in answers:
            told = str(answer.headers) + answer.body.decode()
            assert 'shardmw' not in told.lower()
            assert scene.hidden.container not in told
