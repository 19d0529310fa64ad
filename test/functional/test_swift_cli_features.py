# SPDX-License-Identifier: Apache-2.0
"""What the program ``swift`` builds on objects, in sharded containers.

Large objects, versions and temporary URLs.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from test.functional.conftest import STORED_BODY, make_sharded, unique
from test.functional.realclients import (
    COUNTS,
    SwiftProgram,
    names_in,
    store,
    timestamp_of,
)

SEGMENT_SIZE = 1000
LARGE = bytes(range(250)) * 10
MANIFESTS = {'slo': '--use-slo', 'dlo': '--use-dlo'}


@pytest.fixture(scope='module')
def swift(cluster) -> SwiftProgram:
    """The program, run by the owner of the tests' account."""
    return SwiftProgram.for_owner(cluster)


@pytest.fixture
def container(sharded) -> str:
    """A new sharded container."""
    return sharded


@pytest.fixture
def large(tmp_path) -> Path:
    """A file that is uploaded in three segments."""
    path = tmp_path / 'large'
    path.write_bytes(LARGE)
    return path


@pytest.fixture(params=MANIFESTS)
def upload_large(request, swift, large):
    """Return a function that uploads the file as a large object."""

    def upload_large(container: str, *options: str) -> None:
        segments = ('--segment-size', str(SEGMENT_SIZE))
        command = ('upload', MANIFESTS[request.param], *segments, *options)
        swift(*command, container, large.name, cwd=large.parent)

    return upload_large


class Home(NamedTuple):
    """A container, and the one that its segments go to by default."""

    container: str
    segments: str


class TestLargeObject:
    @pytest.fixture
    def home(self, client) -> Home:
        name = unique('large')
        home = Home(name, f'{name}_segments')
        for each in home:
            client.put(each, headers=COUNTS['sharded'])
        return home

    def test_makes_a_container_for_its_segments(
        self, client, swift, container, upload_large
    ):
        upload_large(container)
        assert len(names_in(client, f'{container}_segments')) == 3
        assert swift('download', container, 'large', '-o', '-') == LARGE

    def test_may_have_its_segments_anywhere(
        self, client, swift, two_containers, upload_large
    ):
        container, segments = two_containers
        upload_large(container, '--segment-container', segments)
        assert names_in(client, container) == ['large']
        assert len(names_in(client, segments)) == 3
        assert swift('download', container, 'large', '-o', '-') == LARGE

    def test_has_the_length_of_the_whole(self, swift, home, upload_large):
        upload_large(home.container)
        shown = swift.stat(home.container, 'large')
        assert shown['Content Length'] == str(len(LARGE))

    def test_delete_includes_the_segments(
        self, client, swift, home, upload_large
    ):
        upload_large(home.container)
        swift('delete', home.container, 'large')
        assert names_in(client, home.container) == []
        assert names_in(client, home.segments) == []

    def test_delete_may_leave_the_segments(
        self, client, swift, home, upload_large
    ):
        upload_large(home.container)
        swift('delete', '--leave-segments', home.container, 'large')
        assert names_in(client, home.container) == []
        assert len(names_in(client, home.segments)) == 3

    def test_goes_with_its_container(self, client, swift, home, upload_large):
        upload_large(home.container)
        swift('delete', home.container)
        assert client.head(home.container).status == 404
        assert names_in(client, home.segments) == []

    def test_replaces_another_and_its_segments(
        self, client, swift, home, large, upload_large
    ):
        upload_large(home.container)
        before = names_in(client, home.segments)
        large.write_bytes(LARGE + b'more')
        upload_large(home.container)
        got = swift('download', home.container, 'large', '-o', '-')
        assert got == LARGE + b'more'
        after = names_in(client, home.segments)
        assert len(after) == 3
        assert set(after).isdisjoint(before)

    @pytest.mark.parametrize('option', ['--changed', '--skip-identical'])
    def test_that_did_not_change_is_skipped(
        self, client, home, upload_large, option
    ):
        upload_large(home.container)
        before = timestamp_of(client, home.container, 'large')
        upload_large(home.container, option)
        assert timestamp_of(client, home.container, 'large') == before


class Versioned(NamedTuple):
    """A container with three versions of ``o``, the newest a delete marker."""

    name: str
    ids: list[str]


class TestVersions:
    @pytest.fixture
    def versioned(self, client) -> Versioned:
        name = make_sharded(client, X_Versions_Enabled='true')
        puts = [client.put(name, 'o', body) for body in (b'1', b'22')]
        answers = [*puts, client.delete(name, 'o')]
        ids = [answer.headers['x-object-version-id'] for answer in answers]
        return Versioned(name, ids)

    def test_are_listed(self, swift, versioned):
        shown = swift.lines('list', '--versions', versioned.name)
        rows = [row.split() for row in shown]
        assert [row[0] for row in rows] == ['0', '2', '1']
        assert [row[3] for row in rows] == versioned.ids[::-1]

    def test_are_stated_and_downloaded(self, swift, versioned):
        which = ('--version-id', versioned.ids[0])
        shown = swift.stat(versioned.name, 'o', *which)
        assert shown['Content Length'] == '1'
        got = swift('download', versioned.name, 'o', *which, '-o', '-')
        assert got == b'1'

    def test_are_deleted_one_by_one(self, client, swift, versioned):
        which = ('--version-id', versioned.ids[0])
        swift('delete', versioned.name, 'o', *which)
        rows = client.listing(versioned.name, versions='').json()
        left = [row['version_id'] for row in rows]
        assert left == versioned.ids[:0:-1]

    def test_prevent_deletion_of_the_container(self, client, swift, versioned):
        done = swift.run('delete', versioned.name)
        assert done.returncode == 1
        assert b'Delete all versions' in done.stderr
        assert client.head(versioned.name).status == 204

    def test_can_be_deleted_with_the_container(self, client, swift, versioned):
        swift('delete', '--versions', versioned.name)
        assert client.head(versioned.name).status == 404


class TestTempUrl:
    @pytest.fixture
    def keyed(self, client, swift, container):
        """The path of a container with a key, and a few objects."""
        swift('post', container, '-m', 'Temp-URL-Key:secret')
        store(client, container, 'a/1', 'a/2', 'b')
        return client.path(container)

    def test_lets_anybody_read(self, client, swift, keyed):
        (path,) = swift.lines('tempurl', 'GET', '1h', f'{keyed}/b', 'secret')
        got = client.anonymous().raw('GET', path)
        assert (got.status, got.body) == (200, STORED_BODY)

    def test_lets_anybody_write(self, client, swift, keyed):
        (path,) = swift.lines('tempurl', 'PUT', '1h', f'{keyed}/b', 'secret')
        assert client.anonymous().raw('PUT', path, body=b'new').status == 201
        assert client.raw('GET', f'{keyed}/b').body == b'new'

    def test_of_a_prefix_is_for_its_objects_only(self, client, swift, keyed):
        command = ('tempurl', '--prefix-based', 'GET', '1h')
        (path,) = swift.lines(*command, f'{keyed}/a/', 'secret')
        prefix, query = path.split('?')
        anybody = client.anonymous()
        assert anybody.raw('GET', f'{prefix}1?{query}').body == STORED_BODY
        assert anybody.raw('GET', f'{keyed}/b?{query}').status == 401
