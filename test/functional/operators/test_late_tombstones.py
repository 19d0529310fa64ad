# SPDX-License-Identifier: Apache-2.0
"""Deletions that arrive in the old place of rows after these have moved.

An object server delays an update that a container server does not take.
"""

import time

import pytest
from swift.common.utils import Timestamp
from swift.container.backend import ContainerBroker

from test.functional.backing import databases, put_rows
from test.functional.conftest import SHARD_COUNT_HEADER, unique
from test.functional.operating import wait_for_phase

SETTLE_SECONDS = '6'


@pytest.mark.parametrize(('former', 'shards'), [(0, 2), (2, 3), (2, 0)])
def test_a_deletion_that_arrives_while_a_change_settles_is_kept(
    cluster, client, admin, backing, former, shards
):
    container = unique('deleted')
    count = {SHARD_COUNT_HEADER: str(former)} if former else {}
    assert client.put(container, headers=count).status == 201
    assert client.put(container, 'kept').status == 201
    old = client.account, container
    if former:
        old = backing.hidden.account, backing.shard_name(container, 0)
    uploaded = time.time() - 60
    put_rows(cluster, *old, ['late'], uploaded)
    change = admin.start(
        'reshard',
        f'{client.account}/{container}',
        str(shards),
        '--settle-seconds',
        SETTLE_SECONDS,
        '--despite-backlog',
    )
    wait_for_phase(change, 'settling')
    assert client.listing(container).names() == ['kept', 'late']

    deleted = Timestamp(uploaded + 30).internal
    for database in databases(cluster, *old):
        ContainerBroker(str(database)).delete_object('late', deleted)
    change.communicate()

    assert change.returncode == 0
    assert client.listing(container).names() == ['kept']
