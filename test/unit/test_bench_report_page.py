# SPDX-License-Identifier: Apache-2.0
"""The report as a page: what is in it, and that it needs nothing else."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from shardmw.bench.cli import main
from shardmw.bench.drawing import svg
from shardmw.bench.errors import BenchError
from shardmw.bench.experiments import Description
from shardmw.bench.kinds import PLAIN, sharded
from shardmw.bench.page import BEGIN, END, markers
from shardmw.bench.plot import BARS, Axis, Plot, Series
from shardmw.bench.report.html import page
from shardmw.bench.report.inline import inline
from shardmw.bench.report.markdown import missing, with_sections
from shardmw.bench.report.sections import (
    Section,
    alternative,
    origins,
    sections,
)
from shardmw.bench.results import folder as results
from shardmw.bench.results.folder import Result
from shardmw.bench.tables import Table
from shardmw.bench.workloads.works import WORKS
from test.unit.test_bench_ratelimit import ORIGIN
from test.unit.test_bench_runplots import run

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

# Elements that have no end.
_VOID = {'meta', 'br'}


class Reader(HTMLParser):
    """Reads a page as strictly as a picky person."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        self.ids += [values['id']] if 'id' in values else []
        self.links += [
            value
            for name, value in attrs
            if name in ('src', 'href', 'xlink:href')
        ]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def section(title='compare write', complete=True, **also) -> Section:
    command, _, experiment = title.partition(' ')
    result = Result(command, experiment, ORIGIN, {}, {}, complete)
    tables = also.get('tables', [TABLE])
    said = Description(
        title=title,
        summary='Upload objects.',
        published=also.get('published', ''),
        parameters=[('clients', '16')],
        tables=tables,
        plots=also.get('plots', [PLOT]),
        brief=also.get('brief', tables[:1]),
    )
    return Section(result, said)


def kept(experiment='write', **also) -> Result:
    """A result as the command keeps it."""
    runs = [run(kind=kind).as_json() for kind in (PLAIN, sharded(8))]
    parameters = WORKS[experiment].parameters().as_json()
    return Result(
        'compare', experiment, ORIGIN, parameters, {'runs': runs}, **also
    )


class TestHtml:
    def test_it_is_well_formed_and_has_each_name_once(self):
        read = Reader(
            page([section(), section('compare read', plots=[])], svg)
        )
        assert read.open == []
        assert len(set(read.ids)) == len(read.ids)

    def test_it_needs_no_other_file_and_no_script(self):
        text = page([section(published='See https://example.org/.')], svg)
        read = Reader(text)
        assert all(link.startswith('#') for link in read.links)
        assert 'script' not in read.tags
        assert not re.search(r'url\((?!#)|@import', text)

    def test_links_lead_to_something(self):
        read = Reader(
            page([section(), section('compare read', plots=[])], svg)
        )
        ids = {f'#{each}' for each in read.ids}
        assert set(read.links) <= ids

    def test_every_table_and_plot_is_in_it(self):
        read = Reader(page([section()], svg))
        assert read.tags.count('table') == 1
        assert read.tags.count('figure') == 1
        assert read.tags.count('svg') == 1
        texts = [text.strip() for text in read.texts]
        for text in ('Rates <of> writes', 'rate /s', '1,000', 'N = 8'):
            assert text in texts

    def test_numbers_are_at_the_right(self):
        text = page([section()], svg)
        assert '<td>plain</td><td class="number">1,000</td>' in text

    def test_it_says_where_figures_come_from(self):
        text = page([section()], svg)
        for fact in (ORIGIN.date, ORIGIN.swift, ORIGIN.python):
            assert f'<dd>{fact}' in text

    def test_notes_and_what_others_published_are_told(self):
        text = page([section(published='87,000 writes')], svg)
        assert 'Of <code>one</code> run.' in text
        assert 'Medians of <em>3</em> rounds.' in text
        assert '87,000 writes' in text

    def test_an_interrupted_one_says_so_twice(self):
        text = page([section(complete=False)], svg)
        assert '<span class="mark">interrupted</span>' in text
        assert 'This was interrupted' in text
        assert 'interrupted' not in page([section()], svg)

    def test_it_is_always_the_same(self):
        assert page([section()], svg) == page([section()], svg)


class TestOrigins:
    def test_of_the_same_versions_there_is_one(self):
        own = section()
        other = replace(own, result=replace(own.result, provenance=LATER))
        (origin,) = origins([own, other])
        assert ('measured', f'{ORIGIN.date} to 2999-01-01') in origin.facts

    def test_others_are_told_apart_with_what_they_hold_for(self):
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
        text = page([own, other], svg)
        assert '<p><a href="#compare-read">' in text


class TestMarkdown:
    def test_it_has_headings_and_the_main_tables(self):
        text = with_sections('# Page\n', [section()])
        assert '## Compare write\n' in text
        assert '| plain | 1,000 |' in text
        assert 'Rates <of> writes.' in text
        assert PLOT.name not in text

    def test_twice_gives_the_same(self):
        once = with_sections('# Page\n', [section()])
        assert with_sections(once, [section()]) == once

    def test_a_section_goes_to_its_own_place(self):
        begin, end = markers('compare-write')
        text = f'before\n{begin}{end}\nbetween\n{BEGIN}{END}\nafter\n'
        text = with_sections(text, [section(), section('compare read')])
        own, rest = text.split('between')
        assert '| plain | 1,000 |' in own and '##' not in own
        assert '## Compare read' in rest and '## Compare write' not in text

    def test_a_page_with_places_gets_nothing_else(self):
        text = ''.join(markers('compare-write'))
        text = with_sections(text, [section(), section('compare read')])
        assert BEGIN not in text
        assert text.count('| plain | 1,000 |') == 1

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

    def test_what_is_not_measured_anew_keeps_its_figures_and_its_origin(self):
        places = map(markers, ('compare-write', 'compare-read'))
        text = '\n'.join(''.join(each) for each in places)
        other = section('compare read')
        text = with_sections(text, [section(), other])
        later = replace(other.result, provenance=LATER)
        text = with_sections(text, [replace(other, result=later)])
        write, read = text.split(markers('compare-write')[1])
        assert ORIGIN.date in write and LATER.date not in write
        assert LATER.date in read and ORIGIN.date not in read

    def test_a_result_that_was_interrupted_says_so(self):
        text = with_sections('', [section(complete=False)])
        assert '**Compare write: This was interrupted' in text

    def test_a_place_without_an_end_is_refused(self):
        begin, _ = markers('compare-write')
        with pytest.raises(BenchError, match='takes one of each'):
            with_sections(begin, [section()])


def test_an_alternative_text_tells_what_the_plot_shows():
    assert alternative(PLOT) == (
        'Writes: throughput & "more". From left to right: container; upwards: '
        'writes/s. writes: 290 to 300'
    )


def test_a_damaged_result_is_told_in_a_line():
    timeless = run().as_json()
    timeless['summary'] |= {'seconds': 0, 'steady_seconds': 0}
    for figures in ({}, {'runs': [{}]}, {'runs': None}, {'runs': [timeless]}):
        with pytest.raises(BenchError, match='compare-write.json is damaged'):
            sections([replace(kept(), figures=figures)])


def test_plots_of_several_results_have_names_of_their_own():
    found = sections([kept(), kept(name='small')])
    names = [p.name for each in found for p in each.description.plots]
    assert names and len(set(names)) == len(names)
    assert [each.anchor for each in found] == [
        *('compare-write', 'compare-write-small')
    ]


@pytest.mark.parametrize(
    ('text', 'found'),
    [
        ('a < b & c', 'a &lt; b &amp; c'),
        ('of `a*b*` *all*', 'of <code>a*b*</code> <em>all</em>'),
        ('**these**', '<strong>these</strong>'),
        ('2 * 3 * 4', '2 * 3 * 4'),
        ('[x](https://y.z)', '<a href="https://y.z">x</a>'),
        ('[x](javascript:y)', '[x](javascript:y)'),
    ],
)
def test_sentences_keep_their_marks(text, found):
    assert inline(text) == found


class TestCommand:
    def report(self, *arguments):
        return CliRunner().invoke(main, ['report', *map(str, arguments)])

    def test_it_writes_the_page_next_to_the_results(self, tmp_path):
        results.save(tmp_path, kept())
        assert self.report('--output', tmp_path).exit_code == 0
        text = (tmp_path / 'report.html').read_text(encoding='utf-8')
        assert Reader(text).tags.count('figure') >= 3

    def test_a_markdown_page_is_written_too(self, tmp_path):
        results.save(tmp_path, kept(complete=False))
        target = tmp_path / 'doc' / 'performance.md'
        html = tmp_path / 'other.html'
        options = ('--output', tmp_path, '--page', target, '--html', html)
        assert self.report(*options).exit_code == 0
        assert '| N = 8 |' in target.read_text(encoding='utf-8')
        assert [*target.parent.iterdir()] == [target]
        assert html.exists()

    def test_results_that_a_page_lacks_are_told(self, tmp_path):
        results.save(tmp_path, kept())
        target = tmp_path / 'page.md'
        target.write_text(''.join(markers('compare-write compare-read')))
        ended = self.report('--output', tmp_path, '--page', target)
        assert ended.exit_code == 0
        assert 'compare-read is not in' in ended.output

    def test_no_results_are_one_line(self, tmp_path):
        ended = self.report('--output', tmp_path / 'none')
        assert ended.exit_code == 1
        assert 'has no results: measure something first' in ended.output
        assert len(ended.output.splitlines()) == 1

    def test_a_page_with_wrong_markers_is_left_as_it_is(self, tmp_path):
        results.save(tmp_path, kept())
        target = tmp_path / 'page.md'
        target.write_text(BEGIN)
        ended = self.report('--output', tmp_path, '--page', target)
        assert ended.exit_code == 1
        assert target.read_text() == BEGIN
        assert not (tmp_path / 'report.html').exists()


def test_plots_that_would_be_called_the_same_have_names_of_their_own():
    found = sections([kept(), kept()])
    names = [
        plot.name for section in found for plot in section.description.plots
    ]
    assert len(set(names)) == len(names) > 1
