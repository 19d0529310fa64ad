# SPDX-License-Identifier: Apache-2.0
"""The daemon that changes layouts in the background."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator

import pytest

from shardmw.core.placement import hidden_account
from test.functional.backing import put_rows, write_record
from test.functional.client import Client
from test.functional.conftest import (
    RESELLER_ADMIN,
    SHARD_COUNT_HEADER,
    logins,
)
from test.functional.history import Clients
from test.functional.operating import (
    Admin,
    delete_unheard,
    fill,
    shards_of,
    wait_until,
)
from test.functional.test_metrics import Statsd

#: A limit that a test exceeds with few objects.
ROWS_PER_SHARD = 5
#: Earlier tests may have left pending updates on object servers.
CHOSEN = {'rows_per_shard': ROWS_PER_SHARD, 'despite_backlog': 'true'}
AUTO = {'auto_reshard': 'true', **CHOSEN}
SHRINK = {'auto_shrink': 'true', 'shrink_after_days': 0, **CHOSEN}

MOVING = re.compile(r'AUTH_\S+/(\S+): (moving|settling), ')


def sharded(count: int) -> dict:
    return {SHARD_COUNT_HEADER: str(count)}


class Grown:
    """Accounts after the daemon ran with ``auto_reshard``.

    :ivar owner: the owner of an account with sharded containers
    :ivar named: the owner of an account without any, named in ``accounts``
    :ivar unknown: the owner of another account without any
    """

    def __init__(self, new_account: Callable[[], Client]) -> None:
        self.owner, self.named, self.unknown = (new_account() for _ in '123')
        owner = self.owner
        fill(owner, 'small', ROWS_PER_SHARD)
        fill(owner, 'large', 11)
        fill(owner, 'huge', 21)
        fill(owner, 'left-alone', 11)
        fill(owner, 'emptied', 11)
        fill(owner, 'sharded', 18, headers=sharded(2))
        fill(owner, 'wide', 3, headers=sharded(8))
        fill(owner, 'versioned', 2)
        enabled = {'X-Versions-Enabled': 'true'}
        assert owner.post('versioned', headers=enabled).status == 204
        for _ in range(6):
            assert owner.put('versioned', 'o000', b'new').status == 201
        fill(self.named, 'large', 11)
        fill(self.unknown, 'large', 11)

    def empty(self) -> None:
        """Delete objects that the account has counted."""
        for name in self.owner.listing('emptied').names():
            assert self.owner.delete('emptied', name).status == 204

    def options(self) -> dict:
        """Return options that leave out one of the owner's containers."""
        accounts = [each.account for each in (self.owner, self.named)]
        patterns = [f'{each}/[!l]*' for each in accounts]
        patterns += [f'{each}/large' for each in accounts]
        patterns.append(f'{self.unknown.account}/*')
        return {
            **AUTO,
            'containers': ' '.join(patterns),
            'accounts': self.named.account,
        }

    def counts(self) -> dict[str, int]:
        """Return the shard counts of the owner's containers."""
        names = self.owner.listing().names()
        return {name: shards_of(self.owner, name) for name in names}


@pytest.fixture(scope='module')
def grown(cluster, new_account, resharder) -> Iterator[Grown]:
    grown = Grown(new_account)
    cluster.daemon('container-updater')
    grown.empty()
    cluster.reconfigure({'shardmw.max_shards': '8'})
    resharder.once(**grown.options())
    yield grown
    cluster.reconfigure({'shardmw.max_shards': None})


class TestAutoReshard:
    """The daemon ran with 5 rows per shard and max_shards = 8."""

    def test_gives_a_plain_container_shards_for_twice_its_objects(self, grown):
        assert shards_of(grown.owner, 'large') == 8

    def test_gives_a_sharded_container_shards_for_twice_its_objects(
        self, grown
    ):
        assert shards_of(grown.owner, 'sharded') == 8

    def test_gives_no_more_than_max_shards(self, grown):
        assert shards_of(grown.owner, 'huge') == 8

    def test_leaves_a_container_of_just_enough_rows_alone(self, grown):
        assert shards_of(grown.owner, 'small') == 0

    def test_leaves_containers_alone_that_no_glob_matches(self, grown):
        assert shards_of(grown.owner, 'left-alone') == 0

    def test_goes_by_the_current_rows(self, grown):
        assert shards_of(grown.owner, 'emptied') == 0

    def test_takes_no_shards_away(self, grown):
        assert shards_of(grown.owner, 'wide') == 8

    def test_counts_old_versions(self, grown, admin):
        """The container has 2 objects, and its versions container has 7."""
        assert shards_of(grown.owner, 'versioned') == 4
        path = f'{grown.owner.account}/%00versions%00versioned'
        state = json.loads(admin('stat', path, '--json').stdout)
        assert len(state['shards']) == 4

    def test_looks_into_the_accounts_that_are_named(self, grown):
        assert shards_of(grown.named, 'large') == 8

    def test_does_not_know_other_accounts_without_sharded_containers(
        self, grown
    ):
        assert shards_of(grown.unknown, 'large') == 0

    def test_loses_no_object(self, grown):
        names = [f'o{i:03}' for i in range(18)]
        assert grown.owner.listing('sharded').names() == names

    def test_changes_a_container_once(self, cluster, grown, resharder):
        """The account lists its old and its new backing containers."""
        counts, options = grown.counts(), grown.options()
        assert 'begins to change' not in resharder.once(**options)
        cluster.daemon('container-updater')
        assert 'begins to change' not in resharder.once(**options)
        assert grown.counts() == counts


@pytest.fixture
def owner(cluster, client) -> Client:
    """The owner of containers with many shards, and with too few."""
    fill(client, 'wide', 3, headers=sharded(8))
    fill(client, 'less-wide', 3, headers=sharded(4))
    fill(client, 'large', 11)
    cluster.daemon('container-updater')
    return client


class TestMetrics:
    def test_report_rows_and_the_change(self, owner, admin, resharder):
        statsd = Statsd()
        admin.detach(owner, 'less-wide', 2)
        resharder.once(
            log_statsd_host='127.0.0.1',
            log_statsd_port=statsd.port,
            metric_containers=1000,
            rows_per_shard=ROWS_PER_SHARD,
        )
        counts = statsd.last()
        statsd.close()
        of = f'{owner.account}.{{}}'.format
        assert counts['rows_per_shard'] == ROWS_PER_SHARD
        assert counts[f'top.rows.{of("large")}'] == 11
        assert counts[f'top.shards.{of("large")}'] == 0
        assert counts[f'top.skew.{of("large")}'] == 1
        assert counts[f'top.shards.{of("wide")}'] == 8
        assert 8 / 3 <= counts[f'top.skew.{of("wide")}'] + 0.001 <= 8.001
        assert counts[f'reshard.waiting.{of("less-wide")}'] == 0
        moved = counts[f'reshard.moved.{of("less-wide")}']
        assert moved == counts[f'reshard.to_move.{of("less-wide")}'] == 3


class TestAutoShrink:
    def options(self, owner: Client) -> dict:
        return {**SHRINK, 'containers': f'{owner.account}/*'}

    def allow_fewer(self, owner: Client, admin: Admin) -> None:
        """Let the containers have fewer shards than the client asked for."""
        for name in ('wide', 'less-wide'):
            done = admin('floor', f'{owner.account}/{name}', '0')
            assert done.returncode == 0, done.stderr

    def test_leaves_the_shards_that_a_client_has_asked_for(
        self, owner, resharder
    ):
        resharder.once(**self.options(owner))
        assert shards_of(owner, 'wide') == 8

    def test_leaves_young_layouts_alone(self, owner, admin, resharder):
        self.allow_fewer(owner, admin)
        resharder.once(**{**self.options(owner), 'shrink_after_days': 1})
        assert shards_of(owner, 'wide') == 8

    def test_takes_shards_away_if_there_are_four_times_too_many(
        self, owner, admin, resharder
    ):
        self.allow_fewer(owner, admin)
        resharder.once(**self.options(owner))
        assert shards_of(owner, 'wide') == 2
        assert shards_of(owner, 'less-wide') == 4
        assert owner.listing('wide').names() == ['o000', 'o001', 'o002']
        assert shards_of(owner, 'large') == 0

    def test_goes_by_the_current_rows(self, client, resharder):
        """The account does not know of the rows yet."""
        fill(client, 'new', 15, headers=sharded(8))
        resharder.once(**self.options(client))
        assert shards_of(client, 'new') == 8


class TestBacklog:
    """A deletion is pending on an object server."""

    def options(self, owner: Client) -> dict:
        chosen = f'{owner.account}/*'
        return {**AUTO, 'containers': chosen, 'accounts': owner.account}

    def test_prevents_automatic_changes(
        self, cluster, client, admin, resharder
    ):
        names = fill(client, 'large', 11)
        cluster.daemon('object-updater')
        cluster.daemon('container-updater')
        delete_unheard(admin, f'{client.account}/large/{names.pop()}')
        options = {**self.options(client), 'despite_backlog': 'false'}
        told = 'no automatic change: object servers may have updates of '
        assert resharder.once(**options).count(told) == 1
        assert shards_of(client, 'large') == 0
        cluster.daemon('object-updater')
        assert told not in resharder.once(**options)
        assert shards_of(client, 'large') == 4
        assert client.listing('large').names() == names

    def test_is_ignored_if_the_operator_says_so(
        self, cluster, client, admin, resharder
    ):
        fill(client, 'large', 11)
        cluster.daemon('container-updater')
        delete_unheard(admin, f'{client.account}/large/o000')
        resharder.once(**self.options(client))
        assert shards_of(client, 'large') > 0
        cluster.daemon('object-updater')


class TestSeveralDaemons:
    def test_share_the_containers(self, cluster, admin, resharder):
        url = logins(cluster)(RESELLER_ADMIN).storage_url
        token = logins(cluster)(RESELLER_ADMIN).token
        owner = Client(f'{url.rpartition("/")[0]}/AUTH_shared', token)
        containers = ['a', 'b', 'c', 'd']
        for container in containers:
            fill(owner, container, 2)
            admin.detach(owner, container, 2)
        resharder.once(processes=2, process=0)
        changed = [c for c in containers if shards_of(owner, c) == 2]
        assert 0 < len(changed) < len(containers)
        resharder.once(processes=2, process=1)
        assert [shards_of(owner, c) for c in containers] == [2] * 4

    def test_that_make_the_same_change_do_no_harm(
        self, cluster, client, admin, resharder
    ):
        names = [f'o{i}' for i in range(12)]
        assert client.put('shared').status == 201

        def login() -> Client:
            return Client(client.storage_url, client.token)

        with (
            resharder.running(),
            resharder.running(),
            Clients([login], 'shared', names, 1) as work,
        ):
            for shards in (4, 0):
                admin.detach(client, 'shared', shards)
                wait_until(lambda: is_done(admin, client, 'shared'))
        history = work.history
        # Object servers refuse some concurrent requests for one object.
        assert 'page: 503' not in history.refused
        wrong = history.violations()
        assert [history.text(each) for each in wrong[:1]] == []
        left = [n for n in names if client.head('shared', n).status == 200]
        assert client.listing('shared').names() == sorted(left)
        assert shards_of(client, 'shared') == 0


def is_done(admin: Admin, client: Client, container: str) -> bool:
    """Return True if the change of a container is over."""
    return admin.changes(client)[container]['phase'] == 'done'


class TestDaemonGoesOn:
    """The daemon goes on with changes that others have begun."""

    def test_with_a_change_whose_command_and_daemon_were_killed(
        self, client, admin, resharder
    ):
        names = fill(client, 'c', 40)
        path = f'{client.account}/c'
        command = admin.start('reshard', path, '4', '--rows-per-second', '2')
        wait_until(lambda: 'c' in admin.changes(client))
        command.send_signal(signal.SIGKILL)
        command.communicate()
        with resharder.running(rows_per_second=2) as daemon:
            daemon.wait_until_it_logs(f'{path}: moving')
            daemon.process.send_signal(signal.SIGKILL)
        assert 0 < admin.changes(client)['c']['rows_left'] <= 40
        with resharder.running() as daemon:
            daemon.wait_until_it_logs(f'{path}: done')
        assert shards_of(client, 'c') == 4
        assert client.listing('c').names() == names

    def test_with_a_change_whose_command_was_killed_as_it_cleaned_up(
        self, client, admin, resharder, backing
    ):
        names = fill(client, 'c', 3, headers=sharded(4))
        path = f'{client.account}/c'
        command = admin.start('reshard', path, '2', '--settle-seconds', '0')
        assert any('cleaning up' in line for line in command.stderr)
        command.send_signal(signal.SIGKILL)
        command.communicate()
        assert is_done(admin, client, 'c')
        assert len(backing.layout_ids('c')) == 2
        resharder.once()
        assert len(backing.layout_ids('c')) == 1
        assert client.listing('c').names() == names

    def test_with_a_change_that_is_announced_while_it_runs(
        self, client, admin, resharder
    ):
        fill(client, 'c', 3)
        with resharder.running():
            for shards in (4, 2):
                admin.detach(client, 'c', shards)
                wait_until(lambda: is_done(admin, client, 'c'))
                assert shards_of(client, 'c') == shards

    def test_with_a_change_that_has_been_cancelled(
        self, client, admin, resharder
    ):
        names = fill(client, 'c', 40)
        path = f'{client.account}/c'
        admin.detach(client, 'c', 4)
        with resharder.running(rows_per_second=2) as daemon:
            daemon.wait_until_it_logs(f'{path}: moving')
            assert admin('cancel', path, '--detach').returncode == 0
            wait_until(lambda: is_done(admin, client, 'c'))
        assert shards_of(client, 'c') == 0
        assert client.listing('c').names() == names

    def test_with_one_container_after_the_other(
        self, client, admin, resharder
    ):
        """With concurrency = 1, earlier changes do not count."""
        for container in ('a', 'b', 'c', 'd'):
            fill(client, container, 3)
        for container in ('a', 'b'):
            admin.detach(client, container, 2)
        resharder.once()
        for container in ('c', 'd'):
            admin.detach(client, container, 2)
        with resharder.running(concurrency=1, rows_per_second=1) as daemon:
            wait_until(lambda: is_done(admin, client, 'c'))
            wait_until(lambda: is_done(admin, client, 'd'))
            phases = MOVING.findall(daemon.log())
        first, second = phases[0][0], phases[2][0]
        assert {first, second} == {'c', 'd'}
        assert phases == [
            (first, 'moving'),
            (first, 'settling'),
            (second, 'moving'),
            (second, 'settling'),
        ]


class TestLateRows:
    """Rows that arrive after the change is done."""

    @pytest.fixture
    def changed(self, client, backing, admin, resharder) -> str:
        """The former shard 3 of a container that had 4 shards and has 2."""
        fill(client, 'c', 3, headers=sharded(4))
        former = backing.shard_name('c', 3)
        admin.detach(client, 'c', 2)
        resharder.once()
        assert shards_of(client, 'c') == 2
        return former

    def test_of_a_former_shard_are_moved(
        self, cluster, client, changed, resharder
    ):
        hidden = hidden_account(client.account)
        put_rows(cluster, hidden, changed, ['late'])
        cluster.daemon('container-updater')
        log = resharder.once()
        assert 'c: settled: 1 late rows and 0 strays moved' in log
        assert 'late' in client.listing('c').names()

    def test_of_the_root_are_moved(
        self, cluster, client, changed, resharder, backing
    ):
        put_rows(cluster, client.account, 'c', ['late'])
        cluster.daemon('container-updater')
        log = resharder.once()
        assert 'c: settled: 0 late rows and 1 strays moved' in log
        assert backing.root_names('c') == []
        assert 'late' in client.listing('c').names()

    def test_are_looked_for_once_per_interval(
        self, cluster, client, changed, resharder
    ):
        moved = f'{client.account}/c: settled: 0 late rows and 1 strays moved'
        with resharder.running(late_rows_interval=3) as daemon:
            for number, name in enumerate(('late', 'later'), 1):
                put_rows(cluster, client.account, 'c', [name])
                cluster.daemon('container-updater')
                wait_until(lambda n=number: daemon.log().count(moved) == n)

    def test_keep_a_change_listed_for_the_reclaim_age(
        self, client, changed, admin, resharder
    ):
        resharder.once()
        assert admin.changes(client)['c']['phase'] == 'done'
        with resharder.running(reclaim_age=0):
            wait_until(lambda: 'c' not in admin.changes(client))


class TestFailures:
    def test_of_a_container_do_not_hold_up_others(
        self, cluster, client, admin, resharder, backing
    ):
        for container in ('damaged', 'missing', 'sound'):
            fill(client, container, 3)
            admin.detach(client, container, 2)
        write_record(cluster, client.account, 'damaged', '{"version": 9}')
        for name in client.listing('missing').names():
            assert client.delete('missing', name).status == 204
        backing.delete_root('missing')
        log = resharder.once(concurrency=1)
        assert shards_of(client, 'sound') == 2
        name = f'{client.account}/damaged'
        assert f'{name}: layout record: version 9, this release' in log
        changes = admin.changes(client)
        assert 'version 9' in changes['damaged']['phase']
        assert 'missing' not in changes

    def test_of_a_container_do_not_hold_up_the_growth_of_others(
        self, cluster, client, resharder
    ):
        fill(client, 'damaged', 11, headers=sharded(2))
        fill(client, 'sound', 11)
        write_record(cluster, client.account, 'damaged', '{"version": 9}')
        cluster.daemon('container-updater')
        resharder.once(**AUTO, containers=f'{client.account}/*')
        assert shards_of(client, 'sound') == 8

    def test_of_a_server_make_a_change_wait(
        self, cluster, client, admin, resharder
    ):
        fill(client, 'c', 3)
        admin.detach(client, 'c', 2)
        with resharder.running() as daemon:
            daemon.wait_until_it_logs(f'{client.account}/c: announced')
            cluster.pause('container-1')
            daemon.wait_until_it_logs(f'{client.account}/c: waiting: ')
            cluster.resume('container-1')
            daemon.wait_until_it_logs(f'{client.account}/c: done')
        assert shards_of(client, 'c') == 2


def test_sigterm_ends_it_in_the_middle_of_a_change(client, admin, resharder):
    fill(client, 'c', 12)
    admin.detach(client, 'c', 2)
    with resharder.running(rows_per_second=1) as daemon:
        daemon.wait_until_it_logs(f'{client.account}/c: moving')
        os.killpg(daemon.process.pid, signal.SIGTERM)
        assert daemon.process.wait(10) == 0
    assert admin.changes(client)['c']['phase'] == 'moving'
