# SPDX-License-Identifier: Apache-2.0
"""The filter is added to a cluster that is in use, and removed again.

The steps are those of doc/operating.md. While the filter is there, the
commands of the pages are run, too.
"""

import configparser
import functools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.client import Client
from test.functional.conftest import (
    OTHER_OWNER,
    SHARD_COUNT_HEADER,
    USER,
    logins,
)
from test.functional.documents import Reader, blocks
from test.functional.operating import (
    SETTINGS,
    Admin,
    fill,
    shards_of,
)
from test.functional.realclients import s3_client

FILTERS = ('shardmw', 'shardmw-listings')
DAEMON_CONFS = (
    'internal-client.conf',
    'object-expirer.conf',
    'container-reconciler.conf',
)
VERSIONED = 'pictures'
BUCKET = 'bucket'
PART = b'p' * (5 << 20)

#: The pages whose commands are run, one after the other.
PAGES = ('README.md', 'doc/operating.md', 'doc/clients.md', 'doc/design.md')

#: Containers that are older than the filter, and their new shard counts.
COUNTS = {'logs': 4, VERSIONED: 3, BUCKET: 4, f'{BUCKET}+segments': 2}


class Operator:
    """Adds the filter to the configurations of a cluster, and removes it.

    The embedded Swift has written them with the filter.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._confs = {
            name: (cluster.swift_dir / name).read_text()
            for name in ('proxy-1.conf', *DAEMON_CONFS)
        }

    def remove_filter(self) -> None:
        for name, text in self._confs.items():
            conf = _parsed(text)
            pipeline = conf['pipeline:main']['pipeline'].split()
            kept = [each for each in pipeline if each not in FILTERS]
            conf['pipeline:main']['pipeline'] = ' '.join(kept)
            self._write(name, conf)
        self._reload()

    def add_filter(self, **options: str) -> None:
        """Add the filter to all pipelines, with some options."""
        for name, text in self._confs.items():
            conf = _parsed(text)
            conf['filter:shardmw'].update(options)
            self._write(name, conf)
        self._reload()

    def _write(self, name: str, conf: configparser.RawConfigParser) -> None:
        with (self.cluster.swift_dir / name).open('w') as file:
            conf.write(file)

    def _reload(self) -> None:
        self.cluster.stop('proxy-1')
        self.cluster.start('proxy-1')


def _parsed(text: str) -> configparser.RawConfigParser:
    conf = configparser.RawConfigParser()
    conf.optionxform = str
    conf.read_string(text)
    return conf


class Rollout:
    """A cluster before, with and after the filter.

    :ivar before: the account's contents before the filter
    :ivar closed: the contents with the filter and ``max_shards = 0``
    :ivar refused: the answers to a creation with a shard count and to a
                   conversion while ``max_shards = 0``
    :ivar plain: the shard count of a container created at that time
    :ivar counts: the shard counts after the conversions, by container
    :ivar converted: the contents after the conversions
    :ivar used: the contents after clients have changed them
    :ivar failed: the output of the pages' blocks that failed
    :ivar bucket_shards: the shard count of the README's bucket
    :ivar checked: containers that the installation check has left behind
    :ivar accounts: the accounts that the commands for cron have found
    :ivar listed: the names that ``list`` showed before the uninstallation
    :ivar audited: the findings of ``audit`` once all containers are plain
    :ivar left: the output of ``list`` and ``status`` at that time
    :ivar after: the contents after the filter was removed
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.client = logins(cluster)(OTHER_OWNER)
        self.account = self.client.account
        self.admin = Admin(cluster)
        self.operator = Operator(cluster)
        self.s3 = s3_client(cluster, OTHER_OWNER)
        self.reading = logins(cluster)(USER)
        self._folder = folder

    def run(self) -> None:
        self.operator.remove_filter()
        self._fill()
        self.before = self.contents()
        self._install()
        self.operator.add_filter()
        self._convert()
        self._use()
        self._read()
        self._uninstall()
        self.after = self.contents()

    def _read(self) -> None:
        """Run the pages' blocks in an account of their own."""
        fill(self.reading, 'archive', 3)
        self.cluster.daemon('shardmw-resharder')
        reader = Reader(self.cluster, self.reading.account, self._folder)
        self.failed = {
            f'{block.page}:{block.line}': printed
            for page in PAGES
            for block in blocks(page)
            if (printed := reader.run(block))
        }
        self.bucket_shards = shards_of(self.reading, 'photos')
        self.checked = [
            name
            for name in self.reading.listing().names()
            if name.startswith('shardmw-doctor')
        ]
        self.accounts = (self._folder / 'accounts').read_text().split()

    def _fill(self) -> None:
        fill(self.client, 'logs', 20)
        fill(self.client, VERSIONED, 3)
        enabled = {'X-Versions-Enabled': 'true'}
        assert self.client.post(VERSIONED, headers=enabled).status == 204
        for name in ('o000', 'o001'):
            assert self.client.put(VERSIONED, name, b'newer').status == 201
        self.s3.create_bucket(Bucket=BUCKET)
        self._upload('first')

    def _upload(self, key: str) -> None:
        """Upload an object in two parts by S3."""
        target = {'Bucket': BUCKET, 'Key': key}
        upload = self.s3.create_multipart_upload(**target)
        target['UploadId'] = upload['UploadId']
        parts = [
            {
                'PartNumber': number,
                'ETag': self.s3.upload_part(
                    **target, PartNumber=number, Body=body
                )['ETag'],
            }
            for number, body in ((1, PART), (2, key.encode()))
        ]
        self.s3.complete_multipart_upload(
            **target, MultipartUpload={'Parts': parts}
        )

    def _install(self) -> None:
        self.operator.add_filter(max_shards='0')
        self.closed = self.contents()
        count = {SHARD_COUNT_HEADER: '4'}
        self.refused = (
            self.client.put('new', headers=count),
            self.admin('reshard', f'{self.account}/logs', '4'),
        )
        fill(self.client, 'plain', 2)
        self.plain = shards_of(self.client, 'plain')

    def _convert(self) -> None:
        before = self.contents()
        self._reshard(COUNTS)
        self.counts = {
            name: shards_of(self.client, name)
            for name in self.client.listing().names()
        }
        self.converted = self.contents()
        self.is_same = self.converted == before

    def _reshard(self, counts: dict[str, int]) -> None:
        """Change the layouts of several containers at the same time."""
        change = functools.partial(self.admin.reshard, self.client)
        with ThreadPoolExecutor() as pool:
            list(pool.map(change, counts, counts.values()))

    def _use(self) -> None:
        client = self.client
        fill(client, 'new', 5, headers={SHARD_COUNT_HEADER: '4'})
        assert client.put('logs', 'later', b'more').status == 201
        assert client.delete('logs', 'o000').status == 204
        assert client.put(VERSIONED, 'o000', b'newest').status == 201
        assert client.delete(VERSIONED, 'o001').status == 204
        self._upload('second')
        self.used = self.contents()
        self.cluster.daemon('container-updater')
        self.listed = self._listed()

    def _uninstall(self) -> None:
        self.operator.add_filter(max_shards='0', default_shards='0')
        versions = [name for name in self.listed if name.startswith('\0')]
        for name in versions:
            self.admin.reshard(self.client, name.replace('\0', '%00'), 0)
        others = set(self.listed).difference(versions)
        self._reshard(dict.fromkeys(others, 0))
        ran = self.admin('audit', '--account', self.account, '--objects')
        self.audited = (ran.returncode, ran.stdout)
        phases = {
            each['phase'] for each in self.admin.changes(self.client).values()
        }
        self.left = (self._listed(), phases)
        self.operator.remove_filter()

    def _listed(self) -> list[str]:
        ran = self.admin('list', self.account, '--json')
        assert ran.returncode == 0, ran.stderr
        return [each['container'] for each in json.loads(ran.stdout)]

    def contents(self) -> dict:
        """Return what clients see in each container."""
        return {
            name: self._content(name) for name in self.client.listing().names()
        }

    def _content(self, container: str) -> dict:
        client = self.client
        rows = client.listing(container).json()
        headers = client.head(container).headers
        versions = client.listing(container, versions='true')
        return {
            'rows': rows,
            'objects': int(headers['x-container-object-count']),
            'bytes': int(headers['x-container-bytes-used']),
            'policy': headers['x-storage-policy'],
            'bodies': {
                row['name']: client.get(container, row['name']).body
                for row in rows
            },
            'versions': versions.json() if versions.status == 200 else None,
        }


@pytest.fixture(scope='module')
def rollout(tmp_path_factory) -> Iterator[Rollout]:
    options = ClusterOptions(settings=SETTINGS)
    with Cluster(tmp_path_factory.mktemp('rollout'), options) as cluster:
        rollout = Rollout(cluster, tmp_path_factory.mktemp('reader'))
        rollout.run()
        yield rollout


class TestBeforeTheFilterIsEverywhere:
    def test_containers_are_as_before(self, rollout):
        assert rollout.closed == rollout.before

    def test_a_count_of_a_client_is_refused(self, rollout):
        answer, _ = rollout.refused
        assert answer.status == 400
        assert 'is not allowed in this cluster' in answer.text

    def test_a_conversion_is_refused(self, rollout):
        _, ran = rollout.refused
        assert ran.returncode == 1
        name = f'{rollout.account}/logs'
        assert ran.stderr.startswith(
            f'Error: {name}: 4 shards are more than max_shards = 0 allows'
        )

    def test_new_containers_are_plain(self, rollout):
        assert rollout.plain == 0


class TestConversion:
    def test_gives_each_container_its_count(self, rollout):
        assert rollout.counts == {**COUNTS, 'plain': 0}

    def test_shows_clients_the_same(self, rollout):
        assert rollout.is_same


class TestPages:
    def test_have_commands_that_succeed(self, rollout):
        assert rollout.failed == {}

    def test_leave_no_container_of_the_installation_check(self, rollout):
        assert rollout.checked == []

    def test_find_all_accounts_of_a_cluster(self, rollout):
        found = {rollout.account, rollout.reading.account}
        assert found <= {*rollout.accounts}
        assert not any(name.startswith('.') for name in rollout.accounts)

    def test_shard_a_bucket_by_boto3(self, rollout):
        assert rollout.bucket_shards == 32


class TestUse:
    def test_changes_the_contents(self, rollout):
        used = rollout.used
        names = [row['name'] for row in used['logs']['rows']]
        assert names == ['later', *(f'o{i:03}' for i in range(1, 20))]
        assert used[BUCKET]['bodies']['second'] == PART + b'second'
        assert len(used[VERSIONED]['versions']) == 7

    def test_shows_all_sharded_containers_in_the_list(self, rollout):
        versions = f'\0versions\0{VERSIONED}'
        assert sorted(rollout.listed) == sorted([*COUNTS, 'new', versions])


class TestUninstall:
    def test_leaves_no_sharded_container_and_no_change(self, rollout):
        assert rollout.left == ([], {'done'})

    def test_leaves_nothing_for_the_audit(self, rollout):
        assert rollout.audited == (0, '')

    def test_shows_clients_the_same_without_the_filter(self, rollout):
        assert rollout.after == rollout.used

    def test_leaves_right_sums(self, rollout):
        for content in rollout.after.values():
            assert content['objects'] == len(content['rows'])

    def test_leaves_parts_where_s3_finds_them(self, rollout):
        for key in ('first', 'second'):
            got = rollout.s3.get_object(Bucket=BUCKET, Key=key)
            assert got['Body'].read() == PART + key.encode()

    def test_leaves_containers_that_can_be_used(self, rollout):
        client = rollout.client
        for container in ('logs', 'new', VERSIONED):
            assert client.put(container, 'last', b'x').status == 201
            assert 'last' in client.listing(container).names()
            assert client.delete(container, 'o002').status == 204
            assert 'o002' not in client.listing(container).names()

    def test_leaves_containers_that_can_be_deleted(self, rollout):
        client: Client = rollout.client
        assert client.delete('plain', 'o000').status == 204
        assert client.delete('plain').status == 409
        for name in client.listing('new').names():
            assert client.delete('new', name).status == 204
        assert client.delete('new').status == 204
        assert client.head('new').status == 404
