# SPDX-License-Identifier: Apache-2.0
"""A change of layout while it is unknown whether its container exists.

Two replicas of the root have no database, and the server of the third one is
down, for longer than the daemon waits for the record of a change.
"""

import contextlib
import subprocess
import time
from typing import NamedTuple

import pytest

from shardmw.reshard.resharding import RETRY_SECONDS
from test.functional.conftest import make_plain
from test.functional.operating import (
    SETTINGS,
    SETTLE_SECONDS,
    shards_of,
    wait_for_phase,
)
from test.functional.proof.replicas import (
    EMPTY,
    HOLDER,
    Stored,
    missing,
    stopped,
)

NAMES = [f'o{i:02}' for i in range(12)]
SHARDS = 4

#: How long the daemon waits for the record of a registered change, and for
#: how long the replicas are away.
WRITE_SECONDS = 2 * sum(
    int(SETTINGS[f'internal-client.{name}'])
    for name in ('node_timeout', 'conn_timeout')
)
AWAY_SECONDS = WRITE_SECONDS + RETRY_SECONDS + 5

#: How long they are away while the command runs, which looks more often.
SHORT_SECONDS = RETRY_SECONDS + 5


class Announced(NamedTuple):
    """A container whose announced change could not be looked up.

    :param shown: for each ``status`` in that time, True if it had the change
    """

    stored: Stored
    shown: list[bool]


@pytest.fixture(scope='class')
def announced(cluster, client, fill, admin, resharder) -> Announced:
    stored = fill(make_plain(client), NAMES)
    admin.detach(client, stored.container, SHARDS)
    shown = []
    with resharder.running() as daemon:
        daemon.wait_until_it_logs(f'{stored.root}: announced')
        with missing(cluster, [stored.root], EMPTY), stopped(cluster, HOLDER):
            deadline = time.monotonic() + AWAY_SECONDS
            while time.monotonic() < deadline:
                shown.append(stored.container in admin.changes(client))
    return Announced(stored, shown)


class TestAnnouncedChange:
    def test_is_shown_meanwhile(self, announced):
        assert all(announced.shown), announced.shown

    def test_is_made_afterwards(self, client, announced, admin, resharder):
        container = announced.stored.container
        assert container in admin.changes(client)
        resharder.once()
        assert shards_of(client, container) == SHARDS
        assert client.listing(container).names() == NAMES
        assert admin.changes(client)[container]['phase'] == 'done'


def test_the_command_does_not_end_in_the_middle_of_a_change(
    cluster, client, fill, admin
):
    stored = fill(make_plain(client), NAMES)
    command = admin.start(
        'reshard',
        stored.root,
        str(SHARDS),
        '--settle-seconds',
        SETTLE_SECONDS,
        '--rows-per-second',
        '2',
    )
    wait_for_phase(command, ': moving')
    with missing(cluster, [stored.root], EMPTY), stopped(cluster, HOLDER):
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.wait(SHORT_SECONDS)
        assert command.poll() is None, command.communicate()
    output, errors = command.communicate(timeout=90)
    assert command.returncode == 0, errors
    assert output == f'{stored.root}: {SHARDS} shards\n'
    assert shards_of(client, stored.container) == SHARDS
    assert client.listing(stored.container).names() == NAMES
