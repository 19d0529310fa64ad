# SPDX-License-Identifier: Apache-2.0
"""Two replicas of a root have no database, and the third does not answer.

Its server is paused, and answers once it is resumed.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from swift.container.backend import ContainerBroker

from test.functional.backing import databases
from test.functional.client import Answer, Client
from test.functional.conftest import MAKERS, make_plain
from test.functional.proof.replicas import (
    BODY,
    EMPTY,
    HOLDER,
    Stored,
    make_aged,
    missing,
    paused,
    readable,
)

NAMES = ['kept', 'deleted']
UPLOADS = ['new-1', 'new-2', 'new-3']
SHARDS = 8


class Silent(NamedTuple):
    """A container whose root was silent.

    :param answers: the answers to requests that clients sent meanwhile, some
                    of them to a proxy that knew nothing of the container
    """

    stored: Stored
    answers: dict[str, Answer]

    def acknowledged(self) -> list[str]:
        """Return the names of the uploads that were acknowledged."""
        return [n for n in UPLOADS if self.answers[n].status == 201]


@pytest.fixture(scope='class')
def silent_roots(
    cluster, client, cold, backing, fill, resharder
) -> dict[str, Silent]:
    """Containers whose roots were silent, by their kind."""
    stored = {
        'plain': fill(make_plain(client), NAMES),
        'sharded': fill(make_aged(cluster, client, backing, SHARDS), NAMES),
    }
    with (
        missing(cluster, [each.root for each in stored.values()], EMPTY),
        paused(cluster, HOLDER),
        ThreadPoolExecutor() as pool,
    ):
        passed = pool.submit(resharder.once)
        sent = {
            kind: pool.submit(answers_of, client, cold, each.container)
            for kind, each in stored.items()
        }
        answers = {kind: each.result() for kind, each in sent.items()}
        passed.result()
    cluster.daemon('object-updater')
    cluster.daemon('container-replicator')
    resharder.once()
    return {kind: Silent(stored[kind], answers[kind]) for kind in stored}


def answers_of(
    client: Client, cold: Client, container: str
) -> dict[str, Answer]:
    """Return the answers to requests for a container.

    The reads and a DELETE are sent at the same time, then a PUT of the
    container, then the uploads at the same time.
    """
    reads = {
        'GET': lambda: cold.listing(container),
        'HEAD': lambda: cold.head(container),
        'DELETE': lambda: client.delete(container, 'deleted'),
    }
    creates = {'PUT': lambda: cold.put(container)}
    uploads = {
        name: lambda name=name: client.put(container, name, BODY)
        for name in UPLOADS
    }
    answers = {}
    with ThreadPoolExecutor() as pool:
        for requests in (reads, creates, uploads):
            sent = {key: pool.submit(requests[key]) for key in requests}
            answers |= {key: sent[key].result() for key in sent}
    return answers


@pytest.fixture(scope='class', params=MAKERS)
def silent(request, silent_roots) -> Silent:
    return silent_roots[request.param]


class TestRootThatWasSilent:
    """A PUT has Swift create a plain one again, on the new disks."""

    def test_was_not_listed(self, silent):
        assert silent.answers['GET'].status in (404, 503)
        assert silent.answers['HEAD'].status in (404, 503)

    def test_keeps_its_shards(self, cluster, silent):
        paths = [
            path
            for shard in silent.stored.shards
            for path in databases(cluster, *shard.split('/', 1))
        ]
        deleted = [p for p in paths if ContainerBroker(str(p)).is_deleted()]
        assert deleted == []

    def test_lists_what_can_be_read(self, client, silent):
        container = silent.stored.container
        answer = client.listing(container)
        assert answer.status == 200
        existing = readable(client, container, [*NAMES, *UPLOADS])
        assert answer.names() == existing
        assert {'kept', *silent.acknowledged()} <= set(existing)
