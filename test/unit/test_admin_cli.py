# SPDX-License-Identifier: Apache-2.0
"""The command line of shardmw-admin, on Swift's own databases."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from shardmw.admin import cli
from shardmw.admin.cluster import SwiftCluster
from shardmw.backend.containers import RECORD_HEADER
from test.unit.fakeswift import ACCOUNT


@pytest.fixture
def admin(swift, monkeypatch) -> Callable[..., Result]:
    """Runs the command: ``admin('list')``."""
    monkeypatch.setattr(cli, '_open', lambda *_args: SwiftCluster(swift))
    return lambda *arguments: CliRunner().invoke(cli.main, arguments)


class TestAudit:
    def test_names_a_container_that_cannot_be_read(self, swift, admin):
        swift.put_container(f'/{ACCOUNT}/damaged', {RECORD_HEADER: '{}'})
        swift.update_accounts()
        for options in ([], ['--repair'], ['--json']):
            ran = admin('audit', '--account', ACCOUNT, *options)
            assert ran.exit_code == 1
            assert f'Error: {ACCOUNT}/damaged: version None' in ran.stderr
            assert 'container that could not be audited' in ran.stdout
