# SPDX-License-Identifier: Apache-2.0
"""The program ``swift`` on whole accounts."""

from typing import NamedTuple

import pytest

from test.functional.client import Client
from test.functional.conftest import STORED_BODY
from test.functional.realclients import (
    COUNTS,
    SwiftProgram,
    read_tree,
    store,
)


class Account(NamedTuple):
    """An account of its own, with a container ``c``."""

    client: Client
    swift: SwiftProgram


def make_account(new_account, kind: str) -> Account:
    client = new_account()
    assert client.put('c', headers=COUNTS[kind]).status == 201
    return Account(client, SwiftProgram.with_token(client))


@pytest.fixture(scope='class', params=COUNTS)
def filled_account(request, cluster, new_account):
    """An account with objects, after an update of its sums."""
    account = make_account(new_account, request.param)
    store(account.client, 'c', 'a', 'b', 'ü')
    account.client.put('other')
    cluster.daemon('container-updater')
    return account


class TestAccount:
    @pytest.fixture(params=COUNTS)
    def account(self, request, new_account):
        return make_account(new_account, request.param)

    def test_is_listed(self, filled_account):
        assert filled_account.swift.lines('list') == ['c', 'other']

    def test_is_listed_with_sums(self, filled_account):
        lines = filled_account.swift.lines('list', '--lh')
        first, second, total = (line.split() for line in lines)
        assert (first[0], first[1], first[-1]) == ('3', '30', 'c')
        assert (second[0], second[1], second[-1]) == ('0', '0', 'other')
        assert total == ['3', '30']

    def test_shows_its_sums(self, filled_account):
        shown = filled_account.swift.stat()
        assert shown['Containers'] == '2'
        assert shown['Objects'] == '3'
        assert shown['Bytes'] == '30'
        assert shown['Containers in policy "policy-0"'] == '2'

    def test_is_downloaded(self, filled_account, tmp_path):
        filled_account.swift('download', '--all', cwd=tmp_path)
        files = read_tree(tmp_path)
        assert sorted(files) == ['c/a', 'c/b', 'c/ü']
        assert set(files.values()) == {STORED_BODY}

    def test_can_be_emptied(self, account):
        store(account.client, 'c', 'a', 'b', 'ü')
        account.swift('delete', '--all')
        assert account.client.listing().names() == []
