# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one embedded Swift for a whole run, and containers on it."""

import functools
import itertools
import uuid
from collections.abc import Callable
from typing import NamedTuple

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.backing import Backing
from test.functional.client import Client
from test.functional.unfiltered import unfiltered_url

SHARD_COUNT_HEADER = 'X-Container-Shard-Count'
SHARD_DEPTH_HEADER = 'X-Container-Shard-Depth'
SHARDS = 4

USER = 'test:tester'
STRANGER = 'test:tester3'
OTHER_OWNER = 'test2:tester2'

#: A user who may do everything in every account.
RESELLER_ADMIN = 'admin:admin'

#: The body of the object that the fixture ``stored`` uploads.
STORED_BODY = b'0123456789'

#: Files whose tests take minutes, the longest first. They come first, so that
#: no worker is left alone with one of them in the end.
LONG_FILES = (
    'test_container_sync_changes.py',
    'test_resharder.py',
    'test_late_rows.py',
    'test_split_roots.py',
    'test_admin_changes.py',
    'test_container_sync.py',
    'test_resharding_features.py',
    'test_resharding.py',
    'test_lifecycle.py',
    'test_swift_cli.py',
    'test_transparency.py',
    'test_strays.py',
    'test_rollout.py',
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of long files first."""
    place = {name: i for i, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


@pytest.fixture(scope='session')
def cluster(tmp_path_factory):
    options = ClusterOptions(policies=2)
    with Cluster(tmp_path_factory.mktemp('saio'), options) as cluster:
        yield cluster


def logins(cluster: Cluster) -> Callable[[str], Client]:
    """Return a function that logs in a tempauth user, once for each user."""

    @functools.cache
    def account(user: str) -> Client:
        return Client.login(cluster.auth_url, user, cluster.users[user])

    def logged_in(user: str) -> Client:
        return Client(account(user).storage_url, account(user).token)

    return logged_in


def account_maker(login: Callable[[str], Client]) -> Callable[[], Client]:
    """Return a function that returns the owner of an unused account."""
    admin = login(RESELLER_ADMIN)
    url = admin.storage_url.rpartition('/')[0]
    return lambda: Client(f'{url}/AUTH_{unique("new")}', admin.token)


def new_owner(new_account: Callable[[], Client]) -> Client:
    """Return the owner of an unused account."""
    return new_account()


# These live as long as the cluster. Folders and modules that have a cluster of
# their own make their fixtures from the same functions.
login = pytest.fixture(scope='session')(logins)
new_account = pytest.fixture(scope='session')(account_maker)
unfiltered_proxy = pytest.fixture(scope='session')(unfiltered_url)


@pytest.fixture
def client(login) -> Client:
    """The owner of the account that the tests work in."""
    return login(USER)


@pytest.fixture
def stranger(login, client) -> Client:
    """A user of the same account who has no rights."""
    return login(STRANGER).visiting(client)


@pytest.fixture
def other_owner(login, client) -> Client:
    """The owner of another account, sending requests for this one."""
    return login(OTHER_OWNER).visiting(client)


def unique(prefix: str) -> str:
    """Return a name that no other test uses."""
    return f'{prefix}-{uuid.uuid4().hex[:12]}'


def make_sharded(client: Client, shards: int = SHARDS, **headers) -> str:
    """Create a sharded container; return its name."""
    name = unique('sharded')
    headers = {key.replace('_', '-'): value for key, value in headers.items()}
    headers[SHARD_COUNT_HEADER] = str(shards)
    assert client.put(name, headers=headers).status == 201
    return name


def make_plain(client: Client, **headers) -> str:
    """Create a plain container; return its name."""
    name = unique('plain')
    headers = {key.replace('_', '-'): value for key, value in headers.items()}
    assert client.put(name, headers=headers).status == 201
    return name


class Pair(NamedTuple):
    """A plain and a sharded container to play the same requests on."""

    plain: str
    sharded: str


@pytest.fixture
def sharded(client) -> str:
    """A new sharded container."""
    return make_sharded(client)


@pytest.fixture
def plain(client) -> str:
    """A new plain container."""
    return make_plain(client)


@pytest.fixture
def pair(plain, sharded) -> Pair:
    """A new plain and a new sharded container."""
    return Pair(plain, sharded)


@pytest.fixture(params=['plain', 'sharded'])
def container(request, client) -> str:
    """A new container, once plain and once sharded.

    So every assertion is also checked against Swift's own behaviour.
    """
    return MAKERS[request.param](client)


@pytest.fixture
def bucket(container) -> str:
    """The fixture ``container`` under the name that S3 gives it."""
    return container


MAKERS = {'plain': make_plain, 'sharded': make_sharded}


#: All pairs of kinds that involve the filter.
PAIRS_OF_KINDS = [
    kinds
    for kinds in itertools.product(MAKERS, repeat=2)
    if 'sharded' in kinds
]

each_two = functools.partial(
    pytest.fixture, params=PAIRS_OF_KINDS, ids='-to-'.join
)


@each_two()
def two_containers(request, client) -> tuple[str, str]:
    """Two new containers, one or both of them sharded."""
    first, second = request.param
    return MAKERS[first](client), MAKERS[second](client)


@each_two(scope='class')
def lasting_two(request, login) -> tuple[str, str]:
    """Two containers like ``two_containers`` for all tests of a class."""
    first, second = request.param
    owner = login(USER)
    return MAKERS[first](owner), MAKERS[second](owner)


@pytest.fixture(scope='class', params=MAKERS)
def lasting(request, login) -> str:
    """A container for all tests of a class, once plain and once sharded."""
    return MAKERS[request.param](login(USER))


@pytest.fixture(scope='class')
def stored(lasting, login) -> str:
    """A container with an object ``o``, which no test changes."""
    login(USER).put(lasting, 'o', STORED_BODY)
    return lasting


@pytest.fixture(scope='class')
def stored_pair(login) -> Pair:
    """A plain and a sharded container with an object ``o`` in each."""
    owner = login(USER)
    pair = Pair(make_plain(owner), make_sharded(owner))
    owner.put(pair.plain, 'o', STORED_BODY)
    owner.put(pair.sharded, 'o', STORED_BODY)
    return pair


@pytest.fixture
def unfiltered(client, unfiltered_proxy) -> Client:
    """The owner at a proxy that has no shardmw."""
    return client.on(unfiltered_proxy)


@pytest.fixture
def backing(unfiltered) -> Backing:
    """The backing containers of the owner's sharded containers."""
    return Backing(unfiltered)
