# SPDX-License-Identifier: Apache-2.0
"""Tables of runs, CSV and words, from made-up runs."""

import csv
import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from shardmw_bench import templates
from shardmw_bench.errors import BenchError
from shardmw_bench.experiments import (
    SCENARIOS,
    describe,
    in_order,
    title,
)
from shardmw_bench.kinds import PLAIN, native, sharded
from shardmw_bench.load.stage import rotated, run_text
from shardmw_bench.results.comparing import interval_text, rows_of
from shardmw_bench.results.figures import Interval
from shardmw_bench.results.folder import (
    Result,
    csv_text,
    entries_of,
    flat,
    load,
    load_all,
    save,
)
from shardmw_bench.results.runs import Run
from shardmw_bench.screen import Screen, load_text
from shardmw_bench.templates import conditions_text, objects_text, varying
from shardmw_bench.workloads import report as works

from test.tools.unit.test_bench_load import sample, samples_of
from test.tools.unit.test_bench_ratelimit import ORIGIN
from test.tools.unit.test_bench_reports import cells
from test.tools.unit.test_bench_runs import run_of


def warnings(runs: list[Run]) -> list[str]:
    return templates.lines('warnings', runs=runs)


def runs_at(rates: dict, **conditions) -> list[Run]:
    """Return runs by the operations in their last second, kind and round."""
    return [
        run_of(0.0, *[1.0] * count, kind=kind, turn=turn, **conditions)
        for kind, counts in rates.items()
        for turn, count in enumerate(counts)
    ]


class TestRows:
    def test_rows_are_conditions_then_kinds_in_their_order(self):
        runs = [
            run_of(1.0, kind=kind, size=size)
            for size in (10, 2)
            for kind in (sharded(8), native(4), PLAIN, sharded(2))
        ]
        found = [(r.conditions['size'], r.kind) for r in rows_of(runs)]
        kinds = [PLAIN, native(4), sharded(2), sharded(8)]
        assert found == [(size, kind) for size in (10, 2) for kind in kinds]

    def test_ratios_are_of_the_same_round(self):
        runs = runs_at({PLAIN: [10, 20, 40], sharded(2): [20, 20, 20]})
        _, row = rows_of(runs)
        ratio = row.ratio(lambda run: run.rate)
        assert (ratio.low, ratio.median, ratio.high) == (0.5, 1, 2)

    def test_a_round_without_its_pair_has_no_ratio(self):
        runs = runs_at({PLAIN: [10], sharded(2): [20, 30]})
        _, row = rows_of(runs)
        assert row.ratio(lambda run: run.rate).median == 2

    def test_ratios_are_of_the_same_conditions(self):
        runs = runs_at({PLAIN: [10]}, size=1) + runs_at(
            {sharded(2): [20]}, size=2
        )
        assert all(
            row.ratio(lambda run: run.rate) is None for row in rows_of(runs)
        )


def test_a_table_has_medians_and_ratios():
    runs = runs_at({PLAIN: [10, 20, 30], sharded(2): [20, 20, 30]}, size=4096)
    runs += runs_at({PLAIN: [10]}, size=1)
    made, *_ = works.tables({'runs': [run.as_json() for run in runs]})
    first, second, _ = cells(made)
    assert first == {
        'object size': '4K',
        'container': 'plain',
        'ops/s': '10.0',
        'rate vs. plain': '—',
        '95 % interval': '—',
        'MB/s': '0.0000900',
        'errors': '0',
    }
    assert second['rate vs. plain'] == '1.00'
    assert second['95 % interval'] == '1.00 to 2.00 (75%)'
    assert made.names == 2


@pytest.fixture
def busy_runs() -> list[Run]:
    """Six rounds, in which the servers were busy for some time."""
    return [
        replace(run, processor_seconds=seconds * run.summary.offered)
        for kind, seconds in {PLAIN: 0.004, sharded(2): 0.005}.items()
        for run in runs_at({kind: [10] * 6})
    ]


def test_processor_time_has_its_ratio_and_its_interval(busy_runs):
    figures = {'runs': [run.as_json() for run in busy_runs]}
    for found in (works.tables(figures), works.tables(figures, is_brief=True)):
        made = found[0]
        place = made.columns.index('CPU vs. plain')
        assert made.columns[place - 1 : place + 2] == [
            *('CPU ms', 'CPU vs. plain', '95 % interval')
        ]
        plain, many = made.rows
        assert plain[place - 1 : place + 2] == ['4.00', '—', '—']
        assert many[place - 1 : place + 2] == ['5.00', '1.25', '1.25 to 1.25']
        assert any(note.startswith('*CPU*') for note in made.notes)


def test_processor_time_of_one_kind_of_container_is_shown(busy_runs):
    made = works.tables({'runs': [run.as_json() for run in busy_runs]})[0]
    assert [row['CPU ms'] for row in cells(made)] == ['4.00', '5.00']


def test_a_line_of_the_terminal_has_processor_time(busy_runs):
    assert '4.00 CPU ms/request' in run_text(busy_runs[0])
    assert 'processor' not in run_text(run_of(1.0))


def test_processor_time_that_is_not_known_has_no_column():
    made = works.tables({'runs': [run_of(1.0).as_json()]})[0]
    assert 'processor' not in str([made.columns, made.notes])


def test_intervals_show_a_confidence_that_is_too_low():
    assert interval_text(None) == '—'
    assert interval_text(Interval(1, 1, 1, 0)) == '—'
    assert interval_text(Interval(1, 0.9, 1.25, 0.97)) == '0.90 to 1.25'
    assert interval_text(Interval(1, 0.9, 1.2, 0.5)) == '0.90 to 1.20 (50%)'


def test_loads_that_were_bound_by_clients_are_reported():
    free = run_of(1.0)
    bound = replace(free, summary=replace(free.summary, is_client_bound=True))
    assert warnings([free]) == []
    assert warnings([free, bound])[0].startswith('In 1 of 2 loads')


def test_refusals_are_reported_if_there_are_any():
    free = run_of(1.0)
    held = replace(free, summary=replace(free.summary, refused=3))
    for run, refused in ((free, None), (held, '3')):
        found = works.tables({'runs': [run.as_json()]})[0]
        row = dict(zip(found.columns, found.rows[0], strict=True))
        assert row.get('refused') == refused
        assert row['errors'] == '0'


def test_loads_without_an_admitted_request_are_reported():
    some = run_of(1.0)
    none = replace(some, summary=replace(some.summary, admitted=0))
    (told,) = warnings([some, none])
    assert told.startswith('In 1 of 2 loads nothing was admitted in time')


@pytest.mark.parametrize('also', [{'errors': {'503': 9}}, {'refused': 9}])
def test_loads_that_failed_altogether_need_not_be_longer(also):
    some = run_of(1.0)
    none = replace(some, summary=replace(some.summary, admitted=0, **also))
    (told,) = warnings([some, none])
    assert told.startswith('In 1 of 2 loads nothing was admitted: all req')


@given(st.lists(st.integers(), max_size=6, unique=True), st.integers(0, 20))
def test_each_item_is_first_in_one_turn(some, turn):
    assert sorted(rotated(some, turn)) == sorted(some)
    if some:
        firsts = {rotated(some, n)[0] for n in range(len(some))}
        assert firsts == set(some)


class TestCsv:
    def test_series_are_left_out_and_names_are_dotted(self):
        entry = {'a': 1, 'b': {'c': 'x', 'd': [1]}, 'e': (1,), 'f': {}}
        assert flat(entry) == {'a': 1, 'b.c': 'x'}

    def test_fields_that_an_entry_lacks_are_empty(self):
        text = csv_text([{'a': 1}, {'b': {'c': 'x, "y"'}}])
        rows = [*csv.DictReader(io.StringIO(text))]
        assert rows == [
            {'a': '1', 'b.c': ''},
            {'a': '', 'b.c': 'x, "y"'},
        ]

    def test_runs_have_a_row_each(self):
        runs = [run.as_json() for run in runs_at({PLAIN: [1, 2]}, size=1)]
        rows = [*csv.DictReader(io.StringIO(csv_text(runs)))]
        assert [row['summary.admitted'] for row in rows] == ['2', '3']
        assert rows[0]['kind.layout'] == 'plain'

    def test_figures_without_runs_have_no_rows(self):
        assert entries_of({'runs': [], 'rows': [{'a': 1}]}) == [{'a': 1}]
        assert entries_of({'phases': {}}) == []


class TestWords:
    def test_conditions_are_in_plain_words(self):
        given = {'size': 4096, 'rows': 1000000, 'limit': None, 'mix': 'a=1'}
        assert conditions_text(given) == (
            'size 4K, rows 1,000,000, limit none, mix a=1'
        )

    def test_objects_are_called_by_their_size(self):
        assert objects_text(1) == '1-byte objects'
        assert objects_text(65536) == '64K objects'

    def test_conditions_that_differ_are_found(self):
        runs = [run_of(size=1, page=2), run_of(size=1, page=3)]
        assert varying(runs) == ['page']


def test_work_on_one_kind_of_container_has_no_ratios():
    runs = [run.as_json() for run in runs_at({sharded(2): [5, 6]})]
    columns = [each.columns for each in works.tables({'runs': runs})]
    assert 'plain' not in str(columns)


class TestLive:
    def test_rates_are_of_the_last_part(self):
        part = samples_of(*[sample(101.0)] * 5)
        totals = {'ops': 35, 'refused': 0, 'errors': 1}
        text = load_text(totals, part, 6, 0.5)
        assert text.startswith('35 ops, 12.0 ops/s, 0.00 MB/s, p50 500 p95 ')
        assert text.endswith('0 refused, 1 errors')

    @pytest.mark.parametrize(('seconds', 'count'), [(9.0, None), (None, 40)])
    def test_a_load_is_shown_on_a_narrow_terminal(self, seconds, count):
        screen = Screen()
        screen.console = Console(
            file=io.StringIO(), width=60, force_terminal=True
        )
        label = '12/24 write, N = 32'
        with (
            screen.status('filling'),
            screen.live(label, seconds, count) as show,
        ):
            show(samples_of(*[sample(101.0, status=503)] * 10))
        shown = screen.console.file.getvalue()
        assert label in shown and '10 errors' in shown
        assert ('25%' in shown) == (count == 40)


def result_of(command: str, experiment: str, runs, **also) -> Result:
    figures = {'runs': [run.as_json() for run in runs]}
    return Result(command, experiment, ORIGIN, {}, figures, **also)


SCENARIO_CONDITIONS = {
    'container-sharding': {'limit': None},
    'object-size': {'clients': 16, 'size': 4096},
    'concurrency': {'clients': 16, 'size': 4 << 20},
    'log-serving': {'clients': 16, 'size': 1228800, 'objects': 64},
    'small-objects': {'clients': 1, 'size': 65536},
}


class TestDescriptions:
    def test_a_comparison_has_ratios_for_each_page(self):
        kinds = {PLAIN: [100], sharded(4): [50]}
        runs = runs_at(kinds, page=10) + runs_at(kinds, page=1000)
        rates, *_ = works.tables({'runs': [run.as_json() for run in runs]})
        found = [
            (row['page size'], row['container'], row['rate vs. plain'])
            for row in cells(rates)
        ]
        assert found == [
            ('10', 'plain', '—'),
            ('10', 'N = 4', '0.50'),
            ('1,000', 'plain', '—'),
            ('1,000', 'N = 4', '0.50'),
        ]

    @pytest.mark.parametrize('name', SCENARIO_CONDITIONS)
    def test_scenarios_have_tables_and_published_figures(self, name):
        runs = runs_at(
            {PLAIN: [5], sharded(32): [4]}, **SCENARIO_CONDITIONS[name]
        )
        found = describe(result_of('scenario', name, runs))
        assert title(found.result) == name
        assert found.published == SCENARIOS[name].published
        assert all(table.rows for table in found.tables)

    @pytest.mark.parametrize('name', SCENARIO_CONDITIONS)
    def test_scenarios_that_have_not_begun_have_no_tables(self, name):
        found = describe(result_of('scenario', name, []))
        assert (found.tables, found.plots) == ([], [])

    @pytest.mark.parametrize('command', ['workload', 'compare'])
    def test_work_that_has_not_begun_has_no_tables(self, command):
        found = describe(result_of(command, 'write', []))
        assert (found.tables, found.plots) == ([], [])

    def test_results_have_their_name_in_the_title(self):
        runs = runs_at({PLAIN: [5]})
        found = describe(result_of('compare', 'list', runs, name='small'))
        assert title(found.result) == 'compare list (small)'

    @pytest.mark.parametrize(('value', 'told'), [(False, None), (True, 'yes')])
    def test_parameters_that_were_not_given_are_left_out(self, value, told):
        result = result_of('workload', 'list', [])
        result = replace(result, parameters={'unordered': value})
        assert dict(describe(result).parameters).get('unordered') == told

    def test_unknown_results_are_reported(self):
        for unknown in (('fly', 'high'), ('compare', 'fly')):
            with pytest.raises(BenchError, match='remove it'):
                describe(result_of(*unknown, []))

    def test_results_come_in_the_order_of_the_commands(self):
        words = [
            ('scenario', 'container-sharding', ''),
            ('scenario', 'small-objects', ''),
            ('compare', 'list', ''),
            ('compare', 'list', 'small'),
            ('workload', 'write', ''),
            ('ratelimit', 'rates', ''),
        ]
        results = [result_of(a, b, [], name=name) for a, b, name in words]
        assert in_order(reversed(results)) == results


def test_results_of_several_names_live_in_one_folder(tmp_path):
    results = [
        result_of('compare', 'list', [], complete=False),
        result_of('compare', 'list', [], name='small'),
    ]
    files = [save(tmp_path, result)[0] for result in results]
    assert [file.name for file in files] == [
        'compare-list.json',
        'compare-list-small.json',
    ]
    assert sorted(load_all(tmp_path), key=lambda each: each.name) == results


def test_an_earlier_result_is_replaced_only_if_that_was_asked_for(tmp_path):
    first = result_of('compare', 'list', [])
    later = replace(first, figures={'runs': [{'turn': 0}]})
    [path], [other, _] = save(tmp_path, first), save(tmp_path, later)
    assert re.fullmatch(r'compare-list-\d{8}-\d{6}', other.stem)
    assert load(tmp_path, 'compare', ['list'])[0].figures == later.figures
    assert save(tmp_path, later, is_replacing=True)[0] == path
    assert {str(each.figures) for each in load_all(tmp_path)} == {
        str(later.figures)
    }


@pytest.mark.parametrize('text', ['{"name": "app"}', '[1]', '"a"'])
def test_other_json_is_no_result(tmp_path, text):
    (tmp_path / 'package.json').write_text(text)
    assert load_all(tmp_path) == []


@pytest.mark.parametrize('text', ['{', '{"format": 1, "command": "compare"'])
def test_a_damaged_result_is_reported(tmp_path, text):
    (tmp_path / 'compare-write.json').write_text(text)
    with pytest.raises(BenchError, match='remove it if it is one'):
        load_all(tmp_path)
