# SPDX-License-Identifier: Apache-2.0
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from shardmw_bench import signals

from shardmw.reshard import row_pass
from test.unit.fakeswift import FakeSwift, fake_swift

#: All profiles try the same examples in every run, so that all machines get
#: the same results. `default` tries few examples, so that tests are fast, and
#: `releases` less, on each pair of releases of Swift and Python.
settings.register_profile(
    'default',
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    'ci',
    settings.get_profile('default'),
    max_examples=100,
    print_blob=True,
)
settings.register_profile(
    'releases', settings.get_profile('default'), max_examples=10
)
settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'default'))


@pytest.fixture
def swift() -> Iterator[FakeSwift]:
    """Run Swift's proxy app with one replica of every container."""
    with fake_swift() as swift:
        yield swift


@pytest.fixture
def replicated() -> Iterator[FakeSwift]:
    """Run Swift's proxy app with three replicas of every container."""
    with fake_swift(replicas=3) as swift:
        yield swift


@pytest.fixture(autouse=True)
def _strays_move_at_once(monkeypatch):
    # Only simulated changes and the functional tests need the whole wait.
    monkeypatch.setattr(row_pass, 'STAY_SECONDS', 0)


@pytest.fixture(autouse=True)
def _signals_as_before():
    # A command that is tested installs its own handlers. If they stayed, a
    # Ctrl-C would fail the current test instead of ending the run.
    before = {each: signal.getsignal(each) for each in signals.ENDING}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)
