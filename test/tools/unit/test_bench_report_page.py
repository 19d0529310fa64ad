# SPDX-License-Identifier: Apache-2.0
"""The report as a page: its contents, and that it needs no other file."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from shardmw_bench.cli import main
from shardmw_bench.errors import BenchError
from shardmw_bench.experiments import Section, sections
from shardmw_bench.kinds import PLAIN, sharded
from shardmw_bench.plots.plot import BARS, REFERENCE, Axis, Plot, Series
from shardmw_bench.report.html import alternative, inline, page
from shardmw_bench.report.pages import (
    BEGIN,
    END,
    markers,
    missing,
    origins,
    with_sections,
)
from shardmw_bench.report.verdict import judged, verdict
from shardmw_bench.results import folder
from shardmw_bench.results.figures import Interval
from shardmw_bench.results.folder import Result
from shardmw_bench.tables import Table
from shardmw_bench.workloads.works import WORKS

from test.tools.unit.test_bench_plots import run
from test.tools.unit.test_bench_ratelimit import ORIGIN

PLOT = Plot(
    'compare-write-rate',
    'Writes: throughput & "more"',
    Axis('container', names=['plain', 'N = 8']),
    Axis('writes/s'),
    [Series('writes', [0, 1], [300, 290], BARS)],
    note='Medians of *3* rounds.',
)
TABLE = Table(
    'Rates <of> writes',
    ('container', 'rate /s'),
    [('plain', '1,000'), ('N = 8', '999')],
    ('Of `one` run.',),
)
LATER = replace(ORIGIN, date='2999-01-01', load_average=0.3)


class Reader(HTMLParser):
    """A reader of HTML that refuses elements without an end tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        self.ids += [values['id']] if 'id' in values else []
        names = ('src', 'href', 'xlink:href')
        self.links += [values[name] for name in names if name in values]
        if tag != 'meta':
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def section(title='compare write', complete=True, **also) -> Section:
    command, _, experiment = title.partition(' ')
    result = Result(command, experiment, ORIGIN, {}, {}, complete)
    tables = also.get('tables', [TABLE])
    return Section(
        result,
        summary='Upload objects.',
        published=also.get('published', ''),
        parameters=[('clients', '16')],
        tables=tables,
        plots=also.get('plots', [PLOT]),
        brief=tables[:1],
    )


def kept(experiment='write', rounds=1, **also) -> Result:
    """Return a result as the command keeps it; N = 8 is half as fast."""
    runs = [
        run(kind=kind, turn=turn, admitted=admitted).as_json()
        for turn in range(rounds)
        for kind, admitted in ((PLAIN, 100), (sharded(8), 50))
    ]
    parameters = WORKS[experiment]().as_json()
    return Result(
        'compare', experiment, ORIGIN, parameters, {'runs': runs}, **also
    )


class TestHtml:
    @pytest.fixture
    def text(self):
        also = section('compare read', plots=[], published='87,000 writes')
        return page([section(), also])

    def test_it_is_well_formed_and_needs_nothing_else(self, text):
        read = Reader(text)
        assert len(set(read.ids)) == len(read.ids)
        assert set(read.links) <= {f'#{each}' for each in read.ids}
        assert 'script' not in read.tags
        assert not re.search(r'url\((?!#)|@import', text)

    def test_every_table_and_plot_is_in_it(self, text):
        tags = Reader(text).tags
        assert [tags.count(t) for t in ('table', 'figure', 'svg')] == [2, 1, 1]
        assert '<h3>Rates &lt;of&gt; writes</h3>' in text
        assert '<td>plain</td><td class="number">1,000</td>' in text
        assert 'Of <code>one</code> run.' in text
        assert '87,000 writes' in text
        assert f'<dd>{ORIGIN.date}' in text
        assert 'aria-label="Writes: throughput &amp; &#34;more&#34;.' in text

    def test_an_interrupted_one_says_so_twice(self, text):
        assert 'interrupted' not in text
        text = page([section(complete=False)])
        assert '<span class="mark">interrupted</span>' in text
        assert 'This was interrupted' in text


class TestVerdict:
    def test_it_is_on_top_of_the_page(self):
        text = page(sections([kept(rounds=6)]))
        assert text.index('id="verdict"') < text.index('id="compare-write"')
        assert len(set(Reader(text).ids)) == len(Reader(text).ids)

    def test_it_has_ratios_in_words_a_table_and_a_plot(self):
        found = verdict(sections([kept(rounds=6)]))
        assert found.sentences[0] == (
            'Rate, compared with the plain container: lower in 1 of 1 (0.50 '
            'times).'
        )
        (row,) = found.table.rows
        assert row[:4] == ['write', 'N = 8', '0.50', '0.50 to 0.50']
        assert found.plot.x.names == ['write: N = 8']
        dots, one = found.plot.series[:2]
        assert (dots.panel, dots.low, dots.y) == ('rate', [0.5], [0.5])
        assert (one.style, set(one.y)) == (REFERENCE, {1})

    @pytest.mark.parametrize(
        ('low', 'high', 'confidence', 'words'),
        [(1.01, 2, 0.97, 'higher'), (0.5, 0.99, 0.97, 'lower')]
        + [
            (0.9, 1.1, 0.97, 'no difference shown'),
            (1, 1, 0, 'too few rounds to judge'),
        ],
    )
    def test_an_interval_shows_if_there_is_a_difference(
        self, low, high, confidence, words
    ):
        assert judged(Interval(1, low, high, confidence)) == words

    def test_without_a_comparison_there_is_no_verdict(self):
        result = kept()
        alone = replace(result, figures={'runs': result.figures['runs'][:1]})
        assert verdict(sections([alone])) is None
        assert 'Verdict' not in page(sections([alone]))


class TestOrigins:
    def test_with_the_same_versions_are_one(self):
        own = section()
        other = replace(own, result=replace(own.result, provenance=LATER))
        (origin,) = origins([own, other])
        assert ('measured', f'{ORIGIN.date} to 2999-01-01') in origin.facts

    def test_with_another_cluster_are_separate(self):
        own, other = section(), section('compare read', plots=[])
        elsewhere = replace(
            ORIGIN, cluster='https://swift.example.org', swift=''
        )
        other = replace(
            other, result=replace(other.result, provenance=elsewhere)
        )
        found = origins([own, other])
        assert [len(each.sections) for each in found] == [1, 1]
        facts = dict(found[1].facts)
        assert facts['cluster'] == 'https://swift.example.org'
        assert not {'Swift', 'memcached', 'machine'} & set(facts)
        assert '<p><a href="#compare-read">' in page([own, other])


class TestMarkdown:
    def test_it_has_headings_and_the_main_tables(self):
        text = with_sections('# Page\n', [section()])
        assert '## Compare write\n' in text
        assert '| plain | 1,000 |' in text
        assert 'Rates <of> writes.' in text
        assert PLOT.name not in text
        assert with_sections(text, [section()]) == text

    def test_a_section_goes_to_its_own_place(self):
        begin, end = markers('compare-write')
        text = f'before\n{begin}{end}\nbetween\n{BEGIN}{END}\nafter\n'
        text = with_sections(text, [section(), section('compare read')])
        own, rest = text.split('between')
        assert '| plain | 1,000 |' in own and '##' not in own
        assert '## Compare read' in rest and '## Compare write' not in text

    def test_results_of_one_place_share_a_table(self):
        names = 'compare-write compare-read'
        other = replace(
            TABLE,
            title='Reads',
            rows=[('plain', '7')],
            notes=(*TABLE.notes, 'More.'),
        )
        found = [section(), section('compare read', tables=[other])]
        text = with_sections(''.join(markers(names)), found)
        assert text.count('| container | rate /s |') == 1
        assert '| N = 8 | 999 |\n| plain | 7 |' in text
        assert 'Rates <of> writes; Reads.' in text
        assert text.count(TABLE.notes[0]) == text.count('More.') == 1
        assert text.count(ORIGIN.swift) == 1

    def test_a_place_stays_as_it_is_until_all_of_its_results_are_there(self):
        begin, end = markers('compare-write compare-read')
        text = f'{begin}\nold\n{end}'
        assert with_sections(text, [section()]) == text
        assert missing(text, [section()]) == ['compare-read']
        assert missing(text, [section(), section('compare read')]) == []

    def test_a_place_gets_the_newest_result(self):
        own = section(tables=[replace(TABLE, rows=[('plain', '7')])])
        newer = replace(own, result=replace(own.result, time='20260101'))
        text = with_sections(
            ''.join(markers('compare-write')), [section(), newer]
        )
        assert '| plain | 7 |' in text and '1,000' not in text

    def test_a_result_that_was_interrupted_says_so(self):
        text = with_sections('', [section(complete=False)])
        assert '**Compare write: This was interrupted' in text


def test_an_alternative_text_tells_what_the_plot_shows():
    assert alternative(PLOT) == (
        'Writes: throughput & "more". From left to right: container; upwards: '
        'writes/s. writes: 290 to 300'
    )


def test_a_damaged_result_is_reported():
    timeless = run().as_json()
    timeless['summary'] |= {'seconds': 0, 'steady_seconds': 0}
    for figures in ({}, {'runs': [{}]}, {'runs': None}, {'runs': [timeless]}):
        with pytest.raises(BenchError, match='compare-write.json is damaged'):
            sections([replace(kept(), figures=figures)])


def test_results_and_plots_have_names_of_their_own():
    found = sections([kept(), kept(name='small'), kept(time='20260101')])
    names = [p.name for each in found for p in each.plots]
    assert names and len(set(names)) == len(names)
    assert [each.anchor for each in found] == [
        *('compare-write', 'compare-write-20260101', 'compare-write-small')
    ]


@pytest.mark.parametrize(
    ('text', 'found'),
    [
        ('a < b & c', 'a &lt; b &amp; c'),
        ('of `a*b*` *all*', 'of <code>a*b*</code> <em>all</em>'),
        ('[x](https://y.z)', '<a href="https://y.z">x</a>'),
        ('[x](javascript:y) <b>', '[x](javascript:y) &lt;b&gt;'),
    ],
)
def test_marks_in_sentences_become_html(text, found):
    assert inline(text) == found


class TestCommand:
    def report(self, *arguments):
        return CliRunner().invoke(main, ['report', *map(str, arguments)])

    def test_it_writes_the_page_next_to_the_results(self, tmp_path):
        folder.save(tmp_path, kept())
        assert self.report('--output', tmp_path).exit_code == 0
        text = (tmp_path / 'report.html').read_text(encoding='utf-8')
        assert Reader(text).tags.count('figure') >= 4

    def test_a_markdown_page_is_written_too(self, tmp_path):
        folder.save(tmp_path, kept(complete=False))
        target = tmp_path / 'doc' / 'performance.md'
        html = tmp_path / 'other.html'
        options = ('--output', tmp_path, '--page', target, '--html', html)
        assert self.report(*options).exit_code == 0
        assert '| N = 8 |' in target.read_text(encoding='utf-8')
        assert [*target.parent.iterdir()] == [target]
        assert html.exists()

    def test_results_that_a_page_lacks_are_named(self, tmp_path):
        folder.save(tmp_path, kept())
        target = tmp_path / 'page.md'
        target.write_text(''.join(markers('compare-write compare-read')))
        ended = self.report('--output', tmp_path, '--page', target)
        assert ended.exit_code == 0
        assert 'compare-read is not in' in ended.output

    def test_missing_results_are_reported_in_one_line(self, tmp_path):
        ended = self.report('--output', tmp_path / 'none')
        assert ended.exit_code == 1
        assert 'has no results: measure something first' in ended.output
        assert len(ended.output.splitlines()) == 1

    def test_a_page_with_wrong_markers_is_left_as_it_is(self, tmp_path):
        folder.save(tmp_path, kept())
        target = tmp_path / 'page.md'
        target.write_text(BEGIN)
        ended = self.report('--output', tmp_path, '--page', target)
        assert ended.exit_code == 1
        assert target.read_text() == BEGIN
        assert not (tmp_path / 'report.html').exists()
