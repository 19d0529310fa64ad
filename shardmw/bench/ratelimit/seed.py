# SPDX-License-Identifier: Apache-2.0
"""``seed``: many writers fill one container, plain or of many shards."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from shardmw.bench.ratelimit.limits import SHARDMW
from shardmw.bench.ratelimit.parameters import Parameters
from shardmw.bench.ratelimit.rates import FRESH, container_text
from shardmw.bench.ratelimit.stage import Bed, Stage
from shardmw.bench.results.summary import errors_text, summarize
from shardmw.bench.tables import Table, figure, number, plain


def measure(
    stage: Stage, keep: Callable[[Mapping], None]
) -> dict[str, object]:
    """Write to both kinds of container in turns, with a limit and without."""
    parameters = stage.parameters
    figures = {'rows': []}
    with stage.bed() as bed:
        for rate in (None, parameters.seed_rate):
            bed.limit(SHARDMW, rate)
            for turn in range(parameters.rounds):
                kinds = [None, parameters.seed_shards]
                # what comes second finds fuller disks
                for shards in kinds[:: -1 if turn % 2 else 1]:
                    row = _write(stage, bed, rate, shards, turn)
                    figures['rows'].append(row)
                    keep(figures)
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """The rates of both, and what shards bring."""
    rows = []
    for rate in (None, parameters.seed_rate):
        one, many = (
            _of(figures['rows'], rate, shards)
            for shards in (None, parameters.seed_shards)
        )
        gains = [
            b['admitted_rate'] / a['admitted_rate']
            # of a round that was broken off there is one only
            for a, b in _pairs(one, many)
            if a['admitted_rate']
        ]
        rows.append(
            (
                'none' if rate is None else f'{plain(rate)} /s',
                _rate(one),
                _rate(many),
                number(median(gains), 2) if gains else '—',
                f'{min(gains):.2f} to {max(gains):.2f}' if gains else '—',
                errors_text(_all_errors([*one, *many])),
            )
        )
    many_text = container_text(parameters.seed_shards, FRESH)
    return [
        Table(
            f'{parameters.clients} writers, one container',
            (
                *('limit of a container', 'plain /s', f'{many_text} /s'),
                *('ratio', 'ratios of the rounds', 'errors'),
            ),
            rows,
            (
                f'Medians of {parameters.rounds} rounds of '
                f'{plain(parameters.seconds)} s each, the two containers in '
                f'turns; {parameters.size}-byte objects.',
            ),
        )
    ]


def _write(
    stage: Stage, bed: Bed, rate: float | None, shards: int | None, turn: int
) -> dict[str, object]:
    container = bed.account.create(shards)
    summary = summarize(stage.run(stage.load(bed, container)))
    limit = 'no limit' if rate is None else f'{plain(rate)}/s'
    stage.screen.line(
        f'{limit}, {container_text(shards, FRESH)}: '
        f'{figure(summary.admitted_rate)}/s admitted'
    )
    return {**summary.as_json(), 'rate': rate, 'shards': shards, 'round': turn}


def _of(rows: Sequence[Mapping], rate: object, shards: object) -> list:
    found = [r for r in rows if (r['rate'], r['shards']) == (rate, shards)]
    return sorted(found, key=lambda row: row['round'])


def _pairs(
    one: Sequence[Mapping], many: Sequence[Mapping]
) -> list[tuple[Mapping, Mapping]]:
    by_round = {row['round']: row for row in many}
    return [
        (row, by_round[row['round']])
        for row in one
        if row['round'] in by_round
    ]


def _rate(rows: Sequence[Mapping]) -> str:
    rates = [row['admitted_rate'] for row in rows]
    return figure(median(rates) if rates else None)


def _all_errors(rows: Sequence[Mapping]) -> dict[str, int]:
    total: dict[str, int] = {}
    for row in rows:
        for what, count in row['errors'].items():
            total[what] = total.get(what, 0) + count
    return total
