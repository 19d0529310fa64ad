# SPDX-License-Identifier: Apache-2.0
"""Who may do what with a sharded container, compared with doc/access.md.

Every request is sent to a plain and to a sharded container with the same ACLs.
Both answers must be equal, and so must denials: a client without rights learns
nothing about the layout.
"""

import configparser
import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Callable
from typing import NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError

from shardmw.core.placement import backing_container
from test.functional.alike import make_twins, masked
from test.functional.archives import archive_of
from test.functional.client import Answer, Client
from test.functional.conftest import (
    OTHER_OWNER,
    RESELLER_ADMIN,
    SHARD_COUNT_HEADER,
    STRANGER,
    USER,
    Pair,
)
from test.functional.costs import table
from test.functional.extra_proxy import running_proxy
from test.functional.realclients import keys_of, s3_client, s3_settings
from test.functional.test_hidden_account import form_of, with_status_of_bulk

BODY = b'0123456789'
KEY = 'a key'
EXPIRES = int(time.time()) + 3600

#: A user of another account, whom no ACL names.
OTHER_TENANT = 'test5:tester5'
READER = STRANGER
WRITER = OTHER_OWNER

#: Users by their column in the page.
WHO = {
    'anonymous': None,
    'another tenant': OTHER_TENANT,
    'reader': READER,
    'writer': WRITER,
    'owner': USER,
    'reseller admin': RESELLER_ADMIN,
}

#: A bulk request is answered 400 if all of its parts were denied.
DENIALS = (400, 401, 403)

METADATA = {'X-Container-Meta-Colour': 'blue'}
ACLS = {
    'X-Container-Read': READER,
    'X-Container-Write': WRITER,
    'X-Container-Meta-Temp-URL-Key': KEY,
    'X-Container-Meta-Web-Listings': 'true',
}


@pytest.fixture(scope='module')
def owner(login) -> Client:
    return login(USER)


@pytest.fixture(scope='module')
def twins(owner) -> Pair:
    """A plain and a sharded container with the same ACLs."""
    return prepared(owner, ACLS)


@pytest.fixture(scope='module')
def public(owner) -> Pair:
    """Containers that everybody may read and list."""
    return prepared(owner, {**ACLS, 'X-Container-Read': '.r:*,.rlistings'})


@pytest.fixture(scope='module')
def unlisted(owner) -> Pair:
    """Containers whose objects everybody may read, but not list."""
    return prepared(owner, {**ACLS, 'X-Container-Read': '.r:*'})


def prepared(owner: Client, headers: dict[str, str]) -> Pair:
    twins = make_twins(owner)
    for container in twins:
        assert owner.post(container, headers=headers).status == 204
        for name in ('a', 'b/c', 'o'):
            assert owner.put(container, name, BODY).status == 201
    return twins


def who_of(login, owner: Client, who: str) -> Client:
    user = WHO[who]
    return login(user).visiting(owner) if user else owner.anonymous()


def request(method: str, name: str | None = None, **kwargs) -> Callable:
    def ask(client: Client, container: str) -> Answer:
        return client.request(method, container, name, **kwargs)

    return ask


def copy_from(client: Client, container: str) -> Answer:
    """Copy into the same container, which the writer may not read."""
    return client.copy(container, 'o', f'{container}/copy')


def archive(client: Client, container: str) -> Answer:
    answer = client.put(
        container,
        body=archive_of({'unpacked': b'1'}),
        query='extract-archive=tar',
        headers={'Accept': 'application/json'},
    )
    return with_status_of_bulk(answer)


def bulk_delete(client: Client, container: str) -> Answer:
    headers = {'Accept': 'application/json', 'Content-Type': 'text/plain'}
    answer = client.post(
        query='bulk-delete',
        body=f'{container}/unpacked'.encode(),
        headers=headers,
    )
    answer = with_status_of_bulk(answer)
    if answer.status == 200 and answer.json()['Errors']:
        return answer._replace(status=403)
    return answer


def large_object(client: Client, container: str) -> Answer:
    """Put a manifest of segments, which must be readable.

    Its ETag depends on the container's name, so no listing may show it.
    """
    body = json.dumps([{'path': f'{container}/o'}]).encode()
    query = 'multipart-manifest=put'
    answer = client.put(container, 'large', body, query=query)
    client.delete(container, 'large')
    return answer


def link(client: Client, container: str) -> Answer:
    headers = {'X-Symlink-Target': f'{container}/o'}
    return client.put(container, 'link', headers=headers)


#: The requests of each row of the page.
REQUESTS = {
    'list, HEAD': [
        request('GET'),
        request('HEAD'),
        request('GET', headers={'X-Newest': 'true'}),
        request('GET', query='format=json&prefix=b&delimiter=/&limit=2'),
        request('GET', query='format=xml&reverse=on'),
        request('GET', query='format=json&versions=on'),
        request('GET', headers={'Origin': 'http://here.example.com'}),
        request('GET', '', headers={'X-Web-Mode': 'true'}),
    ],
    'GET, HEAD of objects': [
        request('GET', 'o'), request('HEAD', 'o'),
        request('GET', 'o', headers={'Range': 'bytes=0-1'}),
    ],
    'PUT, POST, DELETE of objects, archives, bulk delete': [
        request('PUT', 'new', body=b'1'),
        request('POST', 'new', headers={'X-Object-Meta-Colour': 'blue'}),
        request('DELETE', 'new'), link, archive, bulk_delete,
    ],
    'COPY and large objects in the container': [copy_from, large_object],
    'PUT, POST, DELETE of the container': [
        request('PUT', headers=METADATA), request('POST', headers=METADATA),
        # It is not empty, so clients who may delete it get 409.
        lambda client, container: meant(client.delete(container)),
    ],
    'HEAD, list the account': [
        lambda client, _container: client.head()._replace(headers={}),
        lambda client, _container: client.get(query='limit=1')._replace(
            headers={}, body=b''
        ),
    ],
}  # fmt: skip

#: Requests whose answers must be equal, whatever they are.
OTHERS = [
    request('GET', 'missing'),
    request('OPTIONS'),
    request('PATCH'),
    request('GET', 'a\0b'),
    request('PUT', '/', body=b''),
    request('COPY', 'missing', headers={'Destination': 'c/o'}),
]


def meant(answer: Answer) -> Answer:
    return answer._replace(status=204) if answer.status == 409 else answer


class TestPage:
    def test_has_every_request(self):
        rows = table('Who may do what')
        assert list(rows) == list(REQUESTS)

    @pytest.mark.parametrize('who', WHO)
    @pytest.mark.parametrize('row', REQUESTS)
    def test_says_who_may_do_what(self, login, owner, twins, who, row):
        """Check also that a sharded container answers like a plain one."""
        client = who_of(login, owner, who)
        may = table('Who may do what')[row][list(WHO).index(who)] == 'yes'
        for ask in REQUESTS[row]:
            plain, sharded = answers(client, twins, ask)
            assert sharded == plain
            assert plain.status < 400 if may else plain.status in DENIALS
        for container in twins:
            assert owner.get(container, 'o').body == BODY


def answers(client: Client, twins: Pair, ask: Callable) -> list[Answer]:
    return [masked(ask(client, each), each) for each in twins]


class TestAnybody:
    @pytest.mark.parametrize('who', WHO)
    def test_gets_the_same_answers(self, login, owner, twins, who):
        client = who_of(login, owner, who)
        for ask in OTHERS:
            plain, sharded = answers(client, twins, ask)
            assert sharded == plain

    @pytest.mark.parametrize('who', ['anonymous', 'another tenant', 'writer'])
    @pytest.mark.parametrize('containers', ['public', 'unlisted'])
    def test_reads_a_public_container_alike(
        self, request, login, owner, who, containers
    ):
        twins = request.getfixturevalue(containers)
        client = who_of(login, owner, who)
        for row in ('list, HEAD', 'GET, HEAD of objects'):
            for ask in REQUESTS[row]:
                plain, sharded = answers(client, twins, ask)
                assert sharded == plain


@pytest.mark.parametrize('who', ['anonymous', 'another tenant'])
class TestStranger:
    def test_cannot_tell_a_container_from_a_missing_one(
        self, login, owner, twins, who
    ):
        client = who_of(login, owner, who)
        missing = twins.plain[:-4] + 'none'
        asked = itertools.chain(*REQUESTS.values(), OTHERS)
        for ask in asked:
            plain, absent = answers(client, Pair(twins.plain, missing), ask)
            assert absent == plain

    def test_cannot_tell_the_shard_count(self, login, owner, twins, who):
        client = who_of(login, owner, who)
        for count, method in itertools.product(
            ('4', '5', '0', 'x'), ('GET', 'HEAD', 'PUT', 'POST', 'DELETE')
        ):
            headers = {SHARD_COUNT_HEADER: count}
            plain, sharded = answers(
                client, twins, request(method, headers=headers)
            )
            assert sharded == plain
            assert plain.status in (401, 403)

    def test_learns_nothing_from_unordered(self, login, owner, twins, who):
        client = who_of(login, owner, who)
        query = 'allow_unordered=true&delimiter=/&marker=o'
        plain, sharded = answers(client, twins, request('GET', query=query))
        assert sharded == plain


class TestAccountAcl:
    @pytest.fixture
    def grant(self, owner):
        """Return a function that gives another tenant an account role."""

        def give(role: str) -> None:
            acl = json.dumps({role: [OTHER_TENANT]})
            owner.post(headers={'X-Account-Access-Control': acl})

        yield give
        owner.post(headers={'X-Account-Access-Control': ''})

    @pytest.mark.parametrize('role', ['read-only', 'read-write', 'admin'])
    def test_gives_the_same_rights(self, login, owner, twins, grant, role):
        grant(role)
        client = who_of(login, owner, 'another tenant')
        for ask in itertools.chain(*REQUESTS.values()):
            plain, sharded = answers(client, twins, ask)
            assert sharded == plain


class TestBackingName:
    """The name of a shard, in the account of its container."""

    @pytest.mark.parametrize('who', WHO)
    def test_is_answered_like_a_missing_container(
        self, login, owner, twins, backing, who
    ):
        client = who_of(login, owner, who)
        rightly = backing.shard_name(twins.sharded, 0)
        wrongly = backing_container(twins.sharded, '0' * 13, 0)
        for ask in (
            request('GET'), request('HEAD'), request('GET', 'o'),
            request('PUT', 'o', body=b''), request('DELETE', 'o'),
            request('DELETE'), archive_denied, bulk_delete,
        ):  # fmt: skip
            there = masked(ask(client, rightly), rightly)
            absent = masked(ask(client, wrongly), wrongly)
            assert there == absent


def archive_denied(client: Client, container: str) -> Answer:
    """Extract an empty archive, which creates no container."""
    return client.put(container, body=b'', query='extract-archive=tar')


class Temp(NamedTuple):
    """A request with a temporary URL, and the path that the URL allows.

    :param signed: the signed path, below the container
    :param prefix: the URL's prefix, None if it is for one path
    """

    method: str
    name: str | None
    signed: str
    prefix: str | None = None


TEMPS = {
    'GET': Temp('GET', 'o', 'o'),
    'PUT': Temp('PUT', 'temp', 'temp'),
    'DELETE': Temp('DELETE', 'temp', 'temp'),
    'all of the container': Temp('GET', 'o', '', ''),
    'HEAD of the container': Temp('HEAD', None, '', ''),
    'HEAD of the container, slash': Temp('HEAD', '', '', ''),
    'list': Temp('GET', None, '', ''),
    'list, slash': Temp('GET', '', '', ''),
    'delete the container': Temp('DELETE', None, '', ''),
    'another prefix': Temp('GET', 'o', 'b/', 'b/'),
}


class TestHolderOf:
    @pytest.mark.parametrize('temp', TEMPS.values(), ids=TEMPS)
    def test_a_temporary_url_is_answered_alike(self, owner, twins, temp):
        def ask(client: Client, container: str) -> Answer:
            query = signed(client, container, temp)
            answer = client.request(
                temp.method, container, temp.name, query=query
            )
            # A web page's links contain the signature.
            signature = query['temp_url_sig'].encode()
            return answer._replace(body=answer.body.replace(signature, b''))

        plain, sharded = answers(owner.anonymous(), twins, ask)
        assert sharded == plain

    def test_a_temporary_url_of_one_container_cannot_reach_another(
        self, owner, twins
    ):
        """Check a container whose name begins with the first one's name."""
        anonymous = owner.anonymous()
        temp = Temp('GET', 'o', '', '')
        query = signed(anonymous, twins.sharded[:-1], temp)
        answer = anonymous.get(twins.sharded, 'o', query=query)
        assert answer.status == 401

    def test_a_form_is_answered_alike(self, owner, twins):
        def ask(client: Client, container: str) -> Answer:
            path = f'{client.path(container)}/formed-'
            body, content_type = form_of(path)
            headers = {'Content-Type': content_type}
            return client.raw('POST', path, body=body, headers=headers)

        plain, sharded = answers(owner.anonymous(), twins, ask)
        assert sharded == plain
        assert plain.status == 201


def signed(client: Client, container: str, temp: Temp, key: str = KEY) -> dict:
    """Return the query of a temporary URL."""
    path = f'{client.path(container)}/{temp.signed}'
    more = {}
    if temp.prefix is not None:
        path = f'prefix:{path}'
        more['temp_url_prefix'] = temp.prefix
    text = f'{temp.method}\n{EXPIRES}\n{path}'
    sig = hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
    return {'temp_url_sig': sig, 'temp_url_expires': EXPIRES, **more}


#: Buckets with names of equal length.
S3_PLAIN, S3_SHARDED = 'access-plains', 'access-shards'

#: S3 operations and their parameters.
S3_REQUESTS = [
    ('head_bucket', {}),
    ('list_objects_v2', {}),
    ('list_object_versions', {}),
    ('list_multipart_uploads', {}),
    ('get_bucket_acl', {}),
    ('get_bucket_policy', {}),
    ('get_bucket_versioning', {}),
    ('put_bucket_acl', {'ACL': 'public-read'}),
    ('get_object', {'Key': 'o'}),
    ('put_object', {'Key': 's3', 'Body': b'1'}),
    ('delete_objects', {'Delete': {'Objects': [{'Key': 's3'}]}}),
    ('create_bucket', {}),
    ('delete_bucket', {}),
]


def outcome(s3, operation: str, **params) -> tuple:
    """Return the status and the error of an answer, and the keys it lists."""
    try:
        answer = getattr(s3, operation)(**params)
    except ClientError as error:
        answer = error.response
    code = answer.get('Error', {}).get('Code')
    return answer['ResponseMetadata']['HTTPStatusCode'], code, keys_of(answer)


def assert_alike(s3, twins: Pair) -> None:
    for operation, params in S3_REQUESTS:
        plain, sharded = (
            outcome(s3, operation, Bucket=bucket, **params) for bucket in twins
        )
        assert sharded == plain, operation


#: The users who send S3 requests. s3api uses a user's own account, so users of
#: other accounts, even a reseller admin, cannot reach the owner's buckets.
S3_USERS = [USER, STRANGER, RESELLER_ADMIN]


class TestS3:
    @pytest.mark.parametrize('user', S3_USERS)
    def test_is_answered_alike(self, cluster, owner, user):
        assert_alike(s3_client(cluster, user), prepared(owner, ACLS))

    @pytest.mark.parametrize(
        ('acl', 'may_read', 'may_write'),
        [('Read', True, False), ('Write', False, True)],
    )
    def test_answers_a_user_of_the_account_alike(
        self, cluster, owner, acl, may_read, may_write
    ):
        twins = prepared(owner, {f'X-Container-{acl}': STRANGER})
        s3 = s3_client(cluster, STRANGER)
        assert_alike(s3, twins)
        for bucket in twins:
            read = outcome(s3, 'get_object', Bucket=bucket, Key='o')
            put = outcome(s3, 'put_object', Bucket=bucket, Key='o', Body=b'1')
            assert (read[0] == 200, put[0] == 200) == (may_read, may_write)

    def test_answers_a_wrong_key_alike(self, cluster, twins):
        settings = s3_settings(cluster)
        settings['aws_secret_access_key'] = 'wrong'
        assert_alike(boto3.client('s3', **settings), twins)


@pytest.fixture(scope='module')
def s3_acl_proxy(cluster):
    """The URL of a proxy with ``s3_acl``, S3's own ACLs."""

    def change(conf: configparser.RawConfigParser) -> None:
        conf['filter:s3api']['s3_acl'] = 'true'
        conf['filter:shardmw']['shard_rules'] = f'AUTH_test/{S3_SHARDED}=4'

    with running_proxy(cluster, 's3-acl-proxy', change) as url:
        yield url


@pytest.fixture(scope='module')
def buckets(cluster, s3_acl_proxy) -> Pair:
    """Buckets with the S3 ACL ``public-read``."""
    s3 = s3_client(cluster, url=s3_acl_proxy)
    for bucket in (S3_PLAIN, S3_SHARDED):
        s3.create_bucket(Bucket=bucket, ACL='public-read')
        s3.put_object(Bucket=bucket, Key='o', Body=BODY)
    return Pair(S3_PLAIN, S3_SHARDED)


class TestS3Acl:
    """S3's own ACLs, which s3api keeps in the root."""

    def test_sharded_bucket_is_sharded(self, owner, buckets):
        shown = owner.head(buckets.sharded).headers
        assert shown[SHARD_COUNT_HEADER.lower()] == '4'

    @pytest.mark.parametrize('user', S3_USERS)
    def test_is_answered_alike(self, cluster, s3_acl_proxy, buckets, user):
        assert_alike(s3_client(cluster, user, url=s3_acl_proxy), buckets)


#: Headers that only Swift's own processes may send. A server may treat
#: underscores in a header's name as dashes.
INTERNAL = {
    'X-Container-Sysmeta-Shardmw-Layout': '{"version": 2}',
    'X-Container-Sysmeta-Shardmw-Sync-To': '//saio/here/AUTH_x/c',
    'X-Backend-Allow-Private-Methods': 'true',
    'X-Backend-Storage-Policy-Index': '1',
    'X-Backend-Quoted-Container-Path': '.shards_shardmw_AUTH_test/c',
    'X-Backend-Record-Type': 'shard',
    'X-Backend-Timestamp': '9999999999.00000',
    'X-Backend-Inbound-X-Timestamp': '9999999999.00000',
    'X-Timestamp': '9999999999.00000',
}


@pytest.mark.parametrize('dash', '-_')
@pytest.mark.parametrize('who', ['owner', 'writer'])
def test_headers_that_look_internal_change_nothing(
    login, owner, twins, who, dash
):
    client = who_of(login, owner, who)
    headers = {
        name.replace('-', dash): value for name, value in INTERNAL.items()
    }
    for method, name in itertools.product(
        ('POST', 'PUT', 'GET', 'UPDATE', 'DELETE'), (None, 'internal')
    ):
        plain, sharded = answers(
            client, twins, request(method, name, headers=headers)
        )
        assert sharded == plain
    plain, sharded = (owner.listing(each).names() for each in twins)
    assert sharded == plain
    shown = owner.head(twins.sharded).headers
    assert shown[SHARD_COUNT_HEADER.lower()] == '4'


#: Container names that could be mistaken for something else.
NAMES = [
    '.shards_shardmw_AUTH_test', '.shards_shardmw_', '.', '..', 'a\nb', '\n',
    'a%2Fb', '?', 'x' * 256, 'é' * 128, 'c.660d75d8db00a.0', '\x7f',
]  # fmt: skip


@pytest.fixture(scope='module')
def account(new_account) -> Client:
    return new_account()


class TestOddName:
    @pytest.mark.parametrize('name', NAMES)
    def test_is_a_container_like_any_other(self, account, name):
        headers = {SHARD_COUNT_HEADER: '1'}
        assert account.put(name, headers=headers).status == 201
        assert account.put(name, 'a//b\n', b'1').status == 201
        assert account.listing(name).names() == ['a//b\n']
        assert account.listing().names() == [name]
        assert account.delete(name, 'a//b\n').status == 204
        assert account.delete(name).status == 204

    def test_in_an_archive_reaches_no_backing_container(
        self, owner, twins, backing
    ):
        files = {
            '../../.shards_shardmw_AUTH_test/c/o': b'1',
            '/v1/.shards_shardmw_AUTH_test/c/o': b'1',
            './o/./../x': b'1',
            'n' * 257 + '/o': b'1',
        }
        before = backing.shards(twins.sharded)
        states = []
        for container in twins:
            owner.put(
                container, body=archive_of(files), query='extract-archive=tar'
            )
            states.append(owner.listing(container).names())
        assert states[0] == states[1]
        assert backing.shards(twins.sharded) == before
