# SPDX-License-Identifier: Apache-2.0
"""The audit watcher, with Swift's container servers."""

import json
import logging
import time
from pathlib import Path
from unittest import mock
from urllib.parse import urlencode

import pytest
from swift.common.exceptions import ClientException
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.utils import Timestamp, load_pkg_resource
from swift.obj.watchers import dark_data as swifts

from shardmw.backend import rows
from shardmw.backend.containers import RECORD_HEADER
from shardmw.core.placement import backing_container
from shardmw.object_server import dark_data
from test.unit.containers import (
    OLD_ID,
    create,
    layout_of,
    put_sharded_row,
    shard_for,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, FakeSwift, filtered

OLD = time.time() - 30 * 86400

SPLIT_HEADERS = {'X-Backend-Sharding-State': 'sharded'}


@pytest.fixture
def direct(replicated, monkeypatch) -> FakeSwift:
    """Return a cluster whose container servers the watcher asks.

    This replaces ``swift.common.direct_client``, which needs a network.
    """
    swift = replicated

    def ask(
        method: str,
        node: dict,
        path: str,
        headers: dict,
        port: int = swift.servers.CONTAINER_PORT,
    ):
        if node['device'] in swift.servers.away:
            raise ClientException('', http_status=503)
        stamp = {'X-Timestamp': Timestamp.now().internal}
        answer = swift.servers.answer(
            port,
            method,
            f'/{node["device"]}/1/{path}',
            list({**stamp, **headers}.items()),
            b'',
        )
        if answer.status // 100 != 2:
            raise ClientException('', http_status=answer.status)
        return HeaderKeyDict(answer.getheaders()), answer.read()

    def head(node, part, account, container):
        return ask('HEAD', node, f'{account}/{container}', {})[0]

    def get(
        node, part, account, container, headers=(), extra_params=None, **q
    ):
        query = urlencode({'format': 'json', **q, **(extra_params or {})})
        path = f'{account}/{container}?{query}'
        found, body = ask('GET', node, path, dict(headers))
        return found, json.loads(body or b'[]')

    def get_account(node, part, account, **q):
        path = f'{account}?{urlencode({"format": "json", **q})}'
        port = swift.servers.ACCOUNT_PORT
        found, body = ask('GET', node, path, {}, port)
        return found, json.loads(body or b'[]')

    monkeypatch.setattr(dark_data, 'direct_get_account', get_account)
    monkeypatch.setattr(dark_data, 'direct_head_container', head)
    monkeypatch.setattr(rows, 'direct_get_container', get)
    monkeypatch.setattr(swifts, 'direct_get_container', get)
    rings = {'account': swift.account_ring, 'container': swift.container_ring}
    monkeypatch.setattr(swifts, 'Ring', lambda _, ring_name: rings[ring_name])
    return swift


class Auditor:
    """An auditor that shows objects to a watcher that deletes dark data."""

    def __init__(self, folder: Path, kind: type) -> None:
        self.folder = folder
        self.watcher = kind({'action': 'delete'}, logging.getLogger())
        self.watcher.start('ALL')

    def keeps(self, container: str, name: str) -> bool:
        """Return True if an object still exists afterwards."""
        data = self.folder / container / name / 'o.data'
        data.parent.mkdir(parents=True)
        data.write_bytes(b'')
        stamp = Timestamp(OLD).internal
        metadata = {
            'name': f'/{ACCOUNT}/{container}/{name}',
            'X-Timestamp': stamp,
        }
        self.watcher.see_object(metadata, str(data))
        return data.exists()

    @property
    def totals(self) -> tuple[int, int, int]:
        watcher = self.watcher
        return watcher.tot_okay, watcher.tot_dark, watcher.tot_unknown


@pytest.fixture
def auditor(direct, tmp_path) -> Auditor:
    create(direct, filtered(direct), 4)
    put_sharded_row(direct, 'o', at=OLD)
    direct.put_container(f'/{ACCOUNT}/plain')
    direct.put_row(f'/{ACCOUNT}/plain/o', at=OLD)
    return Auditor(tmp_path, dark_data.DarkDataWatcher)


def test_the_watcher_is_found_by_its_name_in_the_option_watchers():
    found = load_pkg_resource(
        'swift.object_audit_watcher', 'shardmw#dark_data'
    )
    assert found is dark_data.DarkDataWatcher


def test_swifts_own_watcher_takes_listed_objects_for_dark_data(
    auditor, tmp_path
):
    own = Auditor(tmp_path / 'own', swifts.DarkDataWatcher)
    assert own.keeps('plain', 'o')
    assert not own.keeps('c', 'o')


@pytest.mark.parametrize('container', ['plain', 'c'])
def test_the_watcher_keeps_listed_objects_only(auditor, container):
    assert auditor.keeps(container, 'o')
    assert auditor.totals == (1, 0, 0)
    assert not auditor.keeps(container, 'dark')
    assert auditor.totals == (1, 1, 0)


def test_the_watcher_keeps_objects_that_one_replica_lists(direct, auditor):
    shard = shard_for(direct, 'o')
    for replica in (0, 2):
        direct.broker(HIDDEN, shard, replica).delete_object(
            'o', Timestamp.now().internal
        )
    assert auditor.keeps('c', 'o')


@pytest.mark.parametrize('name', ['o', 'dark'])
class TestKeepsAll:
    def test_while_a_server_is_away(self, direct, auditor, name):
        direct.servers.away = {'d1'}
        assert auditor.keeps('c', name)
        assert auditor.totals == (0, 0, 1)

    def test_while_the_layout_changes(self, direct, auditor, name):
        changing = layout_of(direct).announced(8, time.time())
        for replica in range(3):
            direct.broker(ACCOUNT, 'c', replica).update_metadata(
                {
                    RECORD_HEADER: (
                        changing.to_record(),
                        Timestamp.now().internal,
                    )
                }
            )
        assert auditor.keeps('c', name)
        assert auditor.totals == (0, 0, 1)

    def test_if_the_record_cannot_be_read(self, direct, auditor, name):
        with mock.patch.object(
            dark_data, 'parse_record', side_effect=dark_data.LayoutError
        ):
            assert auditor.keeps('c', name)
        assert auditor.totals == (0, 0, 1)

    def test_if_swifts_sharder_has_split_the_shard(
        self, direct, auditor, name, monkeypatch
    ):
        """The rows are then in other databases."""
        monkeypatch.setattr(
            dark_data, 'row_at', lambda *_: (SPLIT_HEADERS, None)
        )
        assert auditor.keeps('c', name)
        assert auditor.totals == (0, 0, 1)


class TestWhileRowsHaveYetToBeMoved:
    @pytest.fixture(params=['c', 'plain'])
    def container(self, request, direct) -> str:
        """Return a container with a row in a shard of an earlier layout."""
        late = backing_container(request.param, OLD_ID, 3)
        direct.put_container(f'/{HIDDEN}/{late}')
        direct.put_row(f'/{HIDDEN}/{late}/late', at=OLD)
        direct.update_accounts()
        return request.param

    def test_keeps_all_objects(self, auditor, container):
        assert auditor.keeps(container, 'late')
        assert auditor.totals == (0, 0, 1)

    def test_needs_one_replica_of_the_account(
        self, direct, auditor, container
    ):
        for replica in (0, 1):
            direct.lose_account(HIDDEN, replica)
        assert auditor.keeps(container, 'late')

    def test_keeps_no_objects_of_other_containers(self, auditor, container):
        (other,) = {'c', 'plain'} - {container}
        assert not auditor.keeps(other, 'late')

    def test_keeps_what_is_moved_to_the_root_meanwhile(
        self, direct, auditor, container, monkeypatch
    ):
        def move(*_args) -> bool:
            direct.put_row(f'/{ACCOUNT}/{container}/late', at=OLD)
            return False

        monkeypatch.setattr(auditor.watcher, '_has_late_rows', move)
        assert auditor.keeps(container, 'late')
