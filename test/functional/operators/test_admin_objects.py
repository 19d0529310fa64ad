# SPDX-License-Identifier: Apache-2.0
"""The commands for all objects of a container: export and empty."""

import csv
import io
import json
import signal

import pytest

from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER, unique
from test.functional.operating import (
    Admin,
    delete_unheard,
    wait_for_phase,
)
from test.functional.test_large_objects import (
    PARTS,
    PUT_MANIFEST,
    manifest_of,
    put_manifest,
    put_segments,
)

SHARDS = 4
NAMES = [f'{directory}/o{i:02}' for directory in 'ab' for i in range(20)]

VERSIONED = {'X-Versions-Enabled': 'true'}

#: How many objects a container has that takes seconds to empty.
MANY = 300

#: How many objects the command deletes at once.
AT_ONCE = 16


def make(client: Client, shards: int, names=NAMES) -> str:
    container = unique('objects')
    headers = {SHARD_COUNT_HEADER: str(shards)} if shards else {}
    assert client.put(container, headers=headers).status == 201
    for name in names:
        assert client.put(container, name, b'12345').status == 201
    return container


@pytest.fixture(params=[0, SHARDS], ids=['plain', 'sharded'])
def filled(request, client) -> str:
    """A container with the objects of NAMES."""
    return make(client, request.param)


def path_of(client: Client, container: str) -> str:
    return f'{client.account}/{container}'


def ran(admin: Admin, *arguments: str) -> str:
    """Run a command that succeeds; return what it prints."""
    done = admin(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def emptied(admin: Admin, *arguments: str) -> dict:
    return json.loads(ran(admin, 'empty', *arguments, '--yes', '--json'))


class TestExport:
    def test_has_all_objects_in_order(self, admin, client, filled):
        text = ran(admin, 'export', path_of(client, filled))
        assert text.splitlines() == NAMES

    def test_in_no_order_has_all_objects_once(self, admin, client, filled):
        where = path_of(client, filled)
        text = ran(admin, 'export', where, '--unordered')
        assert sorted(text.splitlines()) == NAMES

    def test_of_a_prefix_has_its_objects(self, admin, client, filled):
        text = ran(admin, 'export', path_of(client, filled), '--prefix', 'b/')
        assert text.splitlines() == [n for n in NAMES if n.startswith('b/')]

    def test_as_csv_has_what_the_listing_has(self, admin, client, filled):
        where = path_of(client, filled)
        text = ran(admin, 'export', where, '--format', 'csv')
        listed = client.listing(filled, format='json').json()
        assert [*csv.DictReader(io.StringIO(text))] == [
            {
                'name': row['name'],
                'size': str(row['bytes']),
                'etag': row['hash'],
                'time': row['last_modified'],
                'type': row['content_type'],
            }
            for row in listed
        ]

    @pytest.mark.parametrize('order', [[], ['--unordered']])
    def test_to_a_file_is_whole(self, admin, client, filled, tmp_path, order):
        where, path = path_of(client, filled), tmp_path / 'names'
        ran(admin, 'export', where, '--output', str(path), *order)
        assert sorted(path.read_text().splitlines()) == NAMES
        assert [*tmp_path.iterdir()] == [path]

    def test_as_parquet_has_all_objects(self, admin, client, filled, tmp_path):
        from pyarrow import parquet

        path = tmp_path / 'names'
        where = path_of(client, filled)
        to = ('--format', 'parquet', '--output', str(path))
        ran(admin, 'export', where, *to)
        assert parquet.read_table(path)['name'].to_pylist() == NAMES

    def test_in_no_order_is_refused_while_rows_may_be_in_two_places(
        self, admin, client, unfiltered_proxy
    ):
        container = make(client, SHARDS)
        other = client.on(unfiltered_proxy)
        assert other.put(container, 'stray', b'x').status == 201
        where = path_of(client, container)
        done = admin('export', where, '--unordered')
        assert done.returncode == 1
        assert 'leave --unordered out' in done.stderr
        text = ran(admin, 'export', where)
        assert text.splitlines() == [*NAMES, 'stray']

    @pytest.mark.parametrize(
        ('options', 'message'),
        [
            (['-0', '--json'], 'exclude each other'),
            (['--json', '--format', 'csv'], 'exclude each other'),
            (['--format', 'parquet'], 'needs --output'),
        ],
    )
    def test_refuses_options_that_contradict(self, admin, options, message):
        done = admin('export', 'a/c', *options)
        assert (done.returncode, done.stdout) == (2, '')
        assert message in done.stderr


class TestEmpty:
    def test_deletes_all_objects(self, admin, client, filled):
        done = emptied(admin, path_of(client, filled))
        assert done['objects'] == len(NAMES)
        assert done['bytes'] == 5 * len(NAMES)
        assert done['failed'] == 0
        assert client.listing(filled).names() == []
        assert client.get(filled, NAMES[0]).status == 404
        assert client.head(filled).headers['x-container-object-count'] == '0'
        assert client.delete(filled).status == 204

    def test_of_a_prefix_deletes_its_objects(self, admin, client, filled):
        done = emptied(admin, path_of(client, filled), '--prefix', 'a/')
        assert done['objects'] == 20
        assert client.listing(filled).names() == NAMES[20:]

    def test_in_parts_deletes_all_objects(self, admin, client, filled):
        where = path_of(client, filled)
        done = [emptied(admin, where, '--part', f'{i}/3') for i in (1, 2, 3)]
        assert sum(each['objects'] for each in done) == len(NAMES)
        assert client.listing(filled).names() == []

    @pytest.mark.parametrize('part', ['0/3', '4/3', '1', 'a/b', '1/0'])
    def test_refuses_parts_that_do_not_exist(self, admin, part):
        done = admin('empty', 'a/c', '--part', part)
        assert (done.returncode, done.stdout) == (2, '')
        assert 'not K/N' in done.stderr

    def test_in_a_dry_run_deletes_nothing(self, admin, client, filled):
        where = path_of(client, filled)
        text = ran(admin, 'empty', where, '--dry-run', '--prefix', 'a/')
        assert text == f'{where}: 20 objects, 100 bytes\n'
        assert client.listing(filled).names() == NAMES

    def test_needs_a_confirmation(self, admin, client, filled):
        done = admin('empty', path_of(client, filled))
        assert done.returncode == 1
        assert 'Delete all objects of' in done.stderr
        assert client.listing(filled).names() == NAMES

    def test_goes_on_after_an_interruption(self, admin, client):
        names = [f'o{i:03}' for i in range(MANY)]
        container = make(client, SHARDS, names)
        where = path_of(client, container)
        slowly = ('--objects-per-second', '50', '--yes', '--json')
        started = admin.start('empty', where, *slowly)
        wait_for_phase(started, '"objects"')
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)
        assert started.returncode == 1
        left = client.listing(container).names()
        assert 0 < len(left) < MANY
        done = emptied(admin, where)
        # Servers go on with the deletions that were under way.
        assert 0 <= len(left) - done['objects'] <= AT_ONCE
        assert client.listing(container).names() == []

    def test_leaves_what_clients_write_meanwhile(self, admin, client):
        names = [f'o{i:03}' for i in range(MANY)]
        container = make(client, SHARDS, names)
        where = path_of(client, container)
        slowly = ('--objects-per-second', '100', '--yes', '--json')
        started = admin.start('empty', where, *slowly)
        wait_for_phase(started, '"objects"')
        for name in names[::10]:
            assert client.put(container, name, b'new').status == 201
        output, errors = started.communicate(timeout=60)
        assert started.returncode == 0, errors
        assert json.loads(output)['failed'] == 0
        assert client.listing(container).names() == names[::10]
        assert client.get(container, names[0]).body == b'new'

    def test_removes_rows_whose_objects_are_gone(self, cluster, admin, client):
        container = make(client, SHARDS)
        delete_unheard(admin, f'{path_of(client, container)}/{NAMES[0]}')
        assert NAMES[0] in client.listing(container).names()
        emptied(admin, path_of(client, container))
        assert client.listing(container).names() == []
        # Later tests need object servers without pending updates.
        cluster.daemon('object-updater')

    def test_of_a_container_whose_layout_changes_deletes_all(
        self, admin, client
    ):
        container = make(client, SHARDS)
        admin.detach(client, container, 2 * SHARDS)
        assert client.put(container, 'new', b'12345').status == 201
        emptied(admin, path_of(client, container))
        assert client.listing(container).names() == []

    def test_deletes_segments_if_asked(self, admin, client):
        container, segments = make(client, SHARDS), make(client, SHARDS, [])
        put_segments(client, segments)
        manifest = manifest_of(segments)
        put_manifest(client, container, 'large', manifest)
        nested = [{'path': f'/{container}/large'}]
        put_manifest(client, segments, 'whole', json.dumps(nested))
        done = emptied(admin, path_of(client, container), '--segments')
        assert done['segments'] == len(PARTS)
        assert done['objects'] == len(NAMES) + 1
        assert client.listing(segments).names() == ['whole']

    def test_deletes_the_segments_of_nested_manifests(self, admin, client):
        container, segments = make(client, SHARDS, []), make(client, 0, [])
        put_segments(client, segments)
        put_manifest(client, segments, 'part', manifest_of(segments))
        nested = json.dumps([{'path': f'/{segments}/part'}]).encode()
        answer = client.put(container, 'whole', nested, query=PUT_MANIFEST)
        assert answer.status == 201
        done = emptied(admin, path_of(client, container), '--segments')
        assert done['segments'] == len(PARTS) + 1
        assert client.listing(segments).names() == []

    def test_leaves_segments_alone_if_not_asked(self, admin, client):
        container, segments = make(client, SHARDS, []), make(client, 0, [])
        put_segments(client, segments)
        put_manifest(client, container, 'large', manifest_of(segments))
        emptied(admin, path_of(client, container))
        assert len(client.listing(segments).names()) == len(PARTS)

    def test_deletes_old_versions_only_if_asked(self, admin, client):
        container = make(client, SHARDS, [])
        assert client.post(container, headers=VERSIONED).status == 204
        for body in (b'1', b'2', b'3'):
            assert client.put(container, 'o', body).status == 201
        where = path_of(client, container)
        refused = admin('empty', where, '--yes')
        assert refused.returncode == 1
        assert '--versions deletes them' in refused.stderr
        assert client.get(container, 'o').body == b'3'
        done = emptied(admin, where, '--versions')
        assert done['objects'] == 4
        versions = client.get(container, query={'versions': 'true'})
        assert versions.json() == []

    def test_deletes_the_old_versions_of_a_prefix(self, admin, client):
        container = make(client, SHARDS, [])
        assert client.post(container, headers=VERSIONED).status == 204
        for name in ('a/o', 'b/o'):
            for body in (b'1', b'2'):
                assert client.put(container, name, body).status == 201
        options = ('--versions', '--prefix', 'a/')
        done = emptied(admin, path_of(client, container), *options)
        assert done['objects'] == 3
        versions = client.get(container, query={'versions': 'true'})
        assert versions.names() == ['b/o', 'b/o']

    def test_takes_segments_that_are_gone_for_deleted(self, admin, client):
        container, segments = make(client, SHARDS, []), make(client, 0, [])
        put_segments(client, segments)
        put_manifest(client, segments, 'part', manifest_of(segments))
        nested = [{'path': f'/{segments}/part'}] * 2
        put_manifest(client, container, 'whole', json.dumps(nested))
        done = emptied(admin, path_of(client, container), '--segments')
        assert (done['objects'], done['failed']) == (1, 0)
        assert client.listing(segments).names() == []

    def test_names_objects_that_cannot_be_deleted(
        self, admin, client, cluster
    ):
        container = make(client, SHARDS)
        where = path_of(client, container)
        cluster.stop('object-1')
        try:
            done = admin('empty', where, '--yes')
        finally:
            cluster.start('object-1')
        assert done.returncode == 1
        assert f'{len(NAMES)} failed: run the command again' in done.stdout
        assert done.stderr.count('Error: ') == 5
        assert client.listing(container).names() == NAMES
        assert emptied(admin, where)['objects'] == len(NAMES)
