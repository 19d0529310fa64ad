# SPDX-License-Identifier: Apache-2.0
"""What one request costs, compared with doc/access.md.

The page's formulas are compared with the logs of storage servers. These have
no filter, so each shard takes a request. The cluster has one replica; for
another number of them::

    SHARDMW_COSTS_REPLICAS=3 pytest test/functional/test_costs.py
"""

import functools
import itertools
import os
import time
from copy import copy as copy_of

import pytest
from botocore.exceptions import ClientError
from shardmw_saio import Cluster, ClusterOptions

from shardmw.proxy.listing.max_age import REQUEST_HEADER
from test.functional.archives import archive_of
from test.functional.conftest import (
    OTHER_OWNER,
    SHARD_COUNT_HEADER,
    STRANGER,
    USER,
    logins,
    make_plain,
    make_sharded,
    unique,
)
from test.functional.costs import ATTEMPTS, StorageRequests, cost, table
from test.functional.memcached import flush
from test.functional.realclients import s3_client
from test.functional.test_access import Temp, signed
from test.functional.test_hidden_account import KEY, form_of

REPLICAS = int(os.environ.get('SHARDMW_COSTS_REPLICAS', '1'))
WITHOUT_FILTER = {'shardmw-container.use': 'egg:swift#healthcheck'}

#: A user whom no ACL names. For S3, it must be a user of the same account.
NOBODY = STRANGER
GRANTED = OTHER_OWNER

#: The shard counts of the containers, 0 for the plain one.
COUNTS = (0, 4, 8)

FILES = {'unpacked/1': b'1', 'unpacked/2': b'2', 'unpacked/3': b'3'}
NEWEST = {'X-Newest': 'true'}


class Scene:
    """Containers of several shard counts, and their clients.

    :ivar nobody: a client without rights
    :ivar granted: a client that may read and write by ACLs
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.requests = StorageRequests(cluster)
        self.replicas = cluster.options.replicas
        self.log_in()
        self.containers = {count: self._make(count) for count in COUNTS}
        self.versioned = {
            count: self._make(count, X_Versions_Enabled='true')
            for count in COUNTS
        }
        #: Containers whose listings may be old.
        self.old = {
            count: self._make(count, X_Container_Listing_Max_Age='3600')
            for count in COUNTS
        }
        #: S3 clients by user.
        self.s3 = {user: s3_client(cluster, user) for user in (USER, NOBODY)}
        make_plain(self.owners[0])

    def log_in(self) -> None:
        """Get tokens."""
        login = logins(self.cluster)
        self.owner = login(USER)
        self.granted = login(GRANTED).visiting(self.owner)
        self.nobody = login(NOBODY).visiting(self.owner)
        #: Accounts without and with sharded containers.
        self.owners = {0: login(GRANTED), 4: self.owner, 8: self.owner}

    def with_new(self, count: int) -> 'Scene':
        """Return a copy of the scene with a new container."""
        scene = copy_of(self)
        scene.containers = {count: self._make(count)}
        return scene

    def _make(self, count: int, **headers: str) -> str:
        headers['X_Container_Read'] = GRANTED
        headers['X_Container_Write'] = GRANTED
        headers['X_Container_Meta_Web_Listings'] = 'true'
        headers['X_Container_Meta_Temp_URL_Key'] = KEY
        if count == 0:
            container = make_plain(self.owner, **headers)
        else:
            container = make_sharded(self.owner, count, **headers)
        assert self.owner.put(container, 'o', b'0123456789').status == 201
        return container


@pytest.fixture(scope='module')
def scene(tmp_path_factory) -> Scene:
    options = ClusterOptions(replicas=REPLICAS, settings=WITHOUT_FILTER)
    with Cluster(tmp_path_factory.mktemp('costs'), options) as cluster:
        scene = Scene(cluster)
        time.sleep(1)
        yield scene


def by(who: str, method: str, name: str | None = None, **kwargs):
    """Return a function that sends a request to a container or an object.

    :param who: the attribute of the scene that is the client
    """

    def ask(scene: Scene, count: int) -> str:
        client = getattr(scene, who)
        return transaction(
            client.request(method, scene.containers[count], name, **kwargs)
        )

    return ask


def transaction(answer) -> str:
    return answer.headers['x-trans-id']


def bulk_delete(who: str):
    def ask(scene: Scene, count: int) -> str:
        client = getattr(scene, who)
        names = [f'{scene.containers[count]}/{name}' for name in FILES]
        return transaction(
            client.post(
                query='bulk-delete',
                body='\n'.join(names).encode(),
                headers={'Content-Type': 'text/plain'},
            )
        )

    return ask


def copy(who: str):
    def ask(scene: Scene, count: int) -> str:
        container = scene.containers[count]
        client = getattr(scene, who)
        return transaction(client.copy(container, 'o', f'{container}/copy'))

    return ask


def web(scene: Scene, count: int) -> str:
    path = f'{scene.granted.path(scene.containers[count])}/'
    headers = {'X-Web-Mode': 'true'}
    return transaction(scene.granted.raw('GET', path, headers=headers))


def again(**kwargs):
    """Return a function that gets a page twice; the second may be old."""

    def ask(scene: Scene, count: int) -> str:
        for _ in range(2):
            answer = scene.granted.get(scene.old[count], **kwargs)
        return transaction(answer)

    return ask


def old_web(scene: Scene, count: int) -> str:
    path = f'{scene.granted.path(scene.old[count])}/'
    for _ in range(2):
        answer = scene.granted.raw('GET', path, headers={'X-Web-Mode': 'true'})
    return transaction(answer)


def head_after_write(scene: Scene, count: int) -> str:
    container = scene.containers[count]
    scene.owner.put(container, 'o', b'new')
    return transaction(scene.granted.head(container))


def of_versions(method: str, **query: str):
    def ask(scene: Scene, count: int) -> str:
        container = scene.versioned[count]
        return transaction(
            scene.granted.request(method, container, query=query)
        )

    return ask


def temporary(method: str, key: str = KEY):
    """Return a function that sends a request with a temporary URL."""

    def ask(scene: Scene, count: int) -> str:
        container = scene.containers[count]
        temp = Temp(method, 'o', 'o')
        anonymous = scene.owner.anonymous()
        query = signed(anonymous, container, temp, key)
        return transaction(
            anonymous.request(method, container, 'o', body=b'', query=query)
        )

    return ask


def form(key: str = KEY):
    """Return a function that sends a form with one file."""

    def ask(scene: Scene, count: int) -> str:
        anonymous = scene.owner.anonymous()
        path = f'{anonymous.path(scene.containers[count])}/formed-'
        body, content_type = form_of(path, key)
        headers = {'Content-Type': content_type}
        return transaction(
            anonymous.raw('POST', path, body=body, headers=headers)
        )

    return ask


def s3(user: str, operation: str, **params):
    def ask(scene: Scene, count: int) -> str:
        send = getattr(scene.s3[user], operation)
        try:
            answer = send(Bucket=scene.containers[count], **params)
        except ClientError as error:
            answer = error.response
        return answer['ResponseMetadata']['HTTPHeaders']['x-trans-id']

    return ask


def account(method: str, query: str = ''):
    def ask(scene: Scene, count: int) -> str:
        return transaction(scene.owners[count].request(method, query=query))

    return ask


def denied_account(method: str):
    def ask(scene: Scene, count: int) -> str:
        client = scene.nobody.visiting(scene.owners[count])
        return transaction(client.request(method))

    return ask


def create(scene: Scene, count: int) -> str:
    headers = {SHARD_COUNT_HEADER: str(count)} if count else {}
    return transaction(scene.owner.put(unique('new'), headers=headers))


def put_again(scene: Scene, count: int) -> str:
    headers = {SHARD_COUNT_HEADER: str(count)} if count else {}
    container = scene.containers[count]
    return transaction(scene.owner.put(container, headers=headers))


def delete_new(scene: Scene, count: int) -> str:
    container = unique('new')
    headers = {SHARD_COUNT_HEADER: str(count)} if count else {}
    scene.owner.put(container, headers=headers)
    return transaction(scene.owner.delete(container))


ARCHIVE = {'body': archive_of(FILES), 'query': 'extract-archive=tar'}
COUNT = {'headers': {SHARD_COUNT_HEADER: '4'}}
KEYS = {'Delete': {'Objects': [{'Key': name} for name in FILES]}}
LISTING = {
    'query': 'format=json&prefix=o&delimiter=/&marker=a&end_marker=z'
    '&reverse=on&limit=5&versions=on&allow_unordered=true'
}

#: Denied requests, by the rows of the page.
DENIED = {
    'GET, HEAD of the container': [
        by('nobody', 'GET'), by('nobody', 'HEAD'), by('nobody', 'GET', **COUNT)
    ],
    'GET with parameters of a listing, `versions`, `allow_unordered`': [
        by('nobody', 'GET', **LISTING),
        by('nobody', 'GET', query='allow_unordered=true'),
    ],
    'GET, HEAD of the container with `X-Newest`': [
        by('nobody', 'GET', headers=NEWEST),
        by('nobody', 'HEAD', headers=NEWEST),
    ],
    'PUT, POST, DELETE of the container, with any shard count': [
        *(by('nobody', method) for method in ('PUT', 'POST', 'DELETE')),
        *(by('nobody', method, **COUNT) for method in ('PUT', 'POST')),
        *(by('granted', method) for method in ('PUT', 'POST', 'DELETE')),
    ],
    'any request for an object, COPY': [
        *(
            by('nobody', method, 'o', body=b'')
            for method in ('GET', 'HEAD', 'PUT', 'POST', 'DELETE')
        ),
        copy('nobody'),
    ],
    'archive of three files': [by('nobody', 'PUT', **ARCHIVE)],
    'bulk delete of three names': [bulk_delete('nobody')],
    'static web page': [
        by('nobody', 'GET', '', headers={'X-Web-Mode': 'true'})
    ],
    'temporary URL or form with a wrong signature': [
        temporary('GET', 'wrong'), temporary('PUT', 'wrong'), form('wrong')
    ],
    'S3: list a bucket': [
        s3(NOBODY, 'list_objects_v2'),
    ],
    'GET, HEAD of the account': [
        denied_account('GET'), denied_account('HEAD')
    ],
}  # fmt: skip

ALLOWED = {
    'GET of the container, with any parameters': [
        by('granted', 'GET'),
        by('granted', 'GET', query='format=json&prefix=o&delimiter=/'),
        by('granted', 'GET', query='reverse=on&limit=1&marker=z'),
    ],
    'GET with `X-Newest`, by a reader': [by('granted', 'GET', headers=NEWEST)],
    'GET, HEAD with `X-Newest`, by the owner': [
        by('owner', 'GET', headers=NEWEST), by('owner', 'HEAD', headers=NEWEST)
    ],
    'HEAD of the container, after a write': [head_after_write],
    'page of a static web site': [web],
    'GET of a page that is kept': [
        again(), again(query='delimiter=/&format=json')
    ],
    'the same with `X-Listing-Max-Age: 0`': [
        again(headers={REQUEST_HEADER: '0'})
    ],
    'page of a static web site that is kept': [old_web],
    'S3: list a bucket': [s3(USER, 'list_objects_v2')],
    'list of versions': [of_versions('GET', versions='true')],
    'HEAD of a container with versions': [of_versions('HEAD')],
    'PUT, POST, DELETE of an object': [
        by('granted', 'PUT', 'o', body=b'1'), by('granted', 'POST', 'o'),
        by('granted', 'DELETE', 'missing'),
    ],
    'GET, HEAD of an object': [
        by('granted', 'GET', 'o'), by('granted', 'HEAD', 'o')
    ],
    'GET of an object, temporary URL': [temporary('GET')],
    'PUT of an object, temporary URL or form': [temporary('PUT'), form()],
    'COPY in the container': [copy('granted')],
    'archive of three files': [by('granted', 'PUT', **ARCHIVE)],
    'bulk delete of three names': [bulk_delete('granted')],
    'S3: delete three keys': [s3(USER, 'delete_objects', **KEYS)],
    'PUT of the container, as it is': [by('owner', 'PUT')],
    'PUT of the container with its own shard count': [put_again],
    'POST of the container': [by('owner', 'POST')],
    'DELETE of the container that is not empty': [by('owner', 'DELETE')],
    'PUT of a new container': [create],
    'DELETE of an empty container': [delete_new],
    'HEAD of the account': [account('HEAD')],
    'GET of the account': [account('GET', 'format=json')],
}  # fmt: skip


@pytest.mark.parametrize(
    ('heading', 'asked'),
    [('Before a client is authorized', DENIED),
     ('What an authorized request costs', ALLOWED)],
    ids=['denied', 'allowed'],
)  # fmt: skip
class TestPage:
    def test_has_every_request(self, heading, asked):
        assert list(table(heading)) == list(asked)

    def test_has_the_costs_that_are_measured(self, scene, heading, asked):
        page = table(heading)
        said, found = {}, {}
        for request, count in itertools.product(asked, COUNTS):
            formula = page[request][count > 0]
            value = cost(formula, count, scene.replicas)
            said[request, count] = {value}
            found[request, count] = {
                scene.requests.usually_behind(
                    functools.partial(ask, scene, count), value
                )
                for ask in asked[request]
            }
        assert found == said


@pytest.fixture
def logged_in_again(scene):
    yield
    scene.log_in()


@pytest.mark.usefixtures('logged_in_again')
@pytest.mark.parametrize('request_text', DENIED)
def test_a_denied_request_costs_the_same_with_empty_caches(
    scene, request_text
):
    # Two deletions of a bulk delete may look up the same at the same time.
    for _ in range(ATTEMPTS):
        found = with_empty_caches(scene, DENIED[request_text])
        if all(plain == sharded for plain, sharded in found):
            break
    for plain, sharded in found:
        assert plain == sharded > 0


def with_empty_caches(scene: Scene, asked: list) -> list[list[int]]:
    """Return what requests to a plain and a sharded container cost."""
    counts = (0, 4)
    scene.log_in()
    new = [[scene.with_new(count) for count in counts] for _ in asked]
    # The new proxy knows none of the containers.
    scene.cluster.stop('proxy-1')
    scene.cluster.start('proxy-1')
    found = []
    for ask, scenes in zip(asked, new, strict=True):
        found.append([])
        for count, each in zip(counts, scenes, strict=True):
            flush(scene.cluster)
            each.log_in()
            found[-1].append(
                scene.requests.behind(functools.partial(ask, each, count))
            )
    return found
