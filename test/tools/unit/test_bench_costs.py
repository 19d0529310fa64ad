# SPDX-License-Identifier: Apache-2.0
"""What scenarios show about the filter's own cost, from made-up figures."""

import os
import random
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import PLAIN, sharded
from shardmw_bench.names import FlatNames
from shardmw_bench.planning import Costs, page_work
from shardmw_bench.plots.plot import REFERENCE
from shardmw_bench.results.figures import (
    BLOCKS,
    least_squares,
    slope_interval,
)
from shardmw_bench.scenarios import filter_cost
from shardmw_bench.scenarios.filter_cost import FilterCost
from shardmw_bench.scenarios.listings import (
    ListingCost,
    ListingMemory,
    fitted_costs,
)
from shardmw_bench.scenarios.rounds import compared
from shardmw_bench.targets.shares import asked_of_all, names_by_shard
from shardmw_bench.targets.usage import (
    processor_seconds,
    resident_bytes,
    seconds_between,
)

from shardmw.core.listing_page import first_share
from shardmw.core.placement import shard_of
from test.tools.unit.test_bench_measured import cells_of

MANY = sharded(4)

factors = st.floats(1, 100)
unknowns = st.floats(-100, 100)

#: Names, each in one of some shards.
placed_names = st.lists(
    st.tuples(st.text('abc', min_size=1, max_size=6), st.integers(0, 4)),
    unique_by=lambda pair: pair[0],
    min_size=1,
    max_size=60,
)


class TestLines:
    @given(
        st.lists(st.tuples(factors, factors), min_size=2, max_size=8),
        unknowns,
        unknowns,
    )
    def test_coefficients_that_fit_exactly_are_found(
        self, equations, first, second
    ):
        ratios = [a / b for a, b in equations]
        assume(max(ratios) > 1.1 * min(ratios))
        values = [a * first + b * second for a, b in equations]
        found = least_squares(equations, values)
        assert found == pytest.approx([first, second], rel=1e-4, abs=1e-4)

    def test_proportional_equations_have_no_solution(self):
        assert least_squares([(1, 2), (2, 4), (3, 6)], [1, 2, 3]) is None

    @pytest.mark.parametrize('equations', [[], [(1, 2)], [(0, 1), (0, 2)]])
    def test_too_few_equations_have_no_solution(self, equations):
        assert least_squares(equations, [1.0] * len(equations)) is None

    @given(unknowns, unknowns)
    def test_a_straight_line_has_its_slope_and_no_doubt(self, steep, begin):
        points = [(x, begin + steep * x) for x in range(2 * BLOCKS)]
        found = slope_interval(points)
        assert found.value == pytest.approx(steep, abs=1e-6)
        assert found.low == pytest.approx(steep, abs=1e-5)
        assert found.high == pytest.approx(steep, abs=1e-5)

    def test_noise_without_growth_has_no_growth_in_its_interval(self):
        points = [(x, x * 7919 % 101) for x in range(100)]
        found = slope_interval(points)
        assert found.low < 0 < found.high

    def test_an_interval_has_the_slope_nineteen_times_of_twenty(self):
        chance = random.Random(1)
        held = 0
        for _ in range(400):
            points = [(x, x + chance.gauss(0, 20)) for x in range(40)]
            found = slope_interval(points)
            held += found.low <= 1 <= found.high
        assert 0.92 < held / 400 < 0.98

    def test_few_points_have_no_interval(self):
        assert slope_interval([(0, 1), (1, 2)]) == (1, None, None)

    def test_one_place_has_no_slope(self):
        assert slope_interval([]) is None
        assert slope_interval([(3, 1), (3, 2)]) is None


class TestServers:
    def test_processor_time_is_that_of_a_process(self):
        before = time.process_time()
        measured = processor_seconds([os.getpid()])
        assert before <= measured <= time.process_time()

    def test_a_process_that_has_ended_is_reported(self):
        with pytest.raises(BenchError, match='process has ended'):
            processor_seconds([2**22 + 1])

    def test_the_time_of_all_servers_is_summed_up(self):
        before = {1: 10.0, 2: 0.5}
        # the third process is a worker that started meanwhile
        after = {1: 11.0, 2: 0.5, 3: 0.25}
        assert seconds_between(before, after) == 1.25
        assert seconds_between({}, {}) == 0

    def test_the_time_of_a_server_that_ended_is_unknown(self):
        assert seconds_between({1: 10.0, 2: 0.5}, {1: 11.0}) is None

    def test_memory_is_that_of_all_processes(self):
        assert resident_bytes([os.getpid()] * 2) > 2 << 20
        with pytest.raises(BenchError, match='process has ended'):
            resident_bytes([2**22 + 1])


class TestShares:
    def test_names_lie_where_the_filter_puts_them(self):
        placed = names_by_shard(FlatNames(100), 3)
        assert sum(map(len, placed)) == 100
        assert all(
            shard_of(name, 3) == shard
            for shard, names in enumerate(placed)
            for name in names
        )

    @given(placed_names, st.integers(1, 12))
    def test_all_rows_are_listed_with_the_requests_that_are_counted(
        self, placed, limit
    ):
        shards = [
            sorted(name for name, shard in placed if shard == index)
            for index in range(5)
        ]
        asked = asked_of_all(shards, limit)
        assert asked['rows'] == len(placed)
        assert asked['pages'] == -(-len(placed) // limit)
        assert asked['rows'] <= asked['rows_given'] <= asked['rows_asked']
        assert asked['requests'] == 6 * asked['pages'] + asked['refills']
        assert asked['most_requests'] <= asked['requests']

    def test_a_page_that_every_shard_shares_is_asked_for_once(self):
        placed = names_by_shard(FlatNames(1000), 4)
        asked = asked_of_all(placed, 1000)
        assert asked['pages'] == 1
        assert asked['rows_asked'] == 4 * first_share(1000, 4)


class TestListingCost:
    parameters = ListingCost(
        rows=100_000, page=(1000, 100), shards=(4, 32), rounds=2, pages=3
    )
    costs = Costs(
        proxy_page_us=4_000,
        proxy_row_us=14,
        proxy_merged_page_us=3_400,
        proxy_shard_us=800,
        proxy_merged_row_us=4,
    )

    @pytest.fixture
    def figures(self):
        """Return figures as from servers with these costs."""
        rows = []
        for kind in self.parameters.kinds:
            for page in self.parameters.page:
                work = page_work(page, kind.shards, self.costs)
                for turn, busy in enumerate((1, 1.5)):
                    rows.append(
                        {
                            'kind': kind.as_json(),
                            'page': page,
                            'turn': turn,
                            'proxy_us': busy * work.proxy_us,
                            'container_us': busy * work.container_us,
                        }
                    )
        plan = {
            'kind': MANY.as_json(),
            'page': 1000,
            **asked_of_all(names_by_shard(FlatNames(5000), 4), 1000),
        }
        return {'plans': [plan], 'rows': rows}

    def test_the_costs_of_a_model_are_found_in_its_figures(self, figures):
        costs = fitted_costs(compared(figures['rows'], 'page'))
        assert costs == {
            name: pytest.approx(getattr(self.costs, name)) for name in costs
        }
        assert len(costs) == 7

    def test_one_size_of_pages_gives_no_cost_per_row(self):
        row = {'kind': PLAIN.as_json(), 'page': 100, 'proxy_us': 5000}
        row['container_us'] = 4000
        assert fitted_costs(compared([row], 'page')) == {}

    def test_requests_and_rows_are_by_page_and_by_row(self, figures):
        (asked,) = cells_of(self.parameters.tables(figures)[0])
        assert asked['pages'] == '5'
        assert 1 < float(asked['rows requested / returned']) < 1.3

    def test_processor_time_stands_beside_the_plain_containers(self, figures):
        proxy = self.parameters.tables(figures)[1]
        plain, few, *_ = cells_of(proxy)
        # 4,000 µs and 14 µs a row; in the other round half as much again
        assert plain['CPU ms'] == '22.5'
        assert plain['fitted ms'] == '18.0'
        assert plain['vs. plain'] == '—'
        assert few['vs. plain'] == '0.66'

    def test_the_goal_has_its_place_in_the_plot(self, figures):
        asked, *others = self.parameters.plots(figures)
        assert asked.series[-1].style == REFERENCE
        assert len(others) == 2

    def test_can_be_shown_without_figures(self):
        figures = {'plans': [], 'rows': []}
        assert len(self.parameters.tables(figures)) == 1
        assert self.parameters.plots(figures) == []


def timed(method, kind, turn, us, filters=1):
    return {
        'limits': filter_cost.OFF,
        'method': method,
        'kind': kind.as_json(),
        'filters': filters,
        'turn': turn,
        'us': us,
        'requests': 10,
        'operations': {'get': 0, 'set': 0, 'incr': 5},
    }


class TestFilterCost:
    parameters = FilterCost(shards=(4, 512), rounds=2)

    @pytest.fixture
    def figures(self):
        took = {PLAIN: 8, MANY: 21, sharded(512): 31}
        return {
            'rows': [
                *(timed('PUT', PLAIN, turn, 1 + turn, 0) for turn in range(2)),
                *(
                    timed('PUT', kind, turn, us + turn)
                    for kind, us in took.items()
                    for turn in range(2)
                ),
            ],
        }

    def test_the_time_of_the_app_in_the_same_round_is_subtracted(
        self, figures
    ):
        rows = figures['rows']
        own = [
            (row['turn'], row['own_us'])
            for row in filter_cost.own_times(rows)
            if row['kind'] == MANY.as_json()
        ]
        assert own == [(0, 20), (1, 20)]

    def test_the_goal_stands_beside_the_time(self, figures):
        table = self.parameters.tables(figures)[0]
        (row,) = cells_of(table)
        assert row['plain'].startswith('7.00')
        assert row['goal'] == '15'

    def test_operations_are_by_request(self, figures):
        asked = self.parameters.tables(figures)[1]
        (row,) = cells_of(asked)
        assert row['N = 4'] == '0.500'

    def test_the_goals_have_their_place_in_the_plot(self, figures):
        (plot,) = self.parameters.plots(figures)
        assert plot.name == 'limits-off'
        assert plot.y.label == 'CPU time per request (µs)'
        assert plot.series[-1].style == REFERENCE

    def test_can_be_shown_without_figures(self):
        figures = {'rows': []}
        assert len(self.parameters.tables(figures)) == 2
        assert self.parameters.plots(figures) == []


class TestListingMemory:
    parameters = ListingMemory(listings=1000, every=10)

    def figures(self, growth_kb):
        """Return memory that settles in the first tenth, and then grows."""
        return {
            'rows': [
                {
                    'kind': sharded(32).as_json(),
                    'listings': done,
                    'bytes': 60_000_000
                    + 100_000 * min(done, 100)
                    + growth_kb * done,
                }
                for done in range(0, 1001, 10)
            ]
        }

    def test_growth_counts_after_the_first_tenth(self):
        (table,) = self.parameters.tables(self.figures(50))
        (row,) = cells_of(table)
        assert row['initial MB'] == '60.0'
        assert row['after 10 % MB'] == '70.0'
        assert row['growth KB per 1,000 listings'] == '50.0'
        assert row['95 % interval'] == '50.0 to 50.0'

    def test_the_plot_has_all(self):
        (plot,) = self.parameters.plots(self.figures(0))
        (series,) = plot.series
        assert series.x[0] == 0
        assert series.y[-1] == 70

    def test_can_be_shown_with_part_of_the_figures(self):
        figures = {'rows': self.figures(0)['rows'][:1]}
        (table,) = self.parameters.tables(figures)
        assert len(table.rows) == 1

    def test_can_be_shown_without_figures(self):
        (table,) = self.parameters.tables({'rows': []})
        assert not table.rows
        assert self.parameters.plots({'rows': []}) == []
