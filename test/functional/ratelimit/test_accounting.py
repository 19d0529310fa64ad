# SPDX-License-Identifier: Apache-2.0
"""What counts against a write rate, and in which container.

The filter's metrics show how often a request counts: the rate is so high that
nothing waits, and every write takes one permit. To see where a request counts,
a container gets a rate of its own of one write in many seconds: once it is
used up, the next write is refused.
"""

import pytest
from botocore.exceptions import ClientError
from shardmw_saio import Cluster, ClusterOptions

from shardmw.core.placement import shard_of
from test.functional.archives import archive_of
from test.functional.client import Answer, Client
from test.functional.ratelimit.limits import (
    FIRST,
    MAKERS,
    SECOND,
    SHARDS,
    SLOW,
    Meter,
    assert_refused,
    make_sharded,
)
from test.functional.realclients import code_of, s3_client
from test.functional.test_bulk import bulk_delete, upload
from test.functional.test_large_objects import (
    DELETE_MANIFEST,
    PARTS,
    WHOLE,
    make_dlo,
    make_slo,
    manifest_of,
    put_manifest,
    put_segments,
)
from test.functional.test_versioning import OFF, ON, put_version, versions_of

SETTINGS = {
    'shardmw.container_ratelimit_0': '1000',
    'shardmw.max_sleep_time_seconds': '0.5',
    'shardmw.rate_buffer_seconds': '0',
    'shardmw.log_statsd_host': '127.0.0.1',
}

#: The statuses of a refusal: 503 in a container with X-Versions-Location.
REFUSED = (498, 503)

#: Names that all belong to one shard.
NEIGHBOURS = [
    name for name in map(str, range(50)) if shard_of(name, SHARDS) == 0
][:3]
FILES = dict.fromkeys(NEIGHBOURS, b'body')
LARGE = NEIGHBOURS[0]


@pytest.fixture(scope='module')
def limited(tmp_path_factory, statsd):
    """A cluster that limits writes and sends metrics."""
    port = {'shardmw.log_statsd_port': str(statsd.port)}
    options = ClusterOptions(settings={**SETTINGS, **port})
    with Cluster(tmp_path_factory.mktemp('accounting'), options) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def s3(limited):
    return s3_client(limited)


@pytest.fixture
def other(container, client) -> str:
    """Another container of the same kind."""
    kind = container.partition('-')[0]
    return MAKERS[kind](client)


@pytest.fixture
def meter(statsd, container) -> Meter:
    """The meter, restarted after the container was created."""
    statsd.restart()
    return statsd


@pytest.fixture
def use_up(client, operator):
    """Return a function that uses up a container's rate in all shards."""

    def use_up(container: str) -> None:
        operator.set_rate(container, SLOW)
        for name in (FIRST, SECOND):
            client.put(container, name)
        assert client.put(container, FIRST).status in REFUSED
        assert client.put(container, SECOND).status in REFUSED

    return use_up


def is_used_up(client: Client, container: str) -> bool:
    """Return True if a container with a low rate refuses a write."""
    return client.put(container, LARGE).status in REFUSED


class TestObject:
    def test_counts_once(self, client, meter, container):
        client.put(container, FIRST, b'x')
        assert meter.permits == 1
        client.post(container, FIRST)
        assert meter.permits == 1
        client.delete(container, FIRST)
        assert meter.permits == 1

    def test_counts_even_if_it_is_missing(self, client, meter, container):
        assert client.delete(container, FIRST).status == 404
        assert meter.permits == 1

    def test_read_does_not_count(self, client, meter, container):
        client.get(container, FIRST)
        client.head(container, FIRST)
        client.listing(container)
        assert meter.permits == 0

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_is_refused_whatever_its_query(
        self, client, use_up, container, method
    ):
        use_up(container)
        query = {'multipart-manifest': 'delete'}
        answer = client.request(method, container, FIRST, query=query)
        assert_refused(answer)

    def test_link_counts_once(self, client, meter, container):
        client.put(container, FIRST, b'x')
        target = {'X-Symlink-Target': f'{container}/{FIRST}'}
        answer = client.put(container, SECOND, headers=target)
        assert answer.status == 201
        assert meter.permits == 2


class TestCopy:
    @pytest.fixture
    def source(self, client, other) -> str:
        client.put(other, FIRST, b'x')
        return other

    def copy(self, client, source, container) -> Answer:
        return client.copy(source, FIRST, f'{container}/{FIRST}')

    def copy_from(self, client, source, container) -> Answer:
        headers = {'X-Copy-From': f'{source}/{FIRST}'}
        return client.put(container, FIRST, headers=headers)

    @pytest.fixture(params=['copy', 'copy_from'])
    def copied(self, request, client, source, container):
        """Return a function that copies between the containers."""
        return lambda: getattr(self, request.param)(client, source, container)

    def test_counts_once(self, statsd, copied):
        statsd.restart()
        assert copied().status == 201
        assert statsd.permits == 1

    def test_counts_in_the_destination(
        self, client, operator, container, copied
    ):
        operator.set_rate(container, SLOW)
        assert copied().status == 201
        assert copied().status == 498
        assert is_used_up(client, container)

    def test_does_not_count_in_the_source(
        self, client, operator, source, copied
    ):
        operator.set_rate(source, SLOW)
        assert copied().status == 201
        assert not is_used_up(client, source)

    def test_from_a_container_with_a_used_up_rate_succeeds(
        self, use_up, source, copied
    ):
        use_up(source)
        assert copied().status == 201

    def test_into_a_container_with_a_used_up_rate_is_refused(
        self, client, use_up, container, copied
    ):
        use_up(container)
        assert_refused(copied())


class TestStaticLargeObject:
    def test_counts_every_segment_and_its_manifest(
        self, client, meter, container, other
    ):
        put_segments(client, container)
        assert meter.permits == len(PARTS)
        manifest = manifest_of(container)
        assert put_manifest(client, other, 'large', manifest).status == 201
        assert meter.permits == 1

    def test_manifest_counts_in_its_own_container(
        self, client, operator, use_up, container, other
    ):
        put_segments(client, other)
        use_up(other)
        operator.set_rate(container, SLOW)
        manifest = manifest_of(other)
        assert put_manifest(client, container, LARGE, manifest).status == 201
        assert_refused(put_manifest(client, container, LARGE, manifest))

    def test_delete_of_the_manifest_counts_once(
        self, client, statsd, container, other
    ):
        make_slo(client, container, other)
        statsd.restart()
        client.delete(container, 'large')
        assert statsd.permits == 1

    @pytest.mark.parametrize(
        'query', [DELETE_MANIFEST, {**DELETE_MANIFEST, 'async': 'yes'}]
    )
    def test_delete_with_its_segments_counts_once(
        self, client, statsd, container, other, query
    ):
        make_slo(client, container, other)
        statsd.restart()
        client.delete(container, 'large', query=query)
        assert client.head(container, 'large').status == 404
        assert statsd.permits == 1

    def test_delete_with_its_segments_counts_in_their_container(
        self, client, operator, use_up, container, other
    ):
        make_slo(client, container, other)
        use_up(container)
        operator.set_rate(other, SLOW)
        answer = client.delete(container, 'large', query=DELETE_MANIFEST)
        assert b'Number Deleted: 4' in answer.body
        after = [client.put(other, name).status for name in (FIRST, SECOND)]
        assert 498 in after

    def test_delete_with_its_segments_is_never_refused(
        self, client, use_up, container, other
    ):
        """A refused one would be half done, as the manifest goes last."""
        make_slo(client, container, other)
        use_up(container)
        use_up(other)
        answer = client.delete(container, 'large', query=DELETE_MANIFEST)
        assert b'Number Deleted: 4' in answer.body
        assert client.listing(other, prefix='seg/').json() == []

    def test_delete_without_its_segments_is_refused(
        self, client, use_up, container, other
    ):
        put_segments(client, other)
        put_manifest(client, container, LARGE, manifest_of(other))
        use_up(container)
        assert_refused(client.delete(container, LARGE))
        assert client.get(container, LARGE).body == WHOLE

    def test_asynchronous_delete_is_never_refused(
        self, client, use_up, container, other
    ):
        """The segments are queued for the expirer before the manifest goes."""
        make_slo(client, container, other)
        use_up(container)
        query = {**DELETE_MANIFEST, 'async': 'yes'}
        answer = client.delete(container, 'large', query=query)
        assert answer.status == 204
        assert client.head(container, 'large').status == 404


class TestDynamicLargeObject:
    def test_counts_every_segment_and_its_manifest(
        self, client, meter, container, other
    ):
        make_dlo(client, container, other)
        # One more object is no segment.
        assert meter.permits == len(PARTS) + 2

    def test_delete_counts_once(self, client, statsd, container, other):
        make_dlo(client, container, other)
        statsd.restart()
        client.delete(container, 'large')
        assert statsd.permits == 1


class TestBulk:
    def test_upload_counts_every_file(self, client, meter, container):
        answer = upload(client, container, archive_of(FILES), 'tar')
        assert answer.json()['Number Files Created'] == len(FILES)
        assert meter.permits == len(FILES)

    def test_delete_counts_every_file(self, client, statsd, container):
        upload(client, container, archive_of(FILES), 'tar')
        statsd.restart()
        paths = [f'/{container}/{name}' for name in FILES]
        answer = bulk_delete(client, paths)
        assert answer.json()['Number Deleted'] == len(FILES)
        assert statsd.permits == len(FILES)

    def test_upload_names_the_refused_files(self, client, operator, container):
        operator.set_rate(container, SLOW)
        answer = upload(client, container, archive_of(FILES), 'tar')
        assert answer.json()['Number Files Created'] == 1
        statuses = [status for _name, status in answer.json()['Errors']]
        assert statuses == ['498 Rate Limited'] * (len(FILES) - 1)
        assert client.listing(container).names() == NEIGHBOURS[:1]

    def test_delete_names_the_refused_files(self, client, operator, container):
        upload(client, container, archive_of(FILES), 'tar')
        operator.set_rate(container, SLOW)
        paths = [f'/{container}/{name}' for name in NEIGHBOURS]
        answer = bulk_delete(client, paths)
        assert answer.json()['Number Deleted'] == 1
        statuses = [status for _name, status in answer.json()['Errors']]
        assert statuses == ['498 Rate Limited'] * (len(FILES) - 1)
        assert len(client.listing(container).json()) == len(FILES) - 1


@pytest.fixture
def versioned(client, container) -> str:
    """A container with object versioning on."""
    assert client.post(container, headers=ON).status == 204
    return container


@pytest.fixture
def versions(client, versioned) -> list[str]:
    """The ids of two versions of an object, the older first."""
    return [
        put_version(client, versioned, FIRST, b'first'),
        put_version(client, versioned, FIRST, b'second'),
    ]


class TestVersioning:
    @pytest.fixture
    def meter(self, statsd, versions) -> Meter:
        statsd.restart()
        return statsd

    def test_upload_counts_once(self, client, statsd, versioned):
        statsd.restart()
        put_version(client, versioned, FIRST, b'first')
        assert statsd.permits == 1
        put_version(client, versioned, FIRST, b'second')
        assert statsd.permits == 1

    def test_upload_over_an_unversioned_object_counts_once(
        self, client, statsd, container
    ):
        client.put(container, FIRST, b'unversioned')
        client.post(container, headers=ON)
        statsd.restart()
        put_version(client, container, FIRST, b'first')
        assert statsd.permits == 1
        assert len(versions_of(client, container)) == 2

    def test_upload_while_off_counts_once(self, client, versioned, meter):
        client.post(versioned, headers=OFF)
        client.put(versioned, FIRST, b'unversioned')
        assert meter.permits == 1

    def test_post_counts_once(self, client, versioned, meter):
        headers = {'X-Object-Meta-Colour': 'blue'}
        assert client.post(versioned, FIRST, headers=headers).status == 202
        assert meter.permits == 1

    def test_delete_counts_once(self, client, versioned, meter):
        assert client.delete(versioned, FIRST).status == 204
        assert meter.permits == 1

    @pytest.mark.parametrize('i', [0, 1])
    def test_delete_of_a_version_counts_once(
        self, client, versioned, versions, meter, i
    ):
        query = {'version-id': versions[i]}
        answer = client.delete(versioned, FIRST, query=query)
        assert answer.status == 204
        assert meter.permits == 1

    def test_restoring_a_version_counts_once(
        self, client, versioned, versions, meter
    ):
        query = {'version-id': versions[0]}
        assert client.put(versioned, FIRST, query=query).status == 201
        assert meter.permits == 1

    def test_copy_counts_once(self, client, versioned, meter, other):
        client.put(other, FIRST, b'x')
        client.copy(other, FIRST, f'{versioned}/{FIRST}')
        assert meter.permits == 2

    def test_bulk_upload_counts_every_file(self, client, versioned, meter):
        upload(client, versioned, archive_of(FILES), 'tar')
        assert meter.permits == len(FILES)

    def test_bulk_delete_counts_a_repeated_name_each_time(
        self, client, versioned, meter
    ):
        bulk_delete(client, [f'/{versioned}/{FIRST}'] * 3)
        assert meter.permits == 3

    def test_s3_multi_delete_counts_every_version(
        self, s3, versioned, versions, meter
    ):
        objects = [{'Key': FIRST, 'VersionId': each} for each in versions]
        answer = s3.delete_objects(
            Bucket=versioned, Delete={'Objects': objects}
        )
        assert len(answer['Deleted']) == len(versions)
        assert meter.permits == len(versions)

    def test_read_does_not_count(self, client, versioned, versions, meter):
        query = {'version-id': versions[0]}
        client.get(versioned, FIRST, query=query)
        client.head(versioned, FIRST)
        versions_of(client, versioned)
        assert meter.permits == 0

    def test_counts_in_the_shard_of_the_object(self, client, operator):
        container = make_sharded(client)
        client.post(container, headers=ON)
        operator.set_rate(container, SLOW)
        put_version(client, container, FIRST, b'first')
        put_version(client, container, SECOND, b'first')
        assert_refused(client.put(container, FIRST))
        assert_refused(client.put(container, SECOND))


#: Requests that change versions, each refused when the rate is used up.
CHANGES = [
    ('PUT', None),
    ('POST', None),
    ('DELETE', None),
    ('PUT', 0),
    ('DELETE', 0),
    ('DELETE', 1),
]


class TestRefusedVersion:
    @pytest.mark.parametrize(('method', 'i'), CHANGES)
    def test_changes_nothing(
        self, client, use_up, versioned, versions, method, i
    ):
        use_up(versioned)
        before = versions_of(client, versioned)
        ids = [row['version_id'] for row in before if row['is_latest']]
        ids = {None: None, 0: versions[0], 1: ids[0]}
        query = {'version-id': ids[i]} if i is not None else None
        answer = client.request(method, versioned, FIRST, query=query)
        assert_refused(answer)
        assert versions_of(client, versioned) == before

    def test_changes_nothing_while_versioning_is_off(
        self, client, use_up, versioned, versions
    ):
        client.post(versioned, headers=OFF)
        use_up(versioned)
        before = versions_of(client, versioned)
        assert_refused(client.put(versioned, FIRST, b'another'))
        assert_refused(client.delete(versioned, FIRST))
        assert versions_of(client, versioned) == before

    def test_leaves_an_unversioned_object(self, client, use_up, container):
        use_up(container)
        client.post(container, headers=ON)
        before = versions_of(client, container)
        assert_refused(client.put(container, FIRST, b'another'))
        assert_refused(client.delete(container, FIRST))
        assert versions_of(client, container) == before


class OlderMode:
    """Tests of both older modes of versioning."""

    @pytest.fixture
    def archived(self, client, container, other) -> str:
        """A container whose old versions go into the other one."""
        answer = client.post(container, headers={self.header: other})
        assert answer.status == 204
        return container

    @pytest.fixture
    def overwritten(self, client, archived) -> str:
        """The same with an object that has an old version."""
        client.put(archived, FIRST, b'first')
        client.put(archived, FIRST, b'second')
        return archived

    @pytest.fixture
    def meter(self, statsd, overwritten) -> Meter:
        statsd.restart()
        return statsd

    def test_upload_counts_once(self, client, meter, overwritten):
        client.put(overwritten, FIRST, b'third')
        assert meter.permits == 1

    def test_upload_does_not_count_in_the_archive(
        self, client, operator, overwritten, other
    ):
        operator.set_rate(other, SLOW)
        client.put(overwritten, FIRST, b'third')
        client.put(overwritten, FIRST, b'fourth')
        assert len(client.listing(other).json()) == 3
        assert not is_used_up(client, other)

    def test_archive_with_a_used_up_rate_takes_old_versions(
        self, client, use_up, overwritten, other
    ):
        use_up(other)
        assert client.put(overwritten, FIRST, b'third').status == 201
        assert client.delete(overwritten, FIRST).status == 204

    def test_delete_counts_once(self, client, meter, overwritten):
        assert client.delete(overwritten, FIRST).status == 204
        assert meter.permits == 1

    def test_delete_counts_in_the_objects_container(
        self, client, operator, overwritten
    ):
        operator.set_rate(overwritten, SLOW)
        assert client.delete(overwritten, FIRST).status == 204
        assert is_used_up(client, overwritten)

    @pytest.mark.parametrize('method', ['PUT', 'DELETE'])
    def test_refused_change_changes_nothing(
        self, client, use_up, overwritten, other, method
    ):
        """Swift would turn a 498 into a 412, which is final."""
        use_up(overwritten)
        before = client.listing(other).json()
        current = client.get(overwritten, FIRST)
        answer = client.request(method, overwritten, FIRST)
        assert answer.status == 503
        assert client.listing(other).json() == before
        assert client.get(overwritten, FIRST).body == current.body


class TestVersionsLocation(OlderMode):
    header = 'X-Versions-Location'

    def test_delete_without_an_old_version_is_refused(
        self, client, operator, archived, other
    ):
        operator.set_rate(archived, SLOW)
        client.put(archived, FIRST, b'first')
        assert_refused(client.delete(archived, FIRST))
        assert client.get(archived, FIRST).body == b'first'


class TestHistoryLocation(OlderMode):
    header = 'X-History-Location'


class TestS3:
    def test_multi_delete_counts_every_object(
        self, client, statsd, s3, container
    ):
        upload(client, container, archive_of(FILES), 'tar')
        statsd.restart()
        objects = [{'Key': name} for name in FILES]
        answer = s3.delete_objects(
            Bucket=container, Delete={'Objects': objects}
        )
        assert len(answer['Deleted']) == len(FILES)
        assert statsd.permits == len(FILES)

    def test_multi_delete_names_the_refused_objects(
        self, client, operator, s3, container
    ):
        upload(client, container, archive_of(FILES), 'tar')
        operator.set_rate(container, SLOW)
        objects = [{'Key': name} for name in FILES]
        answer = s3.delete_objects(
            Bucket=container, Delete={'Objects': objects}
        )
        assert len(answer['Deleted']) == 1
        codes = [error['Code'] for error in answer['Errors']]
        assert codes == ['SlowDown'] * (len(FILES) - 1)
        assert len(client.listing(container).json()) == len(FILES) - 1

    @pytest.fixture
    def begun(self, s3, container):
        """An upload in parts that has no part yet."""
        where = {'Bucket': container, 'Key': LARGE}
        upload_id = s3.create_multipart_upload(**where)['UploadId']
        return {**where, 'UploadId': upload_id}

    def complete(self, s3, begun, part):
        parts = [{'PartNumber': 1, 'ETag': part['ETag']}]
        s3.complete_multipart_upload(MultipartUpload={'Parts': parts}, **begun)

    def test_part_counts_once(self, statsd, s3, begun):
        statsd.restart()
        s3.upload_part(PartNumber=1, Body=b'x', **begun)
        assert statsd.permits == 1

    def test_parts_do_not_count_in_the_bucket(
        self, client, use_up, operator, s3, container, begun
    ):
        use_up(container)
        s3.upload_part(PartNumber=1, Body=b'x', **begun)
        operator.set_rate(f'{container}+segments', SLOW)
        s3.upload_part(PartNumber=1, Body=b'x', **begun)
        with pytest.raises(ClientError) as error:
            s3.upload_part(PartNumber=1, Body=b'x', **begun)
        assert code_of(error) == 'SlowDown'

    def test_completion_counts_in_the_bucket(
        self, client, operator, s3, container, begun
    ):
        part = s3.upload_part(PartNumber=1, Body=b'x', **begun)
        operator.set_rate(container, SLOW)
        self.complete(s3, begun, part)
        assert is_used_up(client, container)

    def test_completion_is_never_refused(
        self, client, use_up, s3, container, begun
    ):
        """S3's answer has begun before the object is written."""
        part = s3.upload_part(PartNumber=1, Body=b'x', **begun)
        use_up(container)
        self.complete(s3, begun, part)
        assert client.get(container, LARGE).body == b'x'

    def test_delete_of_a_large_object_is_never_refused(
        self, client, use_up, s3, container, begun
    ):
        """S3 would report success in any case."""
        part = s3.upload_part(PartNumber=1, Body=b'x', **begun)
        self.complete(s3, begun, part)
        use_up(container)
        use_up(f'{container}+segments')
        s3.delete_object(Bucket=container, Key=LARGE)
        assert client.head(container, LARGE).status == 404

    def test_delete_of_a_large_object_counts_once(
        self, client, statsd, s3, container, begun
    ):
        part = s3.upload_part(PartNumber=1, Body=b'x', **begun)
        self.complete(s3, begun, part)
        statsd.restart()
        s3.delete_object(Bucket=container, Key=LARGE)
        assert client.head(container, LARGE).status == 404
        assert statsd.permits == 1

    def test_upload_of_a_version_counts_once(self, statsd, s3, container):
        s3.put_bucket_versioning(
            Bucket=container, VersioningConfiguration={'Status': 'Enabled'}
        )
        statsd.restart()
        s3.put_object(Bucket=container, Key=FIRST, Body=b'x')
        assert statsd.permits == 1
        s3.delete_object(Bucket=container, Key=FIRST)
        assert statsd.permits == 1
