# SPDX-License-Identifier: Apache-2.0
"""Use the container server's own code, for the filter beside it."""

from collections.abc import Iterator
from contextlib import contextmanager

from swift.container.backend import ContainerBroker as ContainerBroker
from swift.container.server import ContainerController as ContainerController

from shardmw.swift.open_brokers import close

#: How long Swift's code may wait for the lock of a database's pending rows. If
#: it takes longer, they are not merged. Swift's server waits a tenth of this,
#: twice for a listing. A listing of many shards has more locks to wait for,
#: and lacks rows if it does not get one of them.
PENDING_SECONDS = 1


@contextmanager
def swift_broker(
    server: ContainerController, *where: str
) -> Iterator[ContainerBroker]:
    """Yield a new broker of Swift's, and close it after the block.

    It merges pending rows before it reads, if it gets their lock. The server's
    own method chooses the database's path.

    :param where: the device, the partition, the account and the container
    """
    broker = server._get_container_broker(
        *where, pending_timeout=PENDING_SECONDS, stale_reads_ok=True
    )
    try:
        yield broker
    finally:
        close(broker)
