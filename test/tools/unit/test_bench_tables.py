# SPDX-License-Identifier: Apache-2.0
import io
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from shardmw_bench.errors import BenchError
from shardmw_bench.report.pages import BEGIN, END, with_figures
from shardmw_bench.tables import (
    Table,
    bytes_text,
    figure,
    number,
    plain,
    ratio,
    tables_of,
)

TABLE = Table(
    'Rates',
    ('filter', 'rate /s'),
    [('none', '1,000'), ('a|b', '5')],
    ('Of one run.',),
)

#: Text without markers.
texts = st.text(alphabet='ab\n #|', max_size=40)


def test_a_table_in_markdown():
    assert TABLE.markdown() == (
        '### Rates\n\n'
        '| filter | rate /s |\n'
        '| --- | ---: |\n'
        '| none | 1,000 |\n'
        '| a\\|b | 5 |\n\n'
        'Of one run.'
    )


def test_a_table_is_read_from_markdown():
    table = replace(TABLE, rows=[('none', '1,000'), ('', '5')], names=1)
    assert (
        tables_of(f'{table.markdown()}\n\n{table.markdown()}\n')
        == [
            replace(
                table,
                columns=[*table.columns],
                rows=[[*row] for row in table.rows],
                notes=[*table.notes],
            )
        ]
        * 2
    )


def test_a_table_on_the_terminal():
    console = Console(width=60, file=io.StringIO())
    console.print(TABLE)
    shown = console.file.getvalue()
    for text in ('Rates', 'filter', '1,000', 'a|b', 'Of one run.'):
        assert text in shown


def test_the_terminal_shows_no_marks_of_markdown():
    notes = ('*First write*: 2 * 3 of `a_b`; *rest*: none.',)
    console = Console(width=60, file=io.StringIO())
    console.print(replace(TABLE, notes=notes))
    words = ' '.join(console.file.getvalue().split())
    assert words.endswith('First write: 2 * 3 of a_b; rest: none.')


def test_notes_are_as_wide_as_the_terminal():
    notes = ('A note that is longer than its table.',)
    console = Console(width=60, file=io.StringIO())
    console.print(replace(TABLE, notes=notes))
    assert notes[0] in console.file.getvalue()


def test_a_narrow_terminal_shows_all_figures_in_parts():
    table = Table(
        'Times',
        ('container', 'request ms', 'trimmed', 'total ms', 'trimmed'),
        [('plain', '123.5', '99.1', '1,234', '1,111')],
        ('Means.',),
    )
    console = Console(width=40, file=io.StringIO())
    console.print(table)
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= 40
    assert '…' not in shown
    words = [word for word in shown.split() if word[0] != '─']
    assert words == [
        *('Times', 'container', 'request', 'ms', 'trimmed'),
        *('plain', '123.5', '99.1'),
        *('container', 'total', 'ms', 'trimmed', 'plain', '1,234', '1,111'),
        'Means.',
    ]


@given(st.integers(1, 120))
def test_parts_of_a_table_have_each_figure_once(width):
    columns = ('container', 'rate', '95 % interval', 'p50 ms', 'errors')
    row = ('plain', '1.00', '0.90 to 1.10', '12.5', '0')
    parts = Table('T', columns, [row]).within(width)
    assert [cell for part in parts for cell in part.rows[0][1:]] == [*row[1:]]
    assert all(part.rows[0][0] == 'plain' for part in parts)
    assert [part.title for part in parts] == ['T'] + [''] * (len(parts) - 1)
    # an interval is that of the figure at its left
    assert all(part.columns[1] != '95 % interval' for part in parts)


def test_a_row_that_fits_no_columns_is_refused():
    with pytest.raises(ValueError, match='fits no columns'):
        Table('T', ('a', 'b'), [('1',)])


@pytest.mark.parametrize(
    ('value', 'text'),
    [(0, '0'), (0.01234, '0.0123'), (1, '1.00'), (12.34, '12.3')]
    + [(234.5, '234'), (12345.6, '12,346'), (None, '—'), (math.nan, '—')],
)
def test_a_figure_has_three_digits(value, text):
    assert figure(value) == text


def test_a_number_has_the_digits_that_are_wanted():
    assert number(1234.5678, 2) == '1,234.57'
    assert number(None) == '—'


def test_a_ratio_to_nothing_is_none():
    assert ratio(3, 2) == '1.50'
    assert ratio(3, 0) == ratio(None, 2) == ratio(3, None) == '—'


def test_a_plain_number_is_as_typed():
    assert (plain(5.0), plain(0.5)) == ('5', '0.5')


@pytest.mark.parametrize(
    ('size', 'text'),
    [(0, '0 B'), (999, '999 B'), (1.8e9, '1.80 GB'), (5.5e15, '5.50 PB')],
)
def test_bytes_are_in_a_unit_that_fits(size, text):
    assert bytes_text(size) == text


@given(texts, texts)
def test_figures_replace_the_text_between_the_markers(before, after):
    page = f'{before}{BEGIN}\nold\n{END}{after}'
    new = with_figures(page, 'new')
    assert new == f'{before}{BEGIN}\n\nnew\n\n{END}{after}'
    assert with_figures(new, 'new') == new


@given(texts)
def test_a_page_without_markers_gets_them_at_its_end(page):
    new = with_figures(page, 'new')
    assert new.endswith(f'{BEGIN}\n\nnew\n\n{END}\n')
    assert with_figures(new, 'new') == new


@pytest.mark.parametrize(
    'page', [BEGIN, END, END + BEGIN, BEGIN + END + END, BEGIN * 2 + END]
)
def test_markers_that_make_no_pair_are_refused(page):
    with pytest.raises(BenchError, match='takes one of each, in this order'):
        with_figures(page, 'new')
