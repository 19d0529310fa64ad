# SPDX-License-Identifier: Apache-2.0
"""Two clusters, and containers on them that sync to each other."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test.functional.client import Answer, Client
from test.functional.conftest import SHARD_COUNT_HEADER, USER, unique

DAEMON = 'container-sync'
KEY = 'a shared key'

#: The second pass checks again what the first one has sent.
FEWEST_PASSES = 2
MOST_PASSES = 20

#: What the daemon logs of each container: rows sent, seen again, and in total.
REPORT = re.compile(
    r'Container sync report: (?P<container>.*), time window start: .*'
    r'point1: (?P<sent>\S+), point2: (?P<seen_again>\S+), '
    r'total_rows: (?P<total>\S+)'
)

#: The headers that create a container of each kind.
KINDS = {'plain': {}, 'sharded': {SHARD_COUNT_HEADER: '4'}}


class Side(NamedTuple):
    """One of the two clusters.

    :param name: its name in the other cluster's realms
    """

    name: str
    cluster: Cluster
    client: Client

    def login(self, user: str) -> Client:
        """Log another user in."""
        key = self.cluster.users[user]
        return Client.login(self.cluster.auth_url, user, key)


class Container(NamedTuple):
    """A container on one side."""

    side: Side
    name: str

    @property
    def sync_to(self) -> str:
        """Return the X-Container-Sync-To that names this container."""
        account = self.side.client.account
        return f'//saio/{self.side.name}/{account}/{self.name}'

    def ask(self, method: str, name: str | None = None, **kwargs) -> Answer:
        """Send a request that must succeed."""
        answer = self.side.client.request(method, self.name, name, **kwargs)
        assert answer.status < 300, (method, name, answer)
        return answer

    def status(self, name: str) -> int:
        """Return the status of a GET of an object."""
        return self.side.client.get(self.name, name).status

    def rows(self) -> list[dict]:
        """Return the rows of the listing."""
        return self.ask('GET', query={'format': 'json'}).json()

    def bodies(self) -> dict[str, bytes]:
        """Return the bodies of all listed objects by name."""
        return {
            row['name']: self.ask('GET', row['name']).body
            for row in self.rows()
        }


class Pair(NamedTuple):
    """Two containers that sync to each other."""

    here: Container
    there: Container

    def assert_alike(self) -> None:
        """Check that both list and have the same objects."""
        here, there = map(listed_objects, self)
        assert here == there
        assert self.here.bodies() == self.there.bodies()


def listed_objects(container: Container) -> list[tuple]:
    """Return the columns of the listing that are equal on both sides.

    Sizes are not: on the side that got a large object by container sync, the
    listing has the size of the manifest.
    """
    keys = ('name', 'hash', 'content_type', 'last_modified')
    return [tuple(row[key] for key in keys) for row in container.rows()]


@contextlib.contextmanager
def two_clusters(
    folders: Path, settings: Mapping[str, str], encryption: bool = False
) -> Iterator[tuple[Side, Side]]:
    """Run two clusters with equal settings, in each other's sync realms."""
    options = ClusterOptions(settings=settings, encryption=encryption)
    here = Cluster(folders / 'here', options)
    there = Cluster(folders / 'there', options)
    with here, there:
        acquaint(here, 'there', there)
        acquaint(there, 'here', here)
        yield side('here', here), side('there', there)


def acquaint(cluster: Cluster, name: str, other: Cluster) -> None:
    """Add a cluster to another one's sync realm."""
    setting = f'container-sync-realms.cluster_{name}'
    url = f'{other.proxy_urls[0]}/v1/'
    assert cluster.reconfigure({setting: url}) == []


def side(name: str, cluster: Cluster) -> Side:
    key = cluster.users[USER]
    return Side(name, cluster, Client.login(cluster.auth_url, USER, key))


def make_pair(sides: tuple[Side, Side], kinds: str) -> Pair:
    """Create two containers that sync to each other.

    :param kinds: such as ``plain-to-sharded``
    """
    name = unique('pair')
    pair = Pair(*(Container(side, name) for side in sides))
    for kind, own, other in zip(
        kinds.split('-to-'), pair, reversed(pair), strict=True
    ):
        headers = {
            **KINDS[kind],
            'X-Container-Sync-To': other.sync_to,
            'X-Container-Sync-Key': KEY,
        }
        own.ask('PUT', headers=headers)
    return pair


def sync(sides: tuple[Side, Side]) -> None:
    """Run the daemons of both sides until everything is sent.

    If a pass runs out of time, the next one goes on. If a pass gets no further
    than the one before, some rows cannot be sent. The daemons' reports are
    printed, for tests that fail.
    """
    before: list[re.Match] = []
    for done in range(1, MOST_PASSES + 1):
        reports = [report for each in sides for report in send(each)]
        print(f'pass {done}:', *(report[0] for report in reports), sep='\n')
        if done >= FEWEST_PASSES and (
            all(is_complete(report) for report in reports)
            or points(reports) == points(before)
        ):
            return
        before = reports
    pytest.fail(f'{MOST_PASSES} passes have not sent everything')


def send(side: Side) -> list[re.Match]:
    """Run the daemon of one side once.

    :returns: its report on each container
    """
    log = side.cluster.log_path(DAEMON)
    start = log.stat().st_size if log.exists() else 0
    side.cluster.daemon(DAEMON)
    with log.open('rb') as lines:
        lines.seek(start)
        return list(REPORT.finditer(lines.read().decode()))


def is_complete(report: re.Match) -> bool:
    """Return True if all rows have been sent and checked again."""
    return report['sent'] == report['seen_again'] == report['total']


def points(reports: list[re.Match]) -> set[tuple]:
    """Return each container's sync points as reported."""
    return {report.groups() for report in reports}


def errors(sides: tuple[Side, Side]) -> list[str]:
    """Return the errors that the daemons have logged."""
    return [
        line
        for each in sides
        for line in each.cluster.log_path(DAEMON).read_text().splitlines()
        if ' ERROR ' in line
    ]
