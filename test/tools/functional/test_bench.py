# SPDX-License-Identifier: Apache-2.0
"""The benchmark with loads of a second; its figures are not judged."""

import json
import signal

import pytest
from shardmw_bench.report.pages import BEGIN, END

from test.tools.functional.benching import run_bench, run_here, start_bench

#: The quickest experiments, which need only a cluster.
EXPERIMENTS = ('rates', 'outage')

TINY = (
    *('--experiments', ','.join(EXPERIMENTS), '--proxies', '1'),
    *('-t', '4', '--processes', '2', '--seconds', '0.6'),
    *('--rates', '50', '--shards', '2', '--stock-rates', '50'),
    *('--middle-shards', '2'),
)

PAGE = f'# Rates\n\nBefore.\n\n{BEGIN}\nold\n{END}\n\nAfter.\n'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('bench')


@pytest.fixture(scope='module')
def page(folder):
    path = folder / 'page.md'
    path.write_text(PAGE)
    return path


@pytest.fixture(scope='module')
def finished(folder, page):
    """The run of two experiments."""
    ran = run_bench(
        *('ratelimit', *TINY),
        *('--output', str(folder / 'results'), '--page', str(page)),
    )
    assert ran.returncode == 0, ran.stderr
    return ran


@pytest.fixture(scope='module')
def figures(finished, folder):
    """The figures of each experiment."""
    texts = {
        name: (folder / 'results' / f'ratelimit-{name}.json').read_text()
        for name in EXPERIMENTS
    }
    return {name: json.loads(text)['figures'] for name, text in texts.items()}


def every_load(figures) -> list[dict]:
    """Return the figures of every load."""
    return [
        row
        for experiment in figures.values()
        for row in experiment.get('rows') or experiment['runs']
    ]


def test_no_load_gets_more_answers_than_it_has_requests(figures):
    for row in every_load(figures):
        failed = sum(row['errors'].values())
        answered = row['admitted'] + row['refused'] + failed
        assert 0 < row['offered'] >= answered


def test_series_add_up_to_what_was_admitted(figures):
    for row in every_load(figures):
        assert sum(row['admitted_each_second']) == row['admitted']


def test_a_longer_window_has_no_fewer_writes(figures):
    for row in figures['rates']['rows']:
        short, long = row['most_by_window'].values()
        assert short <= long <= row['offered']


def test_an_outage_has_its_phases(figures):
    for run in figures['outage']['runs']:
        names = [phase['phase'] for phase in run['phases']]
        assert names == ['before', 'during', 'after']
        assert run['phases'][0]['log_lines']['memcached'] == 0
        assert run['phases'][1]['log_lines']['memcached'] > 0


def test_the_page_has_the_tables_in_the_place_of_old_ones(
    finished, folder, page
):
    tables = (folder / 'results' / 'ratelimit.md').read_text()
    assert page.read_text() == PAGE.replace('\nold\n', f'\n\n{tables}\n')


def test_the_tables_are_on_the_terminal_too(finished, folder):
    tables = (folder / 'results' / 'ratelimit.md').read_text().splitlines()
    titles = [line[4:] for line in tables if line.startswith('### ')]
    assert len(titles) >= len(EXPERIMENTS)
    for title in titles:
        assert title in finished.stdout


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('--experiments', 'speed'), "'speed' is not one of 'rates'"),
        (('--seconds', 'long'), "'long' is no duration"),
        (('--rates', '5,-1'), '-1.0 is not in the range x>0'),
        (('--shards', '0'), '0 is not in the range x>=1'),
        (('--set', 'max_shards'), 'has no value: write section.option=value'),
        (('-t', '0'), '0 is not in the range'),
    ],
)
def test_bad_input_is_a_usage_error(arguments, message):
    ran = run_here('ratelimit', *arguments)
    assert ran.exit_code == 2
    assert message in ran.output


def assert_is_one_line(ran, message: str) -> None:
    assert ran.exit_code == 1
    assert ran.output.count('\n') == 1
    assert message in ran.output


def test_a_page_with_one_marker_is_refused_before_measuring(tmp_path):
    page = tmp_path / 'page.md'
    page.write_text(BEGIN)
    output = str(tmp_path / 'results')
    ran = run_here('ratelimit', '--page', str(page), '--output', output)
    assert_is_one_line(ran, 'the page has 1 times')


def test_an_old_result_is_refused_before_measuring(tmp_path):
    (tmp_path / 'ratelimit-seed.json').write_text('{"format": 0}')
    ran = run_here('ratelimit', '--output', str(tmp_path))
    assert_is_one_line(ran, 'is no result of this version')


def test_an_interrupted_run_keeps_what_it_has(tmp_path):
    ran = start_bench(
        *('ratelimit', *TINY, '--output', str(tmp_path)), PYTHONUNBUFFERED='1'
    )
    # the first load is kept when the second one is over
    lines = (line for line in ran.stdout if '/s admitted of' in line)
    assert next(lines)
    assert next(lines)
    ran.send_signal(signal.SIGINT)
    ran.communicate(timeout=60)
    assert ran.returncode == 128 + signal.SIGINT
    kept = json.loads((tmp_path / 'ratelimit-rates.json').read_text())
    assert not kept['complete']
    assert kept['figures']['rows'][0]['unlimited_rate'] is not None
