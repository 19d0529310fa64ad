# SPDX-License-Identifier: Apache-2.0
"""The survey of shardmw-admin, on Swift's own databases."""

import time

import pytest
from swift.common.utils import Timestamp

from shardmw.admin.export import export
from shardmw.admin.walk import places_of
from shardmw.backend.containers import RECORD_HEADER, BackendError
from shardmw.core.layout import Layout
from shardmw.core.paths import Path
from shardmw.core.placement import versions_container
from shardmw.reshard.cluster import SwiftCluster
from shardmw.reshard.errors import AdminError
from shardmw.reshard.survey import Survey
from test.unit.containers import (
    OLD_ID,
    backing,
    create,
    layout_of,
    put_sharded_row,
)
from test.unit.fakeswift import ACCOUNT, HIDDEN, filtered

NAMES = [f'o{i:02}' for i in range(20)]


@pytest.fixture
def filter_app(swift):
    return filtered(swift)


@pytest.fixture
def cluster(swift) -> SwiftCluster:
    return SwiftCluster(swift)


@pytest.fixture
def survey(cluster) -> Survey:
    return Survey(cluster)


@pytest.fixture
def filled(swift, filter_app):
    """The container `c` of four shards, and a plain one."""
    create(swift, filter_app, 4)
    swift.put_container(f'/{ACCOUNT}/plain')
    for name in NAMES:
        put_sharded_row(swift, name)
        swift.put_row(f'/{ACCOUNT}/plain/{name}')
    swift.update_accounts()


def path(container: str) -> Path:
    return Path('v1', ACCOUNT, container)


def exported(cluster, container: str) -> list[str]:
    places = places_of(cluster, path(container))
    return [row['name'] for row in export(cluster, places)]


class TestAccounts:
    def test_are_those_that_have_had_a_sharded_container(
        self, swift, filter_app, survey
    ):
        assert list(survey.accounts()) == []
        create(swift, filter_app, 2)
        create(swift, filter_app, 2, 'd')
        assert list(survey.accounts()) == [ACCOUNT]


@pytest.mark.usefixtures('filled')
class TestContainers:
    def test_have_the_figures_of_their_shards(self, survey):
        sharded, plain = survey.containers(ACCOUNT)
        assert (sharded.container, sharded.shards) == ('c', 4)
        assert sharded.objects == len(NAMES)
        assert 5 <= sharded.fullest < len(NAMES)
        assert (plain.container, plain.shards) == ('plain', 0)
        assert plain.objects == plain.fullest == len(NAMES)

    def test_have_the_depth_of_their_layout(self, swift, filter_app, survey):
        create(swift, filter_app, 2, 'd', depth=1)
        swift.update_accounts()
        listed = {each.container: each for each in survey.containers(ACCOUNT)}
        assert (listed['c'].depth, listed['d'].depth) == (0, 1)
        assert survey.measured(path('d')) == listed['d']
        state = survey.state(path('d')).as_json()
        assert (state['layout'], state['depth']) == ('2 shards, depth 1', 1)

    def test_are_plain_in_spite_of_shards_of_an_earlier_layout(
        self, swift, survey
    ):
        swift.put_container(f'/{HIDDEN}/plain.{OLD_ID}.0')
        plain = list(survey.containers(ACCOUNT))[1]
        assert (plain.shards, plain.problem) == (0, '')

    def test_of_old_versions_are_among_them(self, swift, survey):
        swift.put_container(f'/{ACCOUNT}/{versions_container("c")}')
        swift.update_accounts()
        names = [each.container for each in survey.containers(ACCOUNT)]
        assert versions_container('c') in names

    def test_with_an_unreadable_record_have_a_problem(self, swift, survey):
        swift.direct('POST', f'/{ACCOUNT}/c', {RECORD_HEADER: '{}'})
        first, second = survey.containers(ACCOUNT)
        assert first.problem.startswith('version None')
        assert second.problem == ''

    def test_that_swifts_sharder_has_split_have_no_full_database(
        self, swift, survey
    ):
        broker = swift.broker(ACCOUNT, 'plain')
        broker.enable_sharding(Timestamp.now())
        assert broker.set_sharding_state()
        _, plain = survey.containers(ACCOUNT, large=len(NAMES))
        assert (plain.objects, plain.fullest) == (len(NAMES), 0)
        _, plain = survey.containers(ACCOUNT, large=len(NAMES) + 1)
        assert plain.fullest == len(NAMES)

    @pytest.mark.parametrize(
        ('container', 'shards'), [('c', 0), ('c', 8), ('plain', 8)]
    )
    def test_that_change_have_the_fullest_database_of_both_layouts(
        self, swift, survey, container, shards
    ):
        before = {each.container: each for each in survey.containers(ACCOUNT)}
        layouts = {'c': layout_of(swift), 'plain': Layout(OLD_ID, 0)}
        layout = layouts[container].announced(shards, time.time())
        record = layout.moving(time.time()).to_record()
        path = f'/{ACCOUNT}/{container}'
        swift.direct('POST', path, {RECORD_HEADER: record})
        swift.put_container(f'/{HIDDEN}/{container}.{layout.id}.0')
        swift.update_accounts()
        after = {each.container: each for each in survey.containers(ACCOUNT)}
        assert after[container].phase == 'moving'
        assert after[container].new_shards == shards
        assert after[container].fullest == before[container].fullest

    def test_whose_shards_are_not_listed_yet_hide_no_other_container(
        self, swift, survey
    ):
        for name in NAMES:
            swift.put_row(f'/{ACCOUNT}/c/{name}')
        swift.update_accounts()
        swift.register('GET', f'/v1/{HIDDEN}', 404)
        listed = survey.containers(ACCOUNT, large=len(NAMES))
        assert [each.container for each in listed] == ['c', 'plain']

    def test_of_an_account_without_shards_are_plain(self, swift, survey):
        swift.put_account('other')
        swift.put_container('/other/c')
        swift.update_accounts()
        (only,) = survey.containers('other')
        assert (only.container, only.shards) == ('c', 0)


@pytest.mark.usefixtures('filled')
class TestMeasured:
    """The current figures of a container, which no account has yet."""

    @pytest.mark.parametrize('container', ['c', 'plain'])
    def test_is_as_accounts_list_it_later(self, swift, survey, container):
        listed = {each.container: each for each in survey.containers(ACCOUNT)}
        assert survey.measured(path(container)) == listed[container]

    def test_has_rows_that_came_since(self, swift, survey):
        put_sharded_row(swift, 'later')
        assert survey.measured(path('c')).objects == len(NAMES) + 1

    def test_of_a_container_with_a_missing_shard_is_not_known(
        self, swift, survey
    ):
        name = backing(swift, 1)
        for row in swift.rows(HIDDEN, name):
            swift.direct('DELETE', f'/{HIDDEN}/{name}/{row}')
        swift.direct('DELETE', f'/{HIDDEN}/{name}')
        with pytest.raises(BackendError, match='a shard did not answer'):
            survey.measured(path('c'))


@pytest.mark.usefixtures('filled')
class TestState:
    def test_has_each_shard(self, swift, survey):
        state = survey.state(path('c'))
        assert state.layout_id == layout_of(swift).id
        assert [each.shard for each in state.shards] == [0, 1, 2, 3]
        assert [each.container for each in state.shards] == [
            backing(swift, shard) for shard in range(4)
        ]
        assert sum(each.rows for each in state.shards) == len(NAMES)
        assert state.objects == len(NAMES)
        assert state.strays == 0
        assert state.is_whole

    def test_counts_strays(self, swift, survey):
        swift.put_row(f'/{ACCOUNT}/c/stray')
        state = survey.state(path('c'))
        assert (state.strays, state.objects) == (1, len(NAMES) + 1)

    def test_shows_a_missing_shard(self, swift, survey):
        name = backing(swift, 1)
        for row in swift.rows(HIDDEN, name):
            swift.direct('DELETE', f'/{HIDDEN}/{name}/{row}')
        swift.direct('DELETE', f'/{HIDDEN}/{name}')
        state = survey.state(path('c'))
        assert state.shards[1].status == 404
        assert not state.is_whole

    def test_of_a_plain_container_has_no_shards(self, survey):
        state = survey.state(path('plain'))
        assert (state.layout_id, state.shards) == (None, [])
        assert (state.objects, state.strays) == (len(NAMES), 0)

    def test_of_a_container_that_is_not_there_is_an_error(self, survey):
        with pytest.raises(AdminError, match='/none: no such container'):
            survey.state(path('none'))


@pytest.mark.usefixtures('filled')
class TestExport:
    def test_lists_a_sharded_container_in_order(self, cluster):
        assert exported(cluster, 'c') == NAMES

    def test_lists_a_plain_container(self, cluster):
        assert exported(cluster, 'plain') == NAMES

    def test_reads_page_by_page(self, swift, cluster, monkeypatch):
        monkeypatch.setattr('shardmw.admin.export.ROWS_IN_MEMORY', 8)
        assert exported(cluster, 'c') == NAMES

    def test_has_strays_and_rows_of_earlier_layouts_once(self, swift, cluster):
        swift.put_row(f'/{ACCOUNT}/c/o05')
        swift.put_row(f'/{ACCOUNT}/c/stray')
        swift.put_container(f'/{HIDDEN}/c.{OLD_ID}.0')
        swift.put_row(f'/{HIDDEN}/c.{OLD_ID}.0/late')
        swift.update_accounts()
        assert exported(cluster, 'c') == ['late', *NAMES, 'stray']

    def test_of_a_container_with_a_missing_shard_is_an_error(
        self, swift, cluster
    ):
        swift.register('GET', f'/v1/{HIDDEN}/{backing(swift, 2)}', 404)
        with pytest.raises(BackendError, match='answered 404'):
            exported(cluster, 'c')
