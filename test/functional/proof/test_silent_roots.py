# SPDX-License-Identifier: Apache-2.0
"""Two replicas of a root have no database, and the third does not answer.

It is alive: it answers when it goes on.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from test.functional.client import Answer
from test.functional.conftest import MAKERS
from test.functional.proof.replicas import (
    BODY,
    EMPTY,
    HOLDER,
    Stored,
    missing,
    paused,
    readable,
)

NAMES = ['kept', 'deleted']
UPLOADS = ['new-1', 'new-2', 'new-3']
SHARDS = 8


class Silent(NamedTuple):
    """A container whose root was silent.

    :param answers: to requests that clients sent meanwhile, by a proxy that
                    knew nothing of the container, and by one that did
    :param after: the answer to a listing when the third replica went on
    """

    stored: Stored
    answers: dict[str, Answer]
    after: Answer

    def acknowledged(self) -> list[str]:
        """Return the names of the uploads that were acknowledged."""
        return [n for n in UPLOADS if self.answers[n].status == 201]


@pytest.fixture(scope='class', params=MAKERS)
def silent(request, cluster, client, cold, stores, resharder) -> Silent:
    options = {'shards': SHARDS} if request.param == 'sharded' else {}
    stored = stores(request.param, NAMES, **options)
    container = stored.container
    cluster.daemon('container-updater')
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
    with missing(cluster, [stored.root], EMPTY):
        with paused(cluster, HOLDER), ThreadPoolExecutor() as pool:
            passed = pool.submit(resharder.once)
            for requests in (reads, creates, uploads):
                sent = {key: pool.submit(requests[key]) for key in requests}
                answers |= {key: sent[key].result() for key in sent}
            passed.result()
        after = client.listing(container)
    cluster.daemon('object-updater')
    resharder.once()
    return Silent(stored, answers, after)


class TestRootThatWasSilent:
    def test_was_not_listed_as_empty(self, silent):
        assert silent.answers['GET'].status in (404, 503)
        assert silent.answers['HEAD'].status in (404, 503)

    def test_lists_what_can_be_read(self, client, silent):
        container = silent.stored.container
        listed = client.listing(container).names()
        assert listed == readable(client, container, [*NAMES, *UPLOADS])
        assert {'kept', *silent.acknowledged()} <= set(listed)


@pytest.mark.parametrize('silent', ['sharded'], indirect=True)
class TestShardedRootThatWasSilent:
    """Swift creates a plain container anew on the new disks."""

    def test_keeps_its_shards(self, backing, silent):
        container, shards = silent.stored.container, silent.stored.shards
        assert len(backing.shards(container)) == len(shards)
        statuses = [
            backing.head_shard(container, shard).status
            for shard in range(len(shards))
        ]
        assert statuses == [204] * len(shards)

    def test_is_listed_as_soon_as_one_replica_answers(self, silent):
        assert silent.after.status == 200
        assert 'kept' in silent.after.names()
