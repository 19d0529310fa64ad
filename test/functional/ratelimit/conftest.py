# SPDX-License-Identifier: Apache-2.0
"""Clients and containers of clusters that limit rates.

Each module defines its own cluster in the fixture ``limited``.
"""

import pytest

from test.functional.client import Client
from test.functional.conftest import STRANGER, USER
from test.functional.ratelimit.limits import MAKERS, Meter, Operator, login


@pytest.fixture(scope='module')
def statsd():
    """The statsd server that a cluster sends its metrics to."""
    listening = Meter()
    yield listening
    listening.close()


@pytest.fixture(scope='module')
def client(limited) -> Client:
    return login(limited, USER)


@pytest.fixture(scope='module')
def other_proxy(limited, client) -> Client:
    """The same user at the second proxy."""
    return client.on(limited.proxy_urls[1])


@pytest.fixture(scope='module')
def stranger(limited, client) -> Client:
    return login(limited, STRANGER).visiting(client)


@pytest.fixture(scope='module')
def operator(limited, client) -> Operator:
    return Operator.of(limited, client)


@pytest.fixture(params=MAKERS)
def container(request, client) -> str:
    """A new container, once plain and once sharded."""
    return MAKERS[request.param](client)
