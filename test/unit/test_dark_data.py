# SPDX-License-Identifier: Apache-2.0
"""The audit watcher, with Swift's container servers."""

import json
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest import mock
from urllib.parse import urlencode

import pytest
from swift.common.exceptions import ClientException
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request, Response
from swift.common.utils import Timestamp, get_logger, load_pkg_resource
from swift.obj.server import ObjectController
from swift.obj.watchers import dark_data as swifts

from shardmw.backend import rows
from shardmw.backend.containers import RECORD_HEADER
from shardmw.core.layout import Layout, id_of_time
from shardmw.core.paths import Place
from shardmw.core.placement import backing_container
from shardmw.object_server import dark_data, relisting
from shardmw.object_server.relisting import UnknownError, target_of
from shardmw.swift.object_audit import StoredObject
from test.unit.containers import (
    OLD_ID,
    create,
    layout_of,
    put_sharded_row,
    shard_for,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, FakeSwift, Ring, filtered

OLD = time.time() - 30 * 86400

#: Times of writes that Swift would not have reclaimed yet.
WRITTEN = time.time() - 86400
LATER, EARLIER = WRITTEN + 60, WRITTEN - 60
GRACE_AGE = '3600'

REPLICAS = 3

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

    def put_row(node, part, account, container, name, headers):
        ask('PUT', node, f'{account}/{container}/{name}', headers)

    monkeypatch.setattr(dark_data, 'direct_get_account', get_account)
    monkeypatch.setattr(dark_data, 'direct_head_container', head)
    monkeypatch.setattr(rows, 'direct_get_container', get)
    monkeypatch.setattr(swifts, 'direct_get_container', get)
    monkeypatch.setattr(relisting, 'direct_put_container_object', put_row)
    rings = {
        'account': swift.account_ring,
        'container': swift.container_ring,
        'object': Ring(swift.servers.OBJECT_PORT, REPLICAS),
    }
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


def announce(direct: FakeSwift) -> None:
    """Announce a change of the layout."""
    changing = layout_of(direct).announced(8, time.time()).to_record()
    record = {RECORD_HEADER: (changing, Timestamp.now().internal)}
    for replica in range(REPLICAS):
        direct.broker(ACCOUNT, 'c', replica).update_metadata(record)


def test_the_watcher_keeps_what_a_change_may_have_moved_meanwhile(
    direct, auditor, monkeypatch
):
    def move(*_args) -> bool:
        announce(direct)
        return False

    monkeypatch.setattr(auditor.watcher, '_has_late_rows', move)
    assert auditor.keeps('c', 'moved')
    assert auditor.totals == (0, 0, 1)


@pytest.mark.parametrize('name', ['o', 'dark'])
class TestKeepsAll:
    def test_while_a_server_is_away(self, direct, auditor, name):
        direct.servers.away = {'d1'}
        assert auditor.keeps('c', name)
        assert auditor.totals == (0, 0, 1)

    def test_while_the_layout_changes(self, direct, auditor, name):
        announce(direct)
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


class Objects:
    """Swift's object server with a device per replica, and a handoff.

    :ivar away: the devices that do not answer
    """

    HANDOFF = REPLICAS

    def __init__(self, folder: Path) -> None:
        for replica in range(REPLICAS + 1):
            (folder / f'd{replica}').mkdir(parents=True)
        self.away: set[str] = set()
        self.folder = folder
        self.conf = {
            'devices': str(folder),
            'mount_check': 'false',
            'log_requests': 'false',
        }
        logger = get_logger({}, log_route='objects')
        self._app = ObjectController(self.conf, logger)

    def ask(
        self, method: str, device: str, path: str, headers: dict
    ) -> Response:
        req = Request.blank(
            f'/{device}/1/{path}', {'REQUEST_METHOD': method}, headers
        )
        return req.get_response(self._app)

    def write(
        self,
        method: str,
        path: str,
        at: float,
        replicas: Iterable[int] = range(REPLICAS),
        **headers: str,
    ) -> None:
        """Send a write to some replicas of an object.

        :param path: ``container/object``
        """
        sent = {'X-Timestamp': Timestamp(at).internal}
        if method == 'PUT':
            sent |= {'Content-Type': 'text/plain', 'Content-Length': '0'}
        sent |= {k.replace('_', '-'): v for k, v in headers.items()}
        for replica in replicas:
            answer = self.ask(method, f'd{replica}', f'{ACCOUNT}/{path}', sent)
            assert answer.status_int < 300 or method == 'DELETE', answer

    def head(self, node, part, account, container, name, headers):
        if node['device'] in self.away:
            raise ClientException('', http_status=503)
        path = f'{account}/{container}/{name}'
        answer = self.ask('HEAD', node['device'], path, headers)
        found = HeaderKeyDict(answer.headers.items())
        if answer.status_int // 100 != 2:
            raise ClientException(
                '', http_status=answer.status_int, http_headers=found
            )
        return found

    def data_file(self, replica: int) -> Path:
        """Return the file of the only object on a device."""
        files = self.folder.glob(f'd{replica}/objects*/*/*/*/*.data')
        (path,) = files
        return path


@pytest.fixture
def objects(auditor, tmp_path, monkeypatch) -> Objects:
    objects = Objects(tmp_path / 'devices')
    monkeypatch.setattr(relisting, 'direct_head_object', objects.head)
    return objects


@pytest.fixture
def place(direct) -> Callable[[str], Place]:
    """Return a function that returns where the row of ``lost`` belongs."""

    def place(container: str) -> Place:
        if container == 'plain':
            return Place(ACCOUNT, container)
        return Place(HIDDEN, shard_for(direct, 'lost'))

    return place


class Pass:
    """A pass of an auditor with ``action = relist`` over some objects."""

    def __init__(self, objects: Objects, **conf: str) -> None:
        self.objects = objects
        self.watcher = dark_data.DarkDataWatcher(
            {
                **objects.conf,
                'action': 'relist',
                'grace_age': GRACE_AGE,
                **conf,
            },
            logging.getLogger(),
        )
        self.watcher.start('ALL')

    def sees(self, path: str, replica: int = 0, at: float = WRITTEN) -> str:
        """Show the only object of a device; return what it counted as."""
        metadata = {
            'name': f'/{ACCOUNT}/{path}',
            'X-Timestamp': Timestamp(at).internal,
        }
        data_file = str(self.objects.data_file(replica))
        before = self.totals
        self.watcher.see_object(metadata, data_file)
        (counted,) = [
            name
            for name, total in self.totals.items()
            if total != before[name]
        ]
        return counted

    @property
    def totals(self) -> dict[str, int]:
        names = ('okay', 'dark', 'unknown', 'relisted')
        return {name: getattr(self.watcher, f'tot_{name}') for name in names}


def listed(swift: FakeSwift, place: Place) -> list[bool]:
    """Return for each replica if it lists the object ``lost``."""
    replicas = range(REPLICAS)
    return ['lost' in swift.rows(*place, replica) for replica in replicas]


ALL, NONE = [True] * REPLICAS, [False] * REPLICAS


class TestRelist:
    @pytest.mark.parametrize('container', ['plain', 'c'])
    def test_writes_a_row_to_all_replicas_of_its_place(
        self, direct, objects, place, container
    ):
        objects.write('PUT', f'{container}/lost', WRITTEN)
        assert Pass(objects).sees(f'{container}/lost') == 'relisted'
        assert listed(direct, place(container)) == ALL
        row = direct.broker(*place(container)).get_items_since(-1, 9)[-1]
        assert row['created_at'] == Timestamp(WRITTEN).internal
        assert row['content_type'] == 'text/plain'

    def test_changes_nothing_in_a_second_pass(self, objects):
        objects.write('PUT', 'c/lost', WRITTEN)
        assert Pass(objects).sees('c/lost') == 'relisted'
        for replica in range(REPLICAS):
            assert Pass(objects).sees('c/lost', replica) == 'okay'

    def test_leaves_objects_alone_until_the_grace_age(
        self, direct, objects, place
    ):
        at = time.time() - 60
        objects.write('PUT', 'c/lost', at)
        assert Pass(objects, grace_age='90').sees('c/lost', at=at) == 'okay'
        assert listed(direct, place('c')) == NONE
        found = Pass(objects, grace_age='30').sees('c/lost', at=at)
        assert found == 'relisted'

    def test_logs_what_it_has_done(self, objects, caplog):
        objects.write('PUT', 'c/lost', WRITTEN)
        with caplog.at_level(logging.INFO):
            relists = Pass(objects)
            relists.sees('c/lost')
            relists.watcher.end()
        assert caplog.messages == [
            f'relisted /{ACCOUNT}/c/lost',
            'total unknown 0 ok 0 dark 0',
            'total relisted 1',
        ]

    def test_counts_nothing_in_a_pass_over_empty_files(self, objects, caplog):
        relists = Pass(objects)
        relists.watcher.start('ZBF')
        with caplog.at_level(logging.INFO):
            relists.watcher.end()
        assert caplog.messages == []

    def test_is_taken_for_log_if_it_is_misspelt(self, objects, caplog):
        objects.write('PUT', 'c/lost', WRITTEN)
        assert Pass(objects, action='re-list').sees('c/lost') == 'dark'
        assert "action 're-list' unknown" in caplog.text


class TestRelistAsksAllReplicasOfTheObject:
    """The row is not written unless they prove that the object is current."""

    def test_and_waits_for_a_server_that_is_away(self, direct, objects, place):
        objects.write('PUT', 'c/lost', WRITTEN)
        objects.away = {'d2'}
        assert Pass(objects).sees('c/lost') == 'unknown'
        assert listed(direct, place('c')) == NONE

    def test_of_which_one_is_enough(self, direct, objects, place):
        objects.write('PUT', 'c/lost', WRITTEN, replicas=[1])
        assert Pass(objects).sees('c/lost', replica=1) == 'relisted'
        assert listed(direct, place('c')) == ALL

    def test_and_does_not_trust_a_copy_that_no_primary_has(
        self, direct, objects, place
    ):
        objects.write('PUT', 'c/lost', WRITTEN, replicas=[Objects.HANDOFF])
        found = Pass(objects).sees('c/lost', replica=Objects.HANDOFF)
        assert found == 'unknown'
        assert listed(direct, place('c')) == NONE

    def test_and_leaves_a_deleted_object_alone(self, direct, objects, place):
        objects.write('PUT', 'c/lost', WRITTEN)
        objects.write('DELETE', 'c/lost', LATER, replicas=[2])
        assert Pass(objects).sees('c/lost') == 'unknown'
        assert listed(direct, place('c')) == NONE

    def test_and_ignores_an_earlier_deletion(self, direct, objects, place):
        objects.write('DELETE', 'c/lost', EARLIER)
        objects.write('PUT', 'c/lost', WRITTEN, replicas=[0, 1])
        assert Pass(objects).sees('c/lost') == 'relisted'
        assert listed(direct, place('c')) == ALL

    @pytest.mark.parametrize('method', ['PUT', 'POST'])
    def test_and_leaves_a_later_write_to_the_node_that_has_it(
        self, direct, objects, place, method
    ):
        objects.write('PUT', 'c/lost', WRITTEN)
        objects.write(
            method, 'c/lost', LATER, replicas=[1], Content_Type='text/x'
        )
        assert Pass(objects).sees('c/lost') == 'unknown'
        assert listed(direct, place('c')) == NONE
        assert Pass(objects).sees('c/lost', replica=1) == 'relisted'
        row = direct.broker(*place('c')).get_items_since(-1, 9)[-1]
        assert row['content_type'] == 'text/x'

    def test_and_leaves_an_expired_object_alone(self, direct, objects, place):
        objects.write('PUT', 'c/lost', WRITTEN)
        expiry = str(int(LATER + 60))
        objects.write(
            'POST', 'c/lost', LATER, replicas=[1], X_Delete_At=expiry
        )
        assert Pass(objects).sees('c/lost') == 'unknown'
        assert listed(direct, place('c')) == NONE

    def test_and_leaves_an_object_alone_that_expires_meanwhile(
        self, direct, objects, place
    ):
        expiry = str(int(LATER + 60))
        objects.write('PUT', 'c/lost', WRITTEN, X_Delete_At=expiry)
        assert Pass(objects).sees('c/lost') == 'unknown'
        assert listed(direct, place('c')) == NONE


class TestRelistWritesNoRow:
    def test_that_is_older_than_its_tombstone(self, direct, objects, place):
        objects.write('PUT', 'c/lost', WRITTEN)
        for replica in range(REPLICAS):
            direct.broker(*place('c'), replica).delete_object(
                'lost', Timestamp(LATER).internal
            )
        Pass(objects).sees('c/lost')
        assert listed(direct, place('c')) == NONE

    def test_of_an_object_in_another_policy(self, direct, objects, place):
        objects.write(
            'PUT', 'c/lost', WRITTEN, X_Backend_Storage_Policy_Index='1'
        )
        assert Pass(objects).sees('c/lost') == 'dark'
        rows = direct.broker(*place('c')).get_items_since(-1, 9)
        assert 'lost' not in [row['name'] for row in rows]

    def test_of_an_object_from_before_the_deletion_of_its_container(
        self, direct, objects
    ):
        objects.write('PUT', 'again/lost', WRITTEN)
        path = f'/{ACCOUNT}/again'
        for method, at in (('PUT', WRITTEN), ('DELETE', LATER)):
            direct.direct(
                method, path, {'X-Timestamp': Timestamp(at).internal}
            )
        direct.put_container(path)
        assert Pass(objects).sees('again/lost') == 'dark'
        assert listed(direct, Place(ACCOUNT, 'again')) == NONE

    def test_of_an_object_whose_container_does_not_exist(
        self, direct, objects
    ):
        objects.write('PUT', 'none/lost', WRITTEN)
        assert Pass(objects).sees('none/lost') == 'unknown'
        assert not Path(direct.broker(ACCOUNT, 'none').db_file).exists()

    @pytest.mark.parametrize('lost', [{0, 1, 2}, {2}])
    def test_while_a_replica_of_the_shard_is_missing(
        self, direct, objects, place, lost
    ):
        objects.write('PUT', 'c/lost', WRITTEN)
        for replica in lost:
            direct.lose(*place('c'), replica)
        assert Pass(objects).sees('c/lost') == 'unknown'
        databases = [
            Path(direct.broker(*place('c'), replica).db_file)
            for replica in range(REPLICAS)
        ]
        missing = {i for i, each in enumerate(databases) if not each.exists()}
        assert missing == lost

    def test_into_a_shard_that_was_lost_just_now(
        self, direct, objects, place, monkeypatch
    ):
        """Its account's prefix keeps the server from creating a database."""
        objects.write('PUT', 'c/lost', WRITTEN)
        relists = Pass(objects)

        def lose(*_args) -> bool:
            for replica in range(REPLICAS):
                direct.lose(*place('c'), replica)
            return False

        monkeypatch.setattr(relists.watcher, '_is_listed', lose)
        assert relists.sees('c/lost') == 'unknown'
        assert not Path(direct.broker(*place('c')).db_file).exists()

    def test_while_the_layout_changes(self, direct, objects, place):
        objects.write('PUT', 'c/lost', WRITTEN)
        changing = layout_of(direct).announced(8, time.time()).to_record()
        for replica in range(REPLICAS):
            direct.broker(ACCOUNT, 'c', replica).update_metadata(
                {RECORD_HEADER.title(): (changing, Timestamp.now().internal)}
            )
        assert Pass(objects).sees('c/lost') == 'unknown'
        assert listed(direct, place('c')) == NONE

    def test_while_replicas_of_the_root_differ(self, direct, objects, place):
        objects.write('PUT', 'c/lost', WRITTEN)
        direct.broker(ACCOUNT, 'c', 2).update_metadata(
            {RECORD_HEADER.title(): ('', Timestamp.now().internal)}
        )
        assert Pass(objects).sees('c/lost') == 'unknown'
        assert listed(direct, place('c')) == NONE


class TestPlaceOfTheRow:
    STORED = StoredObject(
        0, Timestamp(WRITTEN), Timestamp(WRITTEN), HeaderKeyDict()
    )
    HEAD = HeaderKeyDict({'X-Backend-Storage-Policy-Index': '0'})
    PLACE = Place(ACCOUNT, 'plain')

    def test_is_the_container_if_it_is_plain(self):
        heads = [self.HEAD] * REPLICAS
        assert target_of(self.STORED, self.PLACE, 'o', heads) == self.PLACE

    @pytest.mark.parametrize(
        'header',
        [
            {'X-Backend-Storage-Policy-Index': '1'},
            {'X-Backend-Sharding-State': 'sharding'},
            {'X-Backend-Sharding-State': 'sharded'},
            {RECORD_HEADER: Layout(id_of_time(WRITTEN), 4).to_record()},
        ],
        ids=['policy', 'sharding', 'sharded', 'layout'],
    )
    def test_is_unknown_if_one_replica_is_different(self, header):
        heads = [self.HEAD, self.HEAD, HeaderKeyDict({**self.HEAD, **header})]
        with pytest.raises(UnknownError):
            target_of(self.STORED, self.PLACE, 'o', heads)


def test_a_server_that_ignores_markers_is_not_asked_without_end(monkeypatch):
    monkeypatch.setattr(dark_data, 'ACCOUNT_LISTING_LIMIT', 1)
    same = {}, [{'name': 'c'}]
    monkeypatch.setattr(dark_data, 'direct_get_account', lambda *_, **__: same)
    with pytest.raises(dark_data.UnknownError):
        list(dark_data._account_rows({}, 1, 'a', '', ''))
