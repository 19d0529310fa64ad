# SPDX-License-Identifier: Apache-2.0
"""What scenarios about databases and files show, from made-up figures."""

import pytest
from click import BadParameter
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.databases import Content
from shardmw_bench.errors import BenchError
from shardmw_bench.experiments import SCENARIOS
from shardmw_bench.kinds import PLAIN, sharded
from shardmw_bench.load.connection import check_url
from shardmw_bench.load.stage import rotated
from shardmw_bench.plots.plot import REFERENCE
from shardmw_bench.replicas import moment
from shardmw_bench.results.runs import Run
from shardmw_bench.results.summary import summarize
from shardmw_bench.scenarios.container_growth import ContainerGrowth
from shardmw_bench.scenarios.replica_convergence import ReplicaConvergence
from shardmw_bench.targets.account import Account, Auth

from test.tools.unit.test_bench_load import outcome_of, sample

MANY = sharded(4)


def write_run(kind, rows: int, milliseconds: float) -> dict:
    """Return a load of two writes that take this long."""
    samples = []
    for begin in (100.2, 100.7):
        each = sample(begin + milliseconds / 1000)
        samples.append(each._replace(start=begin, sent=begin))
    summary = summarize(outcome_of(*samples))
    return Run('write', kind, 0, {'rows': rows}, summary).as_json()


def cells_of(table) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


class TestComparisons:
    def test_each_condition_is_a_comparison(self):
        parameters = SCENARIOS['concurrency'].default()
        found = [
            (each.name, each.size, each.clients, vars(each).get('objects'))
            for each in parameters.works_with(None)
        ]
        assert found == [
            *(('write', '4K', 1, None), ('write', '4K', 16, None)),
            *(('write', '4M', 1, None), ('write', '4M', 16, None)),
            *(('read', '4K', 1, 256), ('read', '4K', 16, 256)),
            *(('read', '4M', 1, 32), ('read', '4M', 16, 32)),
        ]

    def test_uploads_of_large_objects_are_bounded(self):
        parameters = SCENARIOS['object-size'].default()
        *_, largest = parameters.works_with(100.0)
        assert (largest.size, largest.count) == ('64M', 32)
        assert largest.limit == 100


class TestContainerGrowth:
    parameters = ContainerGrowth(
        rows=(1_000_000, 2_000_000), shards=(4,), rounds=1
    )

    @pytest.fixture
    def figures(self):
        took = {
            (PLAIN, 1_000_000): 10,
            (PLAIN, 2_000_000): 15,
            (MANY, 1_000_000): 12,
            (MANY, 2_000_000): 12,
        }
        return {
            'runs': [
                write_run(kind, rows, ms) for (kind, rows), ms in took.items()
            ],
            'preloads': [
                {
                    'kind': PLAIN.as_json(),
                    'before': 0,
                    'rows': 1_000_000,
                    'seconds': 8.0,
                }
            ],
        }

    def test_published_means_stand_beside_ours(self, figures):
        table = self.parameters.tables(figures)[1]
        published, plain, many = cells_of(table)
        assert published['below ms'] == '12.58'
        assert published['above ms'] == '13.29'
        assert (plain['below ms'], plain['above ms']) == ('10.00', '15.00')
        assert plain['above / below'] == '1.50'
        assert many['above / below'] == '1.00'

    def test_the_time_of_a_million_rows_is_shown(self, figures):
        table = self.parameters.tables(figures)[2]
        (row,) = cells_of(table)
        assert (row['to'], row['rows/s']) == ('1,000,000', '125,000')

    def test_published_means_are_in_the_plot(self, figures):
        plot = self.parameters.plots(figures)[0]
        published = plot.series[-1]
        assert published.style == REFERENCE
        assert list(published.y) == [12.58, 12.58, 13.29, 13.29]
        assert min(published.x) == 1_000_000
        assert max(published.x) == 2_000_000

    def test_can_be_shown_with_part_of_the_figures(self, figures):
        figures['runs'] = figures['runs'][:1]
        assert len(self.parameters.tables(figures)) == 3
        assert self.parameters.plots(figures) == []

    def test_can_be_shown_without_figures(self):
        figures = {'runs': [], 'preloads': []}
        assert self.parameters.tables(figures)
        assert self.parameters.plots(figures) == []

    @given(st.lists(st.integers(), min_size=1, unique=True), st.integers(0))
    def test_each_kind_comes_once_a_round(self, kinds, turn):
        assert sorted(rotated(kinds, turn)) == sorted(kinds)

    def test_each_kind_is_first_in_turn(self):
        firsts = [rotated('abc', i)[0] for i in range(4)]
        assert firsts == ['a', 'b', 'c', 'a']

    def test_rows_are_typed_as_counts(self):
        kind = ContainerGrowth.options()['rows']['type']
        assert kind.convert('100K,1M,10e6', None, None) == (
            *(100_000, 1_000_000, 10_000_000),
        )
        for text in ('1M,1M', '1M,', 'many'):
            with pytest.raises(BadParameter, match='write'):
                kind.convert(text, None, None)


class TestReplicaConvergence:
    parameters = ReplicaConvergence(rows=100, shards=(4,), rounds=2)

    @pytest.fixture
    def figures(self):
        def row(kind, turn, seconds):
            return {
                'kind': kind.as_json(),
                'turn': turn,
                'rows': 100,
                'idle_seconds': 1.0,
                'seconds': seconds,
                'passes': 1,
                'moments': [
                    {'seconds': 0.0, 'rows': 0, 'databases': 0},
                    {'seconds': 1.0, 'rows': 60, 'databases': 2},
                    {'seconds': seconds, 'rows': 100, 'databases': 4},
                ],
            }

        return {
            'runs': [],
            'rounds': [
                row(PLAIN, 0, 2.0),
                row(MANY, 0, 3.0),
                row(MANY, 1, 4.0),
                row(PLAIN, 1, 4.0),
            ],
        }

    def test_each_replica_has_a_device(self):
        options = self.parameters.cluster()
        assert options.replicas == options.devices == 3

    def test_containers_are_compared_round_by_round(self, figures):
        table = self.parameters.tables(figures)[0]
        plain, many = cells_of(table)
        assert (plain['seconds'], many['seconds']) == ('3.00', '3.50')
        assert (plain['vs. plain'], many['vs. plain']) == ('—', '1.25')
        assert (many['databases'], many['rows/database']) == ('4', '25')
        assert many['half the rows s'] == '1.00'

    def test_the_plot_ends_with_all_rows(self, figures):
        (plot,) = self.parameters.plots(figures)
        assert [each.y[-1] for each in plot.series] == [100, 100]

    def test_can_be_shown_with_part_of_the_figures(self, figures):
        figures['rounds'] = figures['rounds'][1:2]
        table = self.parameters.tables(figures)[0]
        assert [row['vs. plain'] for row in cells_of(table)] == ['—']

    def test_can_be_shown_without_figures(self):
        figures = {'runs': [], 'rounds': []}
        assert self.parameters.tables(figures)
        assert self.parameters.plots(figures) == []

    def test_a_database_is_whole_if_it_holds_what_it_held(self):
        lost = {'a': Content(2, 'x'), 'b': Content(3, 'y')}
        found = {'a': Content(2, 'x'), 'b': Content(1, 'z')}
        assert moment(0.5, lost, found) == {
            'seconds': 0.5,
            'rows': 3,
            'databases': 1,
        }


class TestUrls:
    @pytest.mark.parametrize(
        'url', ['', 'swift', 'ftp://a/v1/b', 'http://', 'http://a:port/']
    )
    def test_text_that_is_no_url_is_refused(self, url):
        with pytest.raises(BenchError, match='is no URL: write http'):
            check_url(url)

    @pytest.mark.parametrize('url', ['http://a', 'http://a/', 'http://a/v1'])
    def test_a_storage_url_names_an_account(self, url):
        with pytest.raises(BenchError, match='names no account'):
            Account(Auth(preauthurl=url, preauthtoken='t'))

    @pytest.mark.parametrize('url', ['http://[', 'http://a:99999/v1/b'])
    def test_no_url_breaks_it(self, url):
        with pytest.raises(BenchError, match='is no URL'):
            Account(Auth(preauthurl=url, preauthtoken='t'))

    def test_secrets_are_not_shown(self):
        auth = Auth('http://a', 'user', 'secret', preauthtoken='secret')
        assert 'secret' not in repr(auth)
