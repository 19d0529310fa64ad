# SPDX-License-Identifier: Apache-2.0
"""The program ``swift``, on sharded containers.

Plain containers are tested only where their answers could differ, as each
command takes half a second.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from test.functional.alike import make_twins
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
    SHARDS,
    STORED_BODY,
    STRANGER,
    USER,
    Pair,
    make_sharded,
    unique,
)
from test.functional.realclients import (
    FILES,
    SwiftProgram,
    names_in,
    read_tree,
    store,
    timestamp_of,
    write_tree,
)


@pytest.fixture(scope='module')
def swift(cluster) -> SwiftProgram:
    """The program, run by the owner of the tests' account."""
    return SwiftProgram.for_owner(cluster)


@pytest.fixture
def container(sharded) -> str:
    """A new sharded container."""
    return sharded


@pytest.fixture(scope='class')
def lasting(login) -> str:
    """A sharded container for all tests of a class."""
    return make_sharded(login(USER))


@pytest.fixture(scope='module')
def tree(tmp_path_factory) -> Path:
    """A folder with files of all sorts."""
    folder = tmp_path_factory.mktemp('tree')
    write_tree(folder, FILES)
    return folder


@pytest.fixture
def file(tmp_path) -> Path:
    """A file that a test may change, ``o``."""
    path = tmp_path / 'o'
    path.write_bytes(STORED_BODY)
    return path


class TestUpload:
    def test_of_a_tree_stores_every_file(self, client, swift, container, tree):
        swift('upload', container, '.', cwd=tree)
        assert names_in(client, container) == list(FILES)
        stored = {name: client.get(container, name).body for name in FILES}
        assert stored == FILES

    def test_leaves_the_container_as_it_is(self, client, swift, sharded, file):
        swift('upload', sharded, 'o', cwd=file.parent)
        headers = client.head(sharded).headers
        assert headers[SHARD_COUNT_HEADER.lower()] == str(SHARDS)

    def test_of_a_tree_adds_the_object_name(
        self, client, swift, container, tree
    ):
        swift('upload', container, str(tree), '--object-name', 'b ☃/c')
        assert names_in(client, container) == [f'b ☃/c/{n}' for n in FILES]

    def test_of_an_empty_folder_stores_a_marker(
        self, client, swift, container, tmp_path
    ):
        (tmp_path / 'folder').mkdir()
        swift('upload', container, 'folder', cwd=tmp_path)
        (row,) = client.listing(container).json()
        assert row['name'] == 'folder'
        assert row['content_type'] == 'application/directory'

    def test_of_the_standard_input_stores_it(self, client, swift, container):
        name = ('--object-name', 'a/o')
        swift('upload', container, '-', *name, sent=b'piped')
        assert client.get(container, 'a/o').body == b'piped'

    def test_with_metadata_and_headers_stores_both(
        self, client, swift, container, file
    ):
        more = ('-m', 'Colour:blue', '-H', 'Content-Type:text/x-own')
        swift('upload', container, 'o', *more, cwd=file.parent)
        headers = client.head(container, 'o').headers
        assert headers['x-object-meta-colour'] == 'blue'
        assert headers['content-type'] == 'text/x-own'
        assert 'x-object-meta-mtime' in headers

    def test_with_a_shard_count_is_refused_with_advice(
        self, client, swift, container, file
    ):
        """The program sends the header only with the object."""
        count = f'{SHARD_COUNT_HEADER}: 4'
        done = swift.run(
            'upload', container, 'o', '-H', count, cwd=file.parent
        )
        assert done.returncode == 1
        assert b'400 Bad Request' in done.stderr
        assert b'X-Container-Shard-Count is for containers' in done.stderr
        assert client.head(container, 'o').status == 404

    @pytest.mark.parametrize('option', ['--changed', '--skip-identical'])
    def test_of_an_unchanged_file_stores_nothing(
        self, client, swift, container, file, option
    ):
        swift('upload', container, 'o', cwd=file.parent)
        before = timestamp_of(client, container, 'o')
        swift('upload', option, container, 'o', cwd=file.parent)
        assert timestamp_of(client, container, 'o') == before

    @pytest.mark.parametrize('option', ['--changed', '--skip-identical'])
    def test_of_a_changed_file_stores_it(
        self, client, swift, container, file, option
    ):
        swift('upload', container, 'o', cwd=file.parent)
        file.write_bytes(b'changed')
        swift('upload', option, container, 'o', cwd=file.parent)
        assert client.get(container, 'o').body == b'changed'


@pytest.fixture(scope='class')
def filled(swift, lasting, tree) -> str:
    """A container that the tree was uploaded into."""
    swift('upload', lasting, '.', cwd=tree)
    return lasting


class TestDownload:
    def test_of_a_container_gives_every_file_back(
        self, swift, filled, tmp_path
    ):
        swift('download', filled, cwd=tmp_path)
        assert read_tree(tmp_path) == FILES

    def test_of_objects_by_name_gets_these(self, swift, filled, tmp_path):
        swift('download', filled, 'empty', 'ü/☃.txt', '-D', str(tmp_path))
        wanted = {name: FILES[name] for name in ('empty', 'ü/☃.txt')}
        assert read_tree(tmp_path) == wanted

    @pytest.mark.parametrize('name', ['blob', 'empty', 'ü/☃.txt'])
    def test_of_one_object_can_go_to_the_standard_output(
        self, swift, filled, name
    ):
        assert swift('download', filled, name, '-o', '-') == FILES[name]

    def test_of_a_prefix_gets_its_objects(self, swift, filled, tmp_path):
        swift('download', filled, '--prefix', 'dir/', cwd=tmp_path)
        assert sorted(read_tree(tmp_path)) == [
            'dir/one',
            'dir/sub/three.txt',
            'dir/two.html',
        ]

    def test_of_a_prefix_can_remove_the_prefix(self, swift, filled, tmp_path):
        prefix = ('--prefix', 'dir/', '--remove-prefix')
        swift('download', filled, *prefix, cwd=tmp_path)
        files = read_tree(tmp_path)
        assert sorted(files) == ['one', 'sub/three.txt', 'two.html']

    def test_from_a_marker_gets_later_objects(self, swift, filled, tmp_path):
        swift('download', filled, '--marker', 'top.txt', cwd=tmp_path)
        files = read_tree(tmp_path)
        assert sorted(files) == ['with space/a b.txt', 'ü/☃.txt']

    def test_of_a_range_gets_the_range(self, swift, filled):
        more = ('-H', 'Range: bytes=2-4', '--ignore-checksum')
        got = swift('download', filled, 'blob', '-o', '-', *more)
        assert got == FILES['blob'][2:5]

    def test_skips_identical_files(self, swift, filled, tmp_path):
        write_tree(tmp_path, {'top.txt': FILES['top.txt']})
        os.utime(tmp_path / 'top.txt', (0, 0))
        command = ('download', '--skip-identical', filled, 'top.txt')
        swift(*command, cwd=tmp_path)
        assert (tmp_path / 'top.txt').stat().st_mtime == 0


class TestList:
    @pytest.mark.parametrize(
        ('options', 'names'),
        [
            ((), list(FILES)),
            (
                ('--prefix', 'dir/'),
                ['dir/one', 'dir/sub/three.txt', 'dir/two.html'],
            ),
            (
                ('--delimiter', '/'),
                ['blob', 'dir/', 'empty', 'per%cent/', 'top.txt']
                + ['with space/', 'ü/'],
            ),
            (
                ('--prefix', 'dir/', '--delimiter', '/'),
                ['dir/one', 'dir/sub/', 'dir/two.html'],
            ),
            (('--prefix', 'ü/'), ['ü/☃.txt']),
            (('--prefix', 'missing'), []),
        ],
        ids=['all', 'prefix', 'delimiter', 'both', 'unicode', 'nothing'],
    )
    def test_shows_names(self, swift, filled, options, names):
        assert swift.lines('list', filled, *options) == names

    def test_in_long_form_shows_sizes_and_types(self, swift, filled):
        *rows, total = swift.lines('list', '--long', filled)
        rows = [row.split(maxsplit=4) for row in rows]
        shown = [(row[4], row[0], row[3]) for row in rows]
        octets = 'application/octet-stream'
        assert shown == [
            ('blob', '3072', octets),
            ('dir/one', '1', octets),
            ('dir/sub/three.txt', '3', 'text/plain'),
            ('dir/two.html', '10', 'text/html'),
            ('empty', '0', octets),
            ('per%cent/a?b#c&d', '11', octets),
            ('top.txt', '10', 'text/plain'),
            ('with space/a b.txt', '6', 'text/plain'),
            ('ü/☃.txt', '9', 'text/plain'),
        ]
        assert total.strip() == '3122'

    def test_for_humans_shows_short_sizes(self, swift, filled):
        first, *_, total = swift.lines('list', '--lh', filled)
        assert first.split()[0] == total.strip() == '3.0K'

    def test_of_totals_shows_the_sum_only(self, swift, filled):
        assert swift('list', '--long', '--totals', filled).strip() == b'3122'

    def test_as_json_has_the_rows_of_the_listing(self, client, swift, filled):
        rows = json.loads(swift('list', '--json', filled))
        assert rows == client.listing(filled).json()


class TestStat:
    def test_of_a_container_shows_its_sums(self, swift, filled):
        shown = swift.stat(filled)
        assert shown['Container'] == filled
        assert shown['Objects'] == '9'
        assert shown['Bytes'] == '3122'

    def test_of_a_container_for_humans_shows_short_sizes(self, swift, filled):
        assert swift.stat('--lh', filled)['Bytes'] == '3.0K'

    def test_of_an_object_shows_its_headers(self, client, swift, filled):
        shown = swift.stat(filled, 'dir/two.html')
        assert shown['Object'] == 'dir/two.html'
        assert shown['Content Type'] == 'text/html'
        assert shown['Content Length'] == '10'
        etag = client.head(filled, 'dir/two.html').headers['etag']
        assert shown['ETag'] == etag
        assert 'Meta Mtime' in shown

    def test_of_a_sharded_container_shows_its_count(self, swift, sharded):
        shown = swift.stat(sharded)
        assert shown[SHARD_COUNT_HEADER] == str(SHARDS)


class TestPost:
    def test_with_a_count_makes_a_sharded_container(self, client, swift):
        name = unique('posted')
        swift('post', name, '-H', f'{SHARD_COUNT_HEADER}: 3')
        headers = client.head(name).headers
        assert headers[SHARD_COUNT_HEADER.lower()] == '3'

    def test_with_another_count_is_refused(self, swift, container):
        count = f'{SHARD_COUNT_HEADER}: 3'
        done = swift.run('post', container, '-H', count)
        assert done.returncode == 1
        assert b'409 Conflict' in done.stderr

    def test_sets_and_removes_metadata_of_a_container(self, swift, container):
        swift('post', container, '-m', 'Colour:blue', '-m', 'Size:large')
        swift('post', container, '-m', 'Size:')
        shown = swift.stat(container)
        assert shown['Meta Colour'] == 'blue'
        assert 'Meta Size' not in shown

    def test_sets_metadata_of_an_object(self, client, swift, container):
        store(client, container, 'ü/o')
        swift('post', container, 'ü/o', '-m', 'Colour:blue')
        shown = swift.stat(container, 'ü/o')
        assert shown['Meta Colour'] == 'blue'
        assert shown['Content Length'] == str(len(STORED_BODY))

    def test_of_a_read_acl_lets_others_read(
        self, client, stranger, swift, container
    ):
        store(client, container, 'o')
        reader = SwiftProgram.with_token(stranger)
        download = ('download', container, 'o', '-o', '-')
        assert reader.run(*download).returncode == 1
        acl = f'{STRANGER},.rlistings'
        swift('post', container, '--read-acl', acl)
        assert swift.stat(container)['Read ACL'] == acl
        assert reader(*download) == STORED_BODY
        assert reader.lines('list', container) == ['o']

    def test_of_a_write_acl_lets_others_write(
        self, client, stranger, swift, container
    ):
        writer = SwiftProgram.with_token(stranger)
        upload = ('upload', '--skip-container-put', container, '-')
        upload = (*upload, '--object-name', 'o')
        assert writer.run(*upload, sent=b'piped').returncode == 1
        # The program first looks for an object that the upload would replace.
        acls = ('--write-acl', STRANGER, '--read-acl', STRANGER)
        swift('post', container, *acls)
        writer(*upload, sent=b'piped')
        assert client.get(container, 'o').body == b'piped'


class TestCopy:
    def test_to_another_container_keeps_metadata(
        self, client, swift, two_containers
    ):
        source, destination = two_containers
        headers = {'X-Object-Meta-Colour': 'blue'}
        client.put(source, 'ü/o', STORED_BODY, headers=headers)
        swift('copy', source, 'ü/o', '--destination', f'/{destination}/p')
        got = client.get(destination, 'p')
        assert got.body == STORED_BODY
        assert got.headers['x-object-meta-colour'] == 'blue'

    def test_of_several_keeps_their_names(self, client, swift, two_containers):
        source, destination = two_containers
        store(client, source, 'a', 'b/☃')
        where = ('--destination', f'/{destination}')
        swift('copy', source, 'a', 'b/☃', *where)
        assert names_in(client, destination) == ['a', 'b/☃']

    def test_onto_itself_changes_metadata(self, client, swift, container):
        headers = {'X-Object-Meta-Colour': 'blue'}
        client.put(container, 'o', STORED_BODY, headers=headers)
        swift('copy', container, 'o', '-m', 'Size:large')
        got = client.get(container, 'o')
        assert got.body == STORED_BODY
        assert got.headers['x-object-meta-colour'] == 'blue'
        assert got.headers['x-object-meta-size'] == 'large'

    def test_with_fresh_metadata_drops_the_old(self, client, swift, container):
        headers = {'X-Object-Meta-Colour': 'blue'}
        client.put(container, 'o', STORED_BODY, headers=headers)
        where = ('--destination', f'/{container}/p')
        swift('copy', container, 'o', '-M', '-m', 'Size:large', *where)
        headers = client.head(container, 'p').headers
        assert 'x-object-meta-colour' not in headers
        assert headers['x-object-meta-size'] == 'large'


class TestDelete:
    def test_of_objects_by_name_deletes_these(self, client, swift, container):
        store(client, container, 'a', 'b c', 'ü/☃')
        shown = swift.lines('delete', container, 'a', 'ü/☃')
        assert sorted(shown) == ['a', 'ü/☃']
        assert names_in(client, container) == ['b c']

    def test_of_a_prefix_deletes_its_objects(self, client, swift, container):
        store(client, container, 'a', 'b/1', 'b/2', 'c')
        swift('delete', container, '--prefix', 'b/')
        assert names_in(client, container) == ['a', 'c']

    def test_of_a_container_deletes_its_objects_too(
        self, client, swift, container
    ):
        store(client, container, *(f'ü {i}' for i in range(30)))
        swift('delete', container)
        assert client.head(container).status == 404

    def test_of_many_objects_is_one_request(self, client, swift, container):
        names = [f'ü {i}%/?' for i in range(10)]
        store(client, container, 'left', *names)
        command = ('--debug', 'delete', '--object-threads', '1')
        done = swift.run(*command, container, *names)
        assert done.returncode == 0
        assert done.stderr.count(b'POST /v1/AUTH_test?bulk-delete') == 1
        assert b'DELETE /v1' not in done.stderr
        assert done.stdout.decode().splitlines() == names
        assert names_in(client, container) == ['left']


class TestCapabilities:
    def test_show_the_filter(self, swift):
        shown = json.loads(swift('capabilities', '--json'))
        assert 'max_shards' in shown['shardmw']


#: Patterns of what differs between any two outputs, or between twins.
MASKED = (
    (r'tx[0-9a-f]{21}-[0-9a-f]{10}', 'TRANSACTION'),
    (r'\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?', 'DATE'),
    (r'(?m)^ *(X-Timestamp|Last[ -]Modified): .*', r'\1'),
    (r'\[(auth|headers) .* MB/s\]', 'SPEED'),
    # Titles are aligned with the longest one.
    (r'(?m)^ +', ''),
    (rf'(?m)^({SHARD_COUNT_HEADER}|{SHARD_DEPTH_HEADER}): \d+\n', ''),
)


def transcript(
    done: subprocess.CompletedProcess, container: str
) -> tuple[int, str, str]:
    """Return a command's exit code and output, masked by ``MASKED``."""
    texts = []
    for printed in (done.stdout, done.stderr):
        text = printed.decode().replace(container, 'CONTAINER')
        for pattern, instead in MASKED:
            text = re.sub(pattern, instead, text)
        texts.append(text)
    return done.returncode, *texts


@pytest.fixture(scope='class')
def filled_twins(login, swift, tree) -> Pair:
    """A plain and a sharded container with the tree in each."""
    twins = make_twins(login(USER))
    swift('upload', twins.plain, '.', cwd=tree)
    swift('upload', twins.sharded, '.', cwd=tree)
    return twins


class TestTwins:
    """The program prints the same about a plain and a sharded container."""

    @pytest.mark.parametrize(
        'command',
        [
            'stat CONTAINER',
            'list --long CONTAINER',
            'list --lh --delimiter / CONTAINER',
            'list --json --prefix dir/ --delimiter / CONTAINER',
            'list --versions CONTAINER',
            'list --header X-Newest:true CONTAINER',
            'post CONTAINER missing -m Colour:blue',
            'post CONTAINER -H X-Container-Meta-Quota-Bytes:many',
            'copy CONTAINER missing --destination /CONTAINER/other',
            'delete CONTAINER missing',
            'delete CONTAINER blob --version-id nonsense',
        ],
    )
    def test_have_the_same_output(self, swift, filled_twins, command):
        plain, sharded = (
            transcript(
                swift.run(*command.replace('CONTAINER', name).split()), name
            )
            for name in filled_twins
        )
        assert sharded == plain
