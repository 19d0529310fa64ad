# SPDX-License-Identifier: Apache-2.0
"""Tables of the experiments, from made-up figures."""

from dataclasses import replace

import pytest
from shardmw_bench.command import markdown
from shardmw_bench.experiments import sections
from shardmw_bench.kinds import PLAIN, sharded
from shardmw_bench.ratelimit import experiments
from shardmw_bench.ratelimit.limits import FRESH
from shardmw_bench.results.folder import Result
from shardmw_bench.results.runs import Run
from shardmw_bench.results.summary import Summary, summarize

from test.tools.unit.test_bench_load import outcome_of, sample
from test.tools.unit.test_bench_ratelimit import ORIGIN
from test.tools.unit.test_bench_runs import run_of

PARAMETERS = {
    'rates': (5.0,),
    'shards': (8,),
    'rounds': 2,
    'pairs': 6,
    'seed_shards': 4,
}
RATES = experiments.Rates(**PARAMETERS)
SEED = experiments.Seed(**PARAMETERS)
OUTAGE = experiments.Outage(**PARAMETERS)
OPERATIONS = experiments.Operations(**PARAMETERS)
LATENCY = experiments.Latency(**PARAMETERS)


def load_summary(admitted: int) -> Summary:
    """Return a load of 2 s whose requests are admitted after half a second."""
    return summarize(outcome_of(*[sample(101)] * admitted))


def load_row(admitted: int, **also) -> dict:
    return {**load_summary(admitted).as_json(), **also}


def cells(table) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


class TestRates:
    COLUMNS = ('max writes', 'rate × T', 'rate × T + burst')

    @pytest.fixture
    def figures(self):
        def row(admitted, limiter, rate, most):
            return load_row(
                admitted,
                filter=limiter,
                rate=rate,
                shards=8,
                state=FRESH,
                unlimited_rate=100,
                rate_since_first=admitted / 19,
                most_by_window=most,
            )

        none = {'1': 0, '10': 0}
        return {
            'rows': [
                row(200, None, None, none),
                row(76, 'shardmw', 5.0, {'1': 6, '10': 40}),
            ]
        }

    def test_admitted_is_compared_with_all_shards_limits(self, figures):
        _, limited = cells(RATES.tables(figures)[0])
        assert limited['admitted /s'] == '38.0'
        assert limited['steady /s'] == '4.00'
        assert limited['share of limit × N'] == '0.10'
        assert limited['limited by'] == 'limit'

    def test_windows_are_those_of_limits(self, figures):
        short, long = cells(RATES.tables(figures)[1])
        assert [short[name] for name in self.COLUMNS] == ['6', '5', '30']
        assert [long[name] for name in self.COLUMNS] == ['40', '50', '75']

    def test_a_limit_is_held_if_no_window_has_more_than_the_burst(
        self, figures
    ):
        figures['rows'][1]['most_by_window'] = {'1': 31, '10': 77}
        table = RATES.tables(figures)[1]
        assert [row['within bound'] for row in cells(table)] == ['yes', 'no']


def test_seed_has_ratios_of_each_limit():
    many = sharded(4)
    done = {
        (None, PLAIN): (8, 4),
        (None, many): (8, 4),
        (100.0, PLAIN): (2, 2),
        (100.0, many): (6, 8),
    }
    runs = [
        run_of(0.0, *[1.0] * count, kind=kind, turn=turn, limit=limit)
        for (limit, kind), counts in done.items()
        for turn, count in enumerate(counts)
    ]
    figures = {'runs': [run.as_json() for run in runs]}
    found = cells(SEED.tables(figures)[0])
    assert [(row['limit /s'], row['rate vs. plain']) for row in found] == [
        *(('none', '—'), ('none', '1.00'), ('100', '—'), ('100', '3.50'))
    ]


def outage_figures() -> dict:
    def run(rate, admitted):
        phases = [
            {
                'phase': phase,
                'seconds': 10.0,
                'offered_rate': 200.0,
                'admitted_rate': admitted,
                'admitted_each_second': [1, 2],
                'errors': {},
                'log_lines': experiments.LogLines(1, 2, 3)._asdict(),
            }
            for phase in experiments.PHASES
        ]
        return {'rate': rate, 'phases': phases}

    return {'runs': [run(None, 170.0), run(20.0, 152.0)]}


def test_an_outage_has_a_row_for_each_phase():
    table, series = OUTAGE.tables(outage_figures())
    first, *others = cells(table)
    assert len(others) == 5
    assert (first['limit'], first['share of limit × N']) == ('20 /s', '0.95')
    assert first['limited by'] == 'machine'
    assert cells(series)[0]['writes in each second'] == '1 2'


def test_an_outage_that_was_broken_off_has_its_first_run():
    figures = {'runs': outage_figures()['runs'][:1]}
    table, _ = OUTAGE.tables(figures)
    assert {row['limit'] for row in cells(table)} == {'none'}


def test_operations_are_by_write():
    row = load_row(
        10,
        filter='shardmw',
        shards=8,
        manner=experiments.TRICKLE,
        operations={
            'get': 40,
            'set': 5,
            'incr': 20,
            'decr': 10,
            'delete': 3,
            'touch': 2,
        },
        answered_in_all=20,
        admitted_in_all=10,
    )
    (found,) = cells(OPERATIONS.tables({'rows': [row]})[0])
    kinds = (
        'get',
        'set',
        'incr',
        'decr',
        'other',
        'total',
        'total per admitted',
    )
    assert [found[kind] for kind in kinds] == [
        *('2.00', '0.25', '1.00', '0.50', '0.25', '4.00', '8.00')
    ]
    assert (found['refused'], found['admitted']) == ('10', '10')


def latency_figures(turns: int) -> dict:
    """Return runs whose p50 (ms), by filter, grows by 1 each turn."""
    took_ms = {'none': 10.0, 'shardmw': 11.0, 'ratelimit': 12.0}
    runs = []
    for turn in range(turns):
        for name, ms in took_ms.items():
            summary = load_summary(3)
            took = summary.latency._replace(p50_ms=ms + turn)
            summary = replace(summary, latency=took)
            conditions = {'clients': 1, 'filter': name}
            runs.append(Run('write', PLAIN, turn, conditions, summary))
    return {'runs': [run.as_json() for run in runs]}


def test_each_filter_is_compared_round_by_round():
    figures = latency_figures(6)
    none, own, stock = cells(LATENCY.tables(figures)[0])
    assert (none['p50 ms'], none['p50 ratio']) == ('12.5', '—')
    assert (own['p50 ms'], own['p50 ratio']) == ('13.5', '1.08')
    assert stock['p50 ratio'] == '1.16'


def test_a_round_that_lacks_its_base_has_no_ratio():
    figures = latency_figures(1)
    del figures['runs'][0]
    own, _ = cells(LATENCY.tables(figures)[0])
    assert (own['p50 ms'], own['p50 ratio']) == ('11.0', '—')


def test_an_interrupted_result_says_so():
    result = Result(
        *('ratelimit', 'operations', ORIGIN),
        *(OPERATIONS.as_json(), {'rows': []}),
        complete=False,
    )
    text = markdown(sections([result]))
    assert '**Ratelimit operations: This was interrupted' in text


def test_results_of_one_origin_name_it_once():
    result = Result(
        *('ratelimit', 'operations', ORIGIN),
        OPERATIONS.as_json(),
        {'rows': []},
    )
    page = markdown(sections([result, result]))
    assert page.count(ORIGIN.sentence()) == 1
    assert page.count('### memcached operations per write') == 2
