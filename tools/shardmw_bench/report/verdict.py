# SPDX-License-Identifier: Apache-2.0
"""The verdict: ratios of sharded containers to plain ones. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from shardmw_bench import templates
from shardmw_bench.experiments import COMPARE, RATELIMIT, Section
from shardmw_bench.plots.plot import DOTS, REFERENCE, Axis, Plot, Series
from shardmw_bench.results import comparing as c
from shardmw_bench.results.figures import Interval
from shardmw_bench.results.runs import runs_of
from shardmw_bench.scenarios.rounds import grouped
from shardmw_bench.tables import Table, number
from shardmw_bench.templates import conditions_text, varying

_MEASURES: Mapping[str, c.Value] = {
    'rate': c.rate,
    'CPU time': c.processor,
    'mean latency': c.latency_of('mean_ms'),
}

_DIFFERENT = ('higher', 'lower')

# The most comparisons in the table and in the plot.
_MOST = 24


class Verdict(NamedTuple):
    """The ratios to plain containers."""

    sentences: list[str]
    table: Table
    plot: Plot


class _Comparison(NamedTuple):
    what: str
    row: c.Row
    ratios: Mapping[str, Interval | None]


def verdict(sections: Sequence[Section]) -> Verdict | None:
    """Return the verdict on the newest comparisons, or else on all results.

    :returns: None if nothing was compared with a plain container
    """
    newest = {each.result.kind_words: each for each in sections}.values()
    chosen = [s for s in newest if s.result.command == COMPARE] or newest
    found = [each for section in chosen for each in _comparisons(section)]
    if not found:
        return None
    measures = [
        name for name in _MEASURES if any(each.ratios[name] for each in found)
    ]
    note = templates.line(
        'rounds', runs=[run for each in found for run in each.row.runs]
    )
    sentences = [_sentence(name, found) for name in measures]
    if len(found) > _MOST:
        different = [
            each
            for each in found
            if any(r and judged(r) in _DIFFERENT for r in each.ratios.values())
        ]
        found = (different or found)[:_MOST]
        sentences.append(
            f'The table has up to {_MOST} comparisons that show a difference.'
        )
    (table,) = templates.tables(
        'verdict', found=found, measures=measures, note=note
    )
    return Verdict(sentences, table, _plot(found, measures))


def judged(ratio: Interval) -> str:
    """Return what the interval of a ratio shows."""
    if not ratio.confidence:
        return 'too few rounds to judge'
    if ratio.low > 1:
        return 'higher'
    return 'lower' if ratio.high < 1 else 'no difference shown'


def _comparisons(section: Section) -> Iterator[_Comparison]:
    # the runs of ratelimit have another form
    if section.result.command == RATELIMIT:
        return
    runs = runs_of({'runs': section.result.figures.get('runs', ())})
    names = varying(runs)
    has_works = len({run.work for run in runs}) > 1
    for row in c.rows_of(runs):
        ratios = {name: row.ratio(value) for name, value in _MEASURES.items()}
        if any(ratios.values()):
            conditions = row.conditions.items()
            words = [
                section.title.removeprefix('Compare '),
                row.work if has_works else '',
                conditions_text({k: v for k, v in conditions if k in names}),
            ]
            yield _Comparison(', '.join(filter(None, words)), row, ratios)


def _sentence(name: str, found: Sequence[_Comparison]) -> str:
    known = [each.ratios[name] for each in found if each.ratios[name]]
    texts = []
    for what, ratios in sorted(grouped(known, judged).items()):
        medians = [ratio.median for ratio in ratios]
        ends = dict.fromkeys(number(f(medians), 2) for f in (min, max))
        times = f'{" to ".join(ends)} times'
        texts.append(f'{what} in {len(ratios)} of {len(known)} ({times})')
    return (
        f'{name[:1].upper()}{name[1:]}, compared with the plain container: '
        f'{", ".join(texts)}.'
    )


def _plot(found: Sequence[_Comparison], measures: Sequence[str]) -> Plot:
    series = []
    for name in measures:
        ratios = [each.ratios[name] for each in found]
        known = [each for each in ratios if each]
        series += [
            Series(
                'ratio and interval',
                [place for place, each in enumerate(ratios) if each],
                [each.median for each in known],
                DOTS,
                [each.low for each in known],
                [each.high for each in known],
                panel=name,
            ),
            Series('as plain', (0, 0), (1, 1), REFERENCE, panel=name),
        ]
    return Plot(
        'verdict-ratios',
        'Ratios to the plain container',
        Axis('', names=[f'{e.what}: {e.row.kind.label}' for e in found]),
        Axis('ratio', log=True, middle=1),
        series,
        'An interval that does not include 1 shows a difference. A higher '
        'rate, less CPU time and a lower latency are better.',
    )
