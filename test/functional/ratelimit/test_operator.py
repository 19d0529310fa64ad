# SPDX-License-Identifier: Apache-2.0
"""What an operator sets for a container or account, and how it shows."""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shardmw_saio import Cluster, ClusterOptions
from swift.account.backend import AccountBroker
from swift.common.utils import Timestamp
from swift.proxy.controllers.base import get_cache_key

from test.functional.alike import masked
from test.functional.backing import memcached_of
from test.functional.client import Client
from test.functional.conftest import (
    RESELLER_ADMIN,
    SHARD_COUNT_HEADER,
    STRANGER,
    USER,
    unique,
)
from test.functional.ratelimit.limits import (
    FIRST,
    INTERVAL,
    MAKERS,
    RATE_HEADER,
    SECOND,
    SLOW,
    Operator,
    assert_refused,
    lines_since,
    log_size,
    login,
    make_sharded,
    reconfigured,
    wait_until,
)
from test.functional.test_startup import Configuration

REMOVE_HEADER = 'X-Remove-Container-Write-Ratelimit'
SHOWN = RATE_HEADER.lower()

#: How often to try for two concurrent requests.
TRIES = 20

SETTINGS = {
    'shardmw.max_sleep_time_seconds': '0.5',
    'shardmw.rate_buffer_seconds': '0',
    'shardmw.stats_cache_seconds': '0',
    'shardmw.log_statsd_host': '127.0.0.1',
}

LIMIT = {'shardmw.container_ratelimit_0': SLOW}


@pytest.fixture(scope='module')
def limited(tmp_path_factory, statsd):
    """Two proxies that limit only what a test configures."""
    port = {'shardmw.log_statsd_port': str(statsd.port)}
    options = ClusterOptions(proxies=2, settings={**SETTINGS, **port})
    with Cluster(tmp_path_factory.mktemp('operator'), options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def admin(limited, client) -> Client:
    """A reseller admin, sending requests for the tests' account."""
    return login(limited, RESELLER_ADMIN).visiting(client)


@pytest.fixture(scope='class')
def limits(limited) -> Iterator[None]:
    """All containers are limited."""
    with reconfigured(limited, LIMIT):
        yield


class TestOwnRate:
    def test_needs_no_other_limit(self, client, operator, container):
        assert client.put(container, FIRST).status == 201
        assert client.put(container, FIRST).status == 201
        operator.set_rate(container, SLOW)
        assert client.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST))

    def test_is_for_each_shard(self, client, operator):
        container = make_sharded(client)
        operator.set_rate(container, SLOW)
        for name in (FIRST, SECOND):
            assert client.put(container, name).status == 201
            assert_refused(client.put(container, name))

    def test_holds_at_all_proxies_together(
        self, client, other_proxy, operator, container
    ):
        operator.set_rate(container, SLOW)
        assert client.put(container, FIRST).status == 201
        assert_refused(other_proxy.put(container, FIRST))

    @pytest.mark.parametrize(
        'header', ['X-Versions-Location', 'X-History-Location']
    )
    def test_refuses_an_upload_before_its_old_version_is_stored(
        self, client, operator, container, header
    ):
        archive = make_sharded(client)
        client.post(container, headers={header: archive})
        client.put(container, FIRST, b'first')
        operator.set_rate(container, SLOW)
        assert client.put(container, FIRST, b'second').status == 201
        before = client.listing(archive).names()
        assert client.put(container, FIRST, b'third').status == 503
        assert client.listing(archive).names() == before

    def test_is_for_that_container_only(self, client, operator, container):
        operator.set_rate(container, SLOW)
        client.put(container, FIRST)
        for make in MAKERS.values():
            other = make(client)
            assert client.put(other, FIRST).status == 201
            assert client.put(other, FIRST).status == 201

    def test_that_is_raised_admits_writes_at_once(
        self, client, other_proxy, operator, container
    ):
        operator.set_rate(container, SLOW)
        assert client.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST))
        assert_refused(other_proxy.put(container, FIRST))
        operator.set_rate(container, '1000')
        assert client.put(container, FIRST).status == 201
        assert other_proxy.put(container, FIRST).status == 201

    def test_that_is_lowered_applies_at_once(
        self, client, other_proxy, operator, container
    ):
        operator.set_rate(container, '1000')
        assert client.put(container, FIRST).status == 201
        assert other_proxy.put(container, FIRST).status == 201
        operator.set_rate(container, SLOW)
        assert client.put(container, FIRST).status == 201
        assert_refused(other_proxy.put(container, FIRST))
        assert_refused(client.put(container, FIRST))

    @pytest.mark.parametrize('count', [{}, {SHARD_COUNT_HEADER: '2'}])
    def test_can_be_set_when_a_container_is_created(
        self, client, admin, count
    ):
        name = unique('made')
        answer = admin.put(name, headers={RATE_HEADER: SLOW, **count})
        assert answer.status == 201
        assert client.head(name).headers[SHOWN] == SLOW
        assert client.put(name, FIRST).status == 201
        assert_refused(client.put(name, FIRST))

    def test_can_be_set_by_a_put_of_an_existing_container(
        self, client, admin, container
    ):
        answer = admin.put(container, headers={RATE_HEADER: SLOW})
        assert answer.status == 202
        assert client.head(container).headers[SHOWN] == SLOW

    def test_stays_when_something_else_is_changed(
        self, client, operator, container
    ):
        operator.set_rate(container, SLOW)
        client.post(container, headers={'X-Container-Meta-Colour': 'blue'})
        client.put(container)
        assert client.head(container).headers[SHOWN] == SLOW

    def test_goes_with_the_container(self, client, operator, container):
        operator.set_rate(container, SLOW)
        count = client.head(container).headers.get(SHARD_COUNT_HEADER.lower())
        assert client.delete(container).status == 204
        headers = {SHARD_COUNT_HEADER: count} if count else {}
        assert client.put(container, headers=headers).status == 201
        assert SHOWN not in client.head(container).headers
        assert client.put(container, FIRST).status == 201
        assert client.put(container, FIRST).status == 201

    @pytest.mark.parametrize(
        'headers', [{RATE_HEADER: ''}, {REMOVE_HEADER: 'x'}]
    )
    def test_can_be_removed(self, client, admin, operator, container, headers):
        operator.set_rate(container, SLOW)
        client.put(container, FIRST)
        assert admin.post(container, headers=headers).status == 204
        assert SHOWN not in client.head(container).headers
        assert client.put(container, FIRST).status == 201

    def test_is_shown_to_the_owner(self, client, operator, container):
        assert SHOWN not in client.head(container).headers
        operator.set_rate(container, SLOW)
        assert client.head(container).headers[SHOWN] == SLOW
        assert client.get(container).headers[SHOWN] == SLOW

    def test_is_not_shown_to_readers(
        self, client, stranger, operator, container
    ):
        client.post(container, headers={'X-Container-Read': '.r:*,.rlistings'})
        operator.set_rate(container, SLOW)
        for other in (stranger, client.anonymous()):
            head, get = other.head(container), other.get(container)
            assert (head.status, get.status) == (204, 204)
            assert SHOWN not in head.headers
            assert SHOWN not in get.headers

    def test_is_not_shown_as_an_internal_header(
        self, client, operator, container
    ):
        operator.set_rate(container, SLOW)
        assert 'shardmw' not in str(client.head(container).headers)

    @pytest.mark.parametrize('written', ['unlimited', 'Unlimited', ' 2.50 '])
    def test_is_shown_in_lower_case(
        self, client, operator, container, written
    ):
        operator.set_rate(container, written)
        shown = client.head(container).headers[SHOWN]
        assert shown == written.strip().lower()


@pytest.mark.usefixtures('limits')
class TestOwnRateInPlaceOfALimit:
    def test_may_be_unlimited(self, client, operator, container):
        operator.set_rate(container, 'unlimited')
        for _ in range(3):
            assert client.put(container, FIRST).status == 201

    def test_applies_instead(self, client, operator, container):
        operator.set_rate(container, f'{1 / INTERVAL / 2}')
        assert client.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST), slots=2)

    def test_restores_the_limit_when_it_is_removed(
        self, client, operator, container
    ):
        operator.set_rate(container, 'unlimited')
        client.put(container, FIRST)
        operator.set_rate(container, '')
        assert client.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST))

    def test_takes_effect_at_all_proxies(
        self, client, other_proxy, operator, container
    ):
        client.put(container, FIRST)
        assert_refused(other_proxy.put(container, FIRST))
        operator.set_rate(container, 'unlimited')
        assert other_proxy.put(container, FIRST).status == 201
        assert client.put(container, FIRST).status == 201


NONSENSE = ['0', '-1', 'nan', 'inf', 'x']


class TestRefusedChange:
    @pytest.mark.parametrize('rate', NONSENSE)
    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_of_nonsense_changes_nothing(
        self, client, admin, operator, container, method, rate
    ):
        operator.set_rate(container, SLOW)
        headers = {RATE_HEADER: rate, 'X-Container-Meta-Colour': 'blue'}
        answer = admin.request(method, container, headers=headers)
        assert answer.status == 400
        assert answer.text == (
            f'Bad rate {rate!r}: must be 0.0001 or more, or unlimited '
            f'({RATE_HEADER}, in writes per second)'
        )
        shown = client.head(container).headers
        assert shown[SHOWN] == SLOW
        assert 'x-container-meta-colour' not in shown

    @pytest.mark.parametrize('count', [{}, {SHARD_COUNT_HEADER: '2'}])
    def test_of_nonsense_creates_no_container(self, client, admin, count):
        name = unique('unmade')
        answer = admin.put(name, headers={RATE_HEADER: 'x', **count})
        assert answer.status == 400
        assert client.head(name).status == 404

    @pytest.mark.parametrize(
        'headers',
        [
            {RATE_HEADER: '5'},
            {RATE_HEADER: 'unlimited'},
            {RATE_HEADER: ''},
            {RATE_HEADER: 'x'},
            {REMOVE_HEADER: 'x'},
        ],
        ids=lambda headers: '='.join(*headers.items()),
    )
    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_by_the_owner_is_forbidden(
        self, client, operator, container, method, headers
    ):
        operator.set_rate(container, SLOW)
        headers = {**headers, 'X-Container-Meta-Colour': 'blue'}
        answer = client.request(method, container, headers=headers)
        assert answer.status == 403
        shown = client.head(container).headers
        assert shown[SHOWN] == SLOW
        assert 'x-container-meta-colour' not in shown

    @pytest.mark.parametrize('count', [{}, {SHARD_COUNT_HEADER: '2'}])
    def test_by_the_owner_creates_no_container(self, client, count):
        name = unique('unmade')
        answer = client.put(name, headers={RATE_HEADER: '5', **count})
        assert answer.status == 403
        assert client.head(name).status == 404

    def test_by_a_stranger_is_forbidden(self, client, stranger, container):
        headers = {'X-Container-Write': STRANGER}
        client.post(container, headers=headers)
        headers = {RATE_HEADER: '5'}
        assert stranger.post(container, headers=headers).status == 403
        anonymous = client.anonymous()
        assert anonymous.post(container, headers=headers).status == 401
        assert SHOWN not in client.head(container).headers

    def test_by_an_internal_header_is_ignored(self, client, container):
        headers = {'X-Container-Sysmeta-Shardmw-Write-Ratelimit': SLOW}
        assert client.post(container, headers=headers).status == 204
        assert SHOWN not in client.head(container).headers


FLAG = 'X-Account-Sysmeta-Global-Write-Ratelimit'
#: Replaces Swift's own ratelimit filter by one that does nothing.
WITHOUT_STOCK = {'ratelimit.use': 'egg:swift#healthcheck'}


def flag(cluster: Cluster, account: str, value: str) -> None:
    """Write into an account's sysmeta, as an internal client does.

    The proxies' cached info of the account is deleted, too.
    """
    digest = hashlib.md5(f'shardmw/{account}saio'.encode()).hexdigest()
    (path,) = cluster.devices_path.glob(f'*/*/accounts/*/*/{digest}/*.db')
    written = (value, Timestamp.now().internal)
    AccountBroker(str(path)).update_metadata({FLAG: written})
    memcached_of(cluster).delete(get_cache_key(account))


@pytest.fixture
def owner(limited, admin) -> Client:
    """The owner of a new account, which the first proxy does not know."""
    url = admin.storage_url.rpartition('/')[0]
    owner = Client(f'{url}/AUTH_{unique("new")}', admin.token)
    made = owner.on(limited.proxy_urls[1]).request('PUT')
    assert made.status == 201
    return owner


@pytest.fixture(params=MAKERS)
def owned(request, limited, owner) -> str:
    """A container in the account of ``owner``."""
    return MAKERS[request.param](owner.on(limited.proxy_urls[1]))


@pytest.fixture
def whitelisted(limited, owner, owned) -> str:
    """A container in an account that is on the whitelist."""
    flag(limited, owner.account, 'WHITELIST')
    return owned


@pytest.fixture
def blacklisted(limited, owner, owned) -> str:
    """A container in an account that is on the blacklist."""
    flag(limited, owner.account, 'BLACKLIST')
    return owned


@pytest.fixture(scope='class')
def all_limits(limited) -> Iterator[None]:
    """Writes and listings are limited by this filter only."""
    listings = {'shardmw.container_listing_ratelimit_0': SLOW}
    with reconfigured(limited, {**LIMIT, **listings, **WITHOUT_STOCK}):
        yield


@pytest.mark.usefixtures('all_limits')
class TestWhitelist:
    def test_admits_all_writes(self, owner, whitelisted):
        for _ in range(3):
            assert owner.put(whitelisted, FIRST).status == 201

    def test_admits_all_listings(self, owner, whitelisted):
        for _ in range(3):
            assert owner.listing(whitelisted).status == 200

    def test_admits_writes_of_any_user(self, client, owner, whitelisted):
        owner.post(whitelisted, headers={'X-Container-Write': USER})
        visitor = client.visiting(owner)
        for _ in range(3):
            assert visitor.put(whitelisted, FIRST).status == 201

    def test_takes_precedence_over_a_containers_own_rate(
        self, admin, owner, whitelisted
    ):
        Operator(admin.visiting(owner)).set_rate(whitelisted, SLOW)
        for _ in range(3):
            assert owner.put(whitelisted, FIRST).status == 201

    def test_is_for_one_account_only(self, client, owner, whitelisted):
        container = make_sharded(client)
        owner.put(whitelisted, FIRST)
        assert client.put(container, FIRST).status == 201
        assert_refused(client.put(container, FIRST))

    def test_that_ends_restores_the_limit(self, limited, owner, whitelisted):
        owner.put(whitelisted, FIRST)
        flag(limited, owner.account, '')
        wait_until(lambda: owner.put(whitelisted, FIRST).status == 498)


@pytest.mark.usefixtures('all_limits')
class TestBlacklist:
    def test_refuses_every_request(self, owner, blacklisted):
        answers = [
            owner.put(blacklisted, FIRST),
            owner.listing(blacklisted),
            owner.head(),
        ]
        assert [answer.status for answer in answers] == [497] * 3

    def test_is_for_one_account_only(self, client, owner, blacklisted):
        container = make_sharded(client)
        assert owner.put(blacklisted, FIRST).status == 497
        assert client.put(container, FIRST).status == 201

    def test_is_logged(self, limited, owner, blacklisted):
        start = log_size(limited, 'proxy-1')
        owner.put(blacklisted, FIRST)
        (line,) = lines_since(limited, 'proxy-1', start)
        path = owner.path(blacklisted, FIRST)
        assert f'497 for PUT {path}: the account is blacklisted' in line

    def test_that_ends_admits_requests(self, limited, owner, blacklisted):
        assert owner.put(blacklisted, FIRST).status == 497
        flag(limited, owner.account, '')
        wait_until(lambda: owner.put(blacklisted, FIRST).status == 201)


def test_refusal_is_that_of_swifts_own_filter(limited, owner):
    name = unique('blacklisted')
    flag(limited, owner.account, 'BLACKLIST')
    with reconfigured(limited, LIMIT):
        stock = masked(owner.put(name, FIRST), name)
    with reconfigured(limited, {**LIMIT, **WITHOUT_STOCK}):
        own = masked(owner.put(name, FIRST), name)
    assert own == stock
    assert own.status == 497
    assert own.body == b'Your account has been blacklisted'


class TestMetrics:
    @pytest.fixture
    def counts(self, statsd, container):
        """A function that returns the metrics since the container was made."""
        statsd.counts()
        return statsd.counts

    def test_permit_is_counted(self, client, operator, container, counts):
        operator.set_rate(container, '1000')
        for _ in range(3):
            client.put(container, FIRST)
        seen = counts()
        assert seen['ratelimit.permits'] == 3
        assert seen['ratelimit.bookings'] == 3
        assert seen['ratelimit.refused.write'] == 0
        assert seen['ratelimit.alone'] == 0

    def test_refusal_is_counted(self, client, operator, container, counts):
        operator.set_rate(container, SLOW)
        for _ in range(3):
            client.put(container, FIRST)
        seen = counts()
        assert seen['ratelimit.permits'] == 1
        assert seen['ratelimit.refused.write'] == 2

    def test_wait_is_measured(
        self, client, other_proxy, operator, container, counts
    ):
        """In milliseconds: one of two concurrent writes waits an interval."""
        operator.set_rate(container, '2.5')
        waited = 0
        # On a busy machine, they may be so far apart that neither waits.
        for _ in range(TRIES):
            with ThreadPoolExecutor(2) as pool:
                answers = pool.map(
                    lambda each: each.put(container, FIRST).status,
                    (client, other_proxy),
                )
                assert list(answers) == [201, 201]
            waited = counts()['ratelimit.sleep.write']
            if waited:
                break
            time.sleep(1)
        assert 0 < waited <= 400

    def test_container_without_a_limit_counts_nothing(
        self, client, container, counts
    ):
        client.put(container, FIRST)
        names = [name for name in counts() if name.startswith('ratelimit')]
        assert names == []


@pytest.fixture
def info(client):
    """Return a function that gets the filter's section of /info."""
    return lambda: client.raw('GET', '/info').json()['shardmw']


class TestInfo:
    def test_shows_limits(self, limited, info):
        settings = {
            'shardmw.container_ratelimit_0': '100',
            'shardmw.container_ratelimit_1000': '10.5',
            'shardmw.container_listing_ratelimit_50': '2',
            'shardmw.rate_buffer_seconds': '7',
            'shardmw.max_sleep_time_seconds': '2.5',
        }
        with reconfigured(limited, settings):
            told = info()
        assert told['container_ratelimits'] == [[0, 100], [1000, 10.5]]
        assert told['container_listing_ratelimits'] == [[50, 2]]
        assert told['rate_buffer_seconds'] == 7
        assert told['max_sleep_time_seconds'] == 2.5

    def test_shows_that_there_are_no_limits(self, info):
        assert info()['container_ratelimits'] == []
        assert info()['container_listing_ratelimits'] == []


@pytest.fixture
def configuration(limited, tmp_path) -> Configuration:
    """A copy of a proxy's configuration."""
    etc = limited.path / 'etc'
    shutil.copy(etc / 'swift.conf', tmp_path)
    return Configuration(etc / 'proxy-1.conf', Path(tmp_path) / 'proxy.conf')


@pytest.fixture
def refusal(configuration) -> Callable[[], str]:
    """Return a function that returns the line of a proxy's refusal."""

    def refused() -> str:
        done = configuration.start()
        assert done.returncode != 0
        assert done.stderr == ''
        assert done.stdout.count('\n') == 1, done.stdout
        return done.stdout.rstrip('\n')

    return refused


WRITES = 'container_ratelimit_'
LISTINGS = 'container_listing_ratelimit_'


class TestInvalidOption:
    @pytest.mark.parametrize(
        ('prefix', 'rate'),
        [
            (WRITES, '0'),
            (WRITES, '-1'),
            (WRITES, 'nan'),
            (LISTINGS, '0'),
            (LISTINGS, 'inf'),
        ],
    )
    def test_for_a_rate_is_refused(self, configuration, refusal, prefix, rate):
        configuration.set('shardmw', **{f'{prefix}5': rate})
        line = refusal()
        assert line.startswith(f'shardmw: {prefix}')
        assert 'must be' in line

    @pytest.mark.parametrize(
        ('prefix', 'size'),
        [(WRITES, '-1'), (WRITES, ''), (LISTINGS, 'x'), (LISTINGS, '1.5')],
    )
    def test_for_a_size_is_refused(self, configuration, refusal, prefix, size):
        configuration.set('shardmw', **{f'{prefix}{size}': '5'})
        line = refusal()
        assert line.startswith(f'shardmw: {prefix}')
        assert 'must be' in line

    def test_for_a_size_that_is_given_twice_is_refused(
        self, configuration, refusal
    ):
        options = {f'{WRITES}5': '5', f'{WRITES}05': '6'}
        configuration.set('shardmw', **options)
        assert 'are of the same size: remove one of them' in refusal()

    @pytest.mark.parametrize('proxies', ['0', 'x'])
    def test_for_the_number_of_proxies_is_refused(
        self, configuration, refusal, proxies
    ):
        configuration.set('shardmw', ratelimit_proxies=proxies)
        assert refusal() == (
            f'shardmw: ratelimit_proxies = {proxies}: must be a whole number '
            'from 1 to 100000'
        )

    @pytest.mark.parametrize('prefix', [WRITES, LISTINGS])
    def test_for_a_rate_in_stock_ratelimit_too_is_refused(
        self, configuration, refusal, prefix
    ):
        configuration.set('shardmw', **{f'{prefix}0': '100'})
        configuration.set('ratelimit', **{f'{prefix}5': '10'})
        assert refusal() == (
            f'shardmw: {prefix}5 is set in [filter:ratelimit], too: remove '
            f'{prefix}5 there, or two filters limit the same requests'
        )
