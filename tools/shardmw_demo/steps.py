# SPDX-License-Identifier: Apache-2.0
"""The steps of the demo: each sends a request and shows the answer."""

import gzip
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

import requests
from shardmw_saio import Cluster
from swiftclient import Connection

from shardmw.backend.containers import SHARD_COUNT_HEADER
from shardmw.core.placement import shard_of
from shardmw_demo.archive import Build
from shardmw_demo.clients import (
    TIMEOUT_SECONDS,
    s3_client,
    swift_client,
    upload_all,
    upload_log,
)
from shardmw_demo.screen import Screen
from shardmw_demo.spread import objects_by_shard

SHARDED = 'logs'
PLAIN = 'plain'

#: The rate limit of a container. It is low, so that even a small machine
#: exceeds it.
CONTAINER_WRITES_PER_SECOND = 20

#: The number of uploads into the plain container, which take some seconds at
#: its rate limit.
PLAIN_UPLOADS = 100

#: The number of keys in one page of S3.
S3_PAGE = 1000

COUNT_HEADER = 'X-Container-Object-Count'
BYTES_HEADER = 'X-Container-Bytes-Used'


class DemoError(Exception):
    """An answer is not what the demo expects."""


@dataclass(frozen=True)
class Stage:
    """The data that the steps use.

    :param cluster: a cluster that is up
    :param builds: the builds whose console logs are uploaded
    :param shards: the number of shards of the container
    :param clients: the number of clients that upload concurrently
    """

    screen: Screen
    cluster: Cluster
    builds: Sequence[Build]
    shards: int
    clients: int

    @property
    def some_build(self) -> Build:
        """Return the build that the steps show: one in the middle."""
        return self.builds[len(self.builds) // 2]

    def connect(self) -> Connection:
        """Return a client of Swift."""
        return swift_client(self.cluster.environment())

    def url(self, name: str) -> str:
        """Return the URL of an object or a prefix, for a browser."""
        return f'{self.cluster.storage_url}/{SHARDED}/{quote(name)}'


def create_containers(stage: Stage) -> None:
    swift = stage.connect()
    sharded = {SHARD_COUNT_HEADER: str(stage.shards)}
    for container, headers in (SHARDED, sharded), (PLAIN, {}):
        response = {}
        swift.put_container(container, headers, response_dict=response)
        stage.screen.request(
            f'PUT {container}',
            *_fields(headers),
            answer=f'{response["status"]} {response["reason"]}',
        )


def upload_into_plain(stage: Stage) -> None:
    swift = stage.connect()
    first, *others = stage.builds[: PLAIN_UPLOADS + 1]
    # Swift does not limit an empty container. It caches that the container is
    # empty until the container is changed, as by this POST.
    upload_log(swift, PLAIN, first)
    swift.post_container(PLAIN, {'X-Container-Meta-Web-Listings': 'false'})
    rate = _upload(stage, PLAIN, others)
    stage.screen.line(
        f'{rate:.0f} a second. The limit of a container is '
        f'{CONTAINER_WRITES_PER_SECOND} a second.'
    )


def upload_into_shards(stage: Stage) -> None:
    rate = _upload(stage, SHARDED, stage.builds)
    allowed = stage.shards * CONTAINER_WRITES_PER_SECOND
    stage.screen.line(
        f'{rate:.0f} a second. The limit of {stage.shards} shards together is '
        f'{allowed:,} a second.'
    )
    if _object_count(stage) < len(stage.builds):
        # A busy container server has not taken all rows at once.
        stage.cluster.daemon('object-updater')


def list_a_day(stage: Stage) -> None:
    prefix = stage.some_build.day_prefix
    _headers, rows = stage.connect().get_container(
        SHARDED, prefix=prefix, delimiter='/'
    )
    stage.screen.request(
        f'GET {SHARDED}?prefix={prefix}&delimiter=/',
        answer=f'{len(rows)} jobs',
    )
    stage.screen.lines([row['subdir'] for row in rows])
    expected = {f'{prefix}{job}/' for job in _jobs_of_the_day(stage)}
    _check('the listing', {row['subdir'] for row in rows}, expected)


def fetch_a_log(stage: Stage) -> None:
    name = stage.some_build.name
    headers, body = stage.connect().get_object(SHARDED, name)
    page = gzip.decompress(body).decode('utf-8')
    stage.screen.request(
        f'GET {SHARDED}/{name}',
        answer=f'{headers["content-type"]}, {len(page):,} characters in '
        f'{len(body):,} bytes of {headers["content-encoding"]}',
    )
    stage.screen.lines(page.splitlines())


def show_statistics(stage: Stage) -> None:
    headers = stage.connect().head_container(SHARDED)
    shown = (COUNT_HEADER, BYTES_HEADER, SHARD_COUNT_HEADER)
    stage.screen.request(f'HEAD {SHARDED}', answer='204 No Content')
    stage.screen.lines(_fields({n: headers[n.lower()] for n in shown}))
    _check('the count', _object_count(stage), len(stage.builds))


def show_spread(stage: Stage) -> None:
    counts = objects_by_shard(stage.cluster.devices_path, SHARDED)
    stage.screen.shards(counts)
    stage.screen.line(
        f'{min(counts.values()):,} to {max(counts.values()):,} objects per '
        f'shard, {len(stage.builds) / stage.shards:,.0f} on average.'
    )
    by_name = Counter(
        shard_of(build.name, stage.shards) for build in stage.builds
    )
    _check('the shards', counts, {i: by_name[i] for i in range(stage.shards)})


def show_website(stage: Stage) -> None:
    stage.connect().post_container(
        SHARDED,
        {
            'X-Container-Read': '.r:*,.rlistings',
            'X-Container-Meta-Web-Listings': 'true',
        },
    )
    prefix = stage.some_build.day_prefix
    page = _page(stage.url(prefix))
    # Find the links by their texts: the URLs differ among releases of Swift.
    links = re.findall(r'"item subdir">\s*<td[^>]*><a [^>]*>([^<]+)<', page)
    stage.screen.request(
        f'GET {stage.url(prefix)}',
        answer=f'a page with {len(links)} links, for everybody',
    )
    expected = {f'{job}/' for job in _jobs_of_the_day(stage)}
    _check('the page', set(links), expected)
    log = _page(stage.url(stage.some_build.name))
    title = re.search('<title>(.*)</title>', log).group(1)
    stage.screen.line(
        f'The links lead to the logs, such as that of {title!r}.'
    )


def list_as_bucket(stage: Stage) -> None:
    s3 = s3_client(stage.cluster.environment())
    build = stage.some_build
    prefix = f'{build.day_prefix}{build.job}/'
    answer = s3.list_objects_v2(Bucket=SHARDED, Prefix=prefix)
    rows = answer['Contents']
    stage.screen.request(
        f's3.list_objects_v2(Bucket={SHARDED!r}, Prefix={prefix!r})',
        answer=f'{len(rows)} keys',
    )
    stage.screen.lines([f'{row["Size"]:>5,}  {row["Key"]}' for row in rows])
    names = sorted(each.name for each in stage.builds)
    expected = [name for name in names if name.startswith(prefix)]
    _check('the bucket', [row['Key'] for row in rows], expected[:S3_PAGE])


def show_account(stage: Stage) -> None:
    # The account shows the counts of the last pass of container-updater.
    stage.cluster.daemon('container-updater')
    _headers, rows = stage.connect().get_account()
    stage.screen.request('GET AUTH_test', answer=f'{len(rows)} containers')
    stage.screen.table(
        ('container', 'objects', 'bytes'),
        [(row['name'], row['count'], row['bytes']) for row in rows],
    )
    counts = {row['name']: row['count'] for row in rows}
    _check('the account', counts[SHARDED], len(stage.builds))


class Step(NamedTuple):
    """One step.

    :param title: what the step shows
    :param why: why that matters, in one line
    :param play: carries the step out
    """

    title: str
    why: str
    play: Callable[[Stage], None]


STEPS = (
    Step(
        'Two containers: one with many shards, and a plain one',
        'To create a sharded container, a client adds one header to the PUT.',
        create_containers,
    ),
    Step(
        'How fast one container takes logs',
        'Its listing is one database on one disk, so it has a rate limit.',
        upload_into_plain,
    ),
    Step(
        'How fast many shards take logs',
        'Each shard has the rate limit of one container.',
        upload_into_shards,
    ),
    Step(
        'A day in the archive',
        'Clients list one container, in order, by prefix and delimiter.',
        list_a_day,
    ),
    Step(
        'A console log',
        'Objects are read as usual, with their headers.',
        fetch_a_log,
    ),
    Step(
        'Statistics',
        'They cover the whole container, as quotas and billing need it.',
        show_statistics,
    ),
    Step(
        'Objects in each shard, counted in the container databases',
        "A hash of the object's name selects the shard.",
        show_spread,
    ),
    Step(
        'A website',
        "Swift's other filters work: here staticweb lists the day.",
        show_website,
    ),
    Step(
        'A bucket',
        'Clients of S3 see the container as a bucket: this is boto3.',
        list_as_bucket,
    ),
    Step(
        'The account',
        'The account lists containers, not shards, with their total counts.',
        show_account,
    ),
)


def _upload(stage: Stage, container: str, builds: Sequence[Build]) -> float:
    """Upload the logs of builds, with a progress bar.

    :returns: the number of uploads per second
    """
    began = time.monotonic()
    with stage.screen.progress() as progress:
        bar = progress.add_task('', total=len(builds))
        upload_all(
            stage.connect,
            container,
            builds,
            stage.clients,
            on_stored=lambda: progress.advance(bar),
        )
    return len(builds) / (time.monotonic() - began)


def _object_count(stage: Stage) -> int:
    headers = stage.connect().head_container(SHARDED)
    return int(headers[COUNT_HEADER.lower()])


def _fields(headers: Mapping[str, str]) -> list[str]:
    return [f'{name}: {value}' for name, value in headers.items()]


def _jobs_of_the_day(stage: Stage) -> set[str]:
    day = stage.some_build.day
    return {build.job for build in stage.builds if build.day == day}


def _page(url: str) -> str:
    """Return the page that a browser without credentials gets."""
    response = requests.get(url, timeout=TIMEOUT_SECONDS)
    response.raise_for_status()
    return response.text


def _check(what: str, shown: object, expected: object) -> None:
    if shown != expected:
        raise DemoError(f'{what} shows {shown}, it should be {expected}')
