# SPDX-License-Identifier: Apache-2.0
"""Plots as files: not how they look, but what is in them."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardmw.bench.drawing import png, svg
from shardmw.bench.drawing.layout import figure_of
from shardmw.bench.drawing.palette import looks
from shardmw.bench.drawing.ticks import (
    linear_ticks,
    log_ticks,
    number_text,
    tick_texts,
)
from shardmw.bench.plot import (
    BARS,
    DOTS,
    LINE,
    REFERENCE,
    STEPS,
    STROKES,
    Axis,
    Band,
    Plot,
    Series,
)

BY_KIND = Plot(
    'rate-by-shards',
    'Writes: throughput <by> shard count',
    Axis('container', names=['plain', 'native, 8 ranges', 'N = 32']),
    Axis('writes/s'),
    [
        Series('no limit', [0, 1, 2], [300, 280, 290], BARS),
        Series('limit 100/s', [0, 1, 2], [98, 97, 280], BARS),
    ],
)
SIZES = (4096, 32768, 4 << 20)
BY_SIZE = Plot(
    'rate-by-size',
    'Throughput by object size',
    Axis('object size (bytes)', log=True, ticks=SIZES, sizes=True),
    Axis('writes/s', log=True),
    [
        Series('plain', SIZES, [3, 30, 900], LINE, [2, 0, 800], [4, 40, 1000]),
        Series('published', SIZES, [4, 40, 1000], REFERENCE),
    ],
)

BANDS = [Band('moving', 1, 2), Band('done', 2, 3), Band('moving', 3, 4)]


def texts_in(drawing: str) -> list[str]:
    """The letters of a drawing, which are those of its labels."""
    root = ElementTree.fromstring(drawing)
    return [
        ''.join(each.itertext()).strip()
        for each in root.iter('{http://www.w3.org/2000/svg}text')
    ]


def many_of(count: int, points: int, style: str) -> Plot:
    """A plot of so many series."""
    x = [each / 10 for each in range(1, points + 1)]
    series = [
        Series(f'N = {n}', x, [n + 1 + math.sin(each) for each in x], style)
        for n in range(count)
    ]
    return Plot('many', 'Many', Axis('time (s)'), Axis('latency (ms)'), series)


class TestSvg:
    @pytest.mark.parametrize('plot', [BY_KIND, BY_SIZE])
    def test_the_same_plot_gives_the_same_file(self, plot):
        assert svg(plot) == svg(plot)

    def test_title_axes_legend_and_ticks_are_letters(self):
        texts = texts_in(svg(BY_KIND))
        for text in ('no limit', 'limit 100/s', 'container', 'writes/s'):
            assert text in texts
        assert 'Writes: throughput <by> shard count' in texts
        assert {'plain', 'N = 32', '0', '100', '200', '300'} <= set(texts)

    def test_ticks_of_logarithmic_axes_are_plain_numbers(self):
        texts = texts_in(svg(BY_SIZE))
        assert {'4K', '32K', '4M', '10', '100', '1,000'} <= set(texts)

    def test_one_series_needs_no_legend(self):
        alone = Plot(
            *('alone', 'Alone', BY_KIND.x, BY_KIND.y, BY_KIND.series[:1])
        )
        assert 'no limit' not in texts_in(svg(alone))

    def test_series_of_one_label_are_in_the_legend_once(self):
        both = Plot(
            *('both', 'Both', Axis('time (s)'), Axis('latency (ms)')),
            [
                Series('plain', [1, 2], [3, 4], DOTS),
                Series('plain', [1], [3], LINE),
                Series('plain', [2], [4], LINE),
                Series('N = 8', [1, 2], [3, 5], LINE),
            ],
        )
        assert texts_in(svg(both)).count('plain') == 1

    def test_bands_are_in_the_legend_once(self):
        alone = replace(many_of(1, 50, LINE), bands=BANDS)
        texts = texts_in(svg(alone))
        assert [each for each in texts if each in ('moving', 'done')] == [
            *('moving', 'done'),
        ]

    def test_it_can_stand_in_a_page_among_others(self):
        ids = [
            set(re.findall(r' id="([^"]*)"', svg(plot)))
            for plot in (BY_KIND, BY_SIZE)
        ]
        assert not ids[0] & ids[1]
        drawing = svg(BY_KIND)
        assert drawing.startswith('<svg ')
        assert '<style' not in drawing
        assert not re.search(r'(?:href|src)="(?!#)', drawing)

    def test_it_says_when_it_is_read_aloud_what_it_is(self):
        root = ElementTree.fromstring(svg(BY_KIND))
        title = root.find('{http://www.w3.org/2000/svg}title')
        assert title.text == BY_KIND.title
        assert root.get('role') == 'img'

    @pytest.mark.parametrize(
        ('count', 'points', 'style'),
        [(14, 120, LINE), (2, 6000, DOTS), (8, 100, STEPS)],
    )
    def test_it_is_no_large_file(self, count, points, style):
        assert len(svg(many_of(count, points, style))) < 60_000

    def test_bars_have_their_values_beside_what_outliers_add(self):
        bars = Series('response', [0, 1], [50.5, 61.5], BARS)
        small = Series('request', [0, 1], [0.0842, 0.17], BARS)
        strokes = Series('with', [0], [70], STROKES, beside='response')
        plot = replace(BY_KIND, series=(small, bars, strokes))
        assert {'50.5', '61.5', '0.0842', '0.17'} <= {*texts_in(svg(plot))}

    def test_values_that_would_touch_are_not_on_the_bars(self):
        several = [
            Series(f'{page} rows a page', [0, 1, 2], [y, y, y], BARS)
            for page, y in ((1, 28969), (2, 31594), (3, 34107))
        ]
        wide = [replace(each, y=[1, 2, 3]) for each in several]
        texts = texts_in(svg(replace(BY_KIND, series=several)))
        assert '28,969' in texts
        names = ['plain', 'native, 8 ranges', 'N = 4', 'N = 32']
        axis = Axis('container', names=names)
        texts = texts_in(svg(replace(BY_KIND, x=axis, series=several)))
        assert '28,969' not in texts
        texts = texts_in(svg(replace(BY_KIND, x=axis, series=wide)))
        assert '3' in texts

    def test_one_published_value_is_where_it_was_measured(self):
        published = Series('published', SIZES[:1], [4], REFERENCE)
        plot = replace(BY_SIZE, series=(BY_SIZE.series[0], published))
        (axes,) = figure_of(plot).axes
        (line,) = [each for each in axes.lines if len(each.get_xdata()) == 1]
        assert list(line.get_xdata()) == [SIZES[0]]
        assert line.get_marker() != 'none'

    def test_what_has_no_place_is_left_out(self):
        series = Series(
            *('plain', [1, 2, 3, 4], [math.nan, 0, None, 5]), style=LINE
        )
        axis = Axis('latency (ms)', log=True)
        drawing = svg(Plot('gaps', 'Gaps', Axis('x'), axis, [series]))
        assert '5' in ' '.join(texts_in(drawing))

    def test_zero_has_no_place_on_a_logarithmic_axis(self):
        x, y = Axis('size', log=True), Axis('latency (ms)', log=True)
        some = Series('plain', [0, 1, 2, 3], [5, 6, 0, 8])
        known = Series('plain', [1, 3], [6, 8])
        drawn = [svg(Plot('a', 'A', x, y, [each])) for each in (some, known)]
        assert drawn[0] == drawn[1]

    def test_nothing_at_all_is_refused(self):
        for series in ([], [Series('plain', [1], [math.nan])]):
            plot = Plot('none', 'None', Axis('x'), Axis('y'), series)
            with pytest.raises(ValueError, match='nothing that can be drawn'):
                svg(plot)

    def test_settings_of_the_reader_s_own_change_nothing(self):
        import matplotlib

        usual = svg(BY_KIND)
        with matplotlib.rc_context({'font.size': 30, 'axes.grid': True}):
            assert svg(BY_KIND) == usual


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from([LINE, BARS, DOTS, STEPS, REFERENCE]),
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(0.001, 1e8)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
    st.booleans(),
    st.text('abc , 9', max_size=200),
)
def test_anything_can_be_drawn(style, points, log, is_named, label):
    x = [each for each, _ in points]
    y = [each for _, each in points]
    strokes = Series('s', x, y, STROKES, beside=label)
    plot = Plot(
        'any',
        label,
        Axis(label, names=[label] * 4 if is_named else ()),
        Axis('y', log=log),
        [Series(label, x, y, style, y, y), strokes],
    )
    assert svg(plot).startswith('<svg ')


def test_a_picture_of_dots_is_png():
    assert png(BY_KIND, 40).startswith(b'\x89PNG')


class TestTicks:
    def test_they_are_round(self):
        assert linear_ticks(0, 330) == [0, 50, 100, 150, 200, 250, 300]
        assert linear_ticks(12, 13.4) == [12, 12.2, 12.4, 12.6, 12.8] + [
            *(13, 13.2, 13.4)
        ]

    def test_on_logarithmic_axes_they_are_as_many_as_there_is_room_for(self):
        assert log_ticks(0.5, 60) == [0.5, 1, 2, 5, 10, 20, 50]
        assert log_ticks(2, 400) == [2, 5, 10, 20, 50, 100, 200]
        assert log_ticks(1, 5000) == [1, 10, 100, 1000]

    def test_a_narrow_logarithmic_axis_has_some_all_the_same(self):
        assert len(log_ticks(12.5, 13.4)) >= 3

    @given(st.floats(1e-6, 1e12), st.floats(1.001, 1e9), st.booleans())
    def test_they_are_few_and_lie_on_the_axis(self, low, factor, log):
        high = low * factor
        ticks = (log_ticks if log else linear_ticks)(low, high)
        assert 1 <= len(ticks) <= 9
        assert ticks == sorted(set(ticks))
        assert all(
            low * (1 - 1e-6) <= each <= high * (1 + 1e-6) for each in ticks
        )

    @pytest.mark.parametrize(
        ('value', 'text'),
        [(0, '0'), (0.001, '0.001'), (0.5, '0.5'), (20.0, '20')]
        + [(100_000, '100,000'), (0.1 + 0.2, '0.3')],
    )
    def test_numbers_are_as_people_write_them(self, value, text):
        assert number_text(value) == text

    def test_many_digits_are_millions(self):
        assert tick_texts([0, 500_000, 2_000_000]) == ['0', '0.5 M', '2 M']
        assert tick_texts([0, 500_000]) == ['0', '500,000']
        assert tick_texts([100, 10_000_000]) == ['100', '10 M']

    def test_sizes_have_their_units(self):
        assert tick_texts([1, 4096, 4 << 20], sizes=True) == ['1', '4K', '4M']


def test_fourteen_series_look_different():
    found = looks(f'N = {n}' for n in range(14))
    assert len(set(found.values())) == 14
    colours = {(each.colour, each.dash) for each in found.values()}
    assert len(colours) == 14


def test_what_is_the_same_looks_the_same():
    assert list(looks(['a', 'b', 'a'])) == ['a', 'b']
