# SPDX-License-Identifier: Apache-2.0
"""The tables of ``doc/reliability.md``, from the results of runs. Pure."""

from collections.abc import Iterable
from itertools import chain

from test.faults.plan import Pair

KINDS = ('plain', 'sharded')
HEAD = (
    'what is hit',
    'how',
    'cells',
    'failed',
    'operations',
    'acknowledged writes',
    'lost',
    'wrong',
    'stale',
    'rows lost',
    'refused',
    'well after',
)


def table(results: Iterable[dict]) -> str:
    """Return the table of results, with a row for what fails and how.

    The last columns have figures of the plain and of the sharded container.
    Faults of one part share a row if no cell failed, and the same shares of
    requests were refused.
    """
    faults: dict[tuple[str, str], list[dict]] = {}
    for result in results:
        what, how, _ = result['cell'].split('-')
        faults.setdefault((what, how), []).append(result)
    rows: dict[tuple[str, ...], dict[str, list[dict]]] = {}
    for (what, how), cells in faults.items():
        rows.setdefault(_row_of(what, how, cells), {})[how] = cells
    lines = [
        _cells(what, ', '.join(row), [*chain(*row.values())])
        for (what, *_), row in rows.items()
    ]
    lines.append(_cells('all', '', [*chain(*faults.values())]))
    return _markdown(HEAD, lines)


def pair_table(results: Iterable[tuple[Pair, dict]]) -> str:
    """Return the table of pairs, with a row for each way to fail.

    A pair is in the rows of both ways.
    """
    found = list(results)
    hows = sorted({fault.how for pair, _ in found for fault in pair.faults})
    rows = {
        how: [
            result
            for pair, result in found
            if how in {fault.how for fault in pair.faults}
        ]
        for how in hows
    }
    rows['all'] = [result for _, result in found]
    lines = [_cells(how, '', cells) for how, cells in rows.items()]
    without_how = [(line[0], *line[2:]) for line in lines]
    return _markdown(('one fault', 'pairs', *HEAD[3:]), without_how, 1)


def mutation_table(found: Iterable[dict], says: dict[str, str]) -> str:
    """Return the table of mutations, with the last result of each.

    :param says: what each mutation breaks
    """
    last = {each['mutation']: each for each in found}
    return _markdown(
        ('mutation', 'found by', 'with'),
        [
            (says[name], last[name]['cell'] or 'no cell', last[name]['what'])
            for name in says
            if name in last
        ],
    )


def put_in(page: str, name: str, text: str) -> str:
    """Return a page with a text between the markers of a name.

    :raises ValueError: if the page has no such markers
    """
    begin, end = f'<!-- {name}: begin -->', f'<!-- {name}: end -->'
    before, found, rest = page.partition(begin)
    if not found or end not in rest:
        raise ValueError(f'the page has no {begin} and {end}')
    return f'{before}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}'


def _row_of(what: str, how: str, results: list[dict]) -> tuple[str, ...]:
    """Return what the faults that share a row of the table have in common."""
    cells = dict(zip(HEAD, _cells(what, how, results), strict=True))
    has_failed = not all(result['is_good'] for result in results)
    return what, cells['refused'], how * has_failed


def _cells(what: str, how: str, results: list[dict]) -> tuple[str, ...]:
    def of_kind(kind: str) -> dict:
        found = [result[kind] for result in results]
        refused = sum(sum(each['refused'].values()) for each in found)
        sums = {
            name: sum(each[name] for each in found)
            for name in (
                *('operations', 'acknowledged', 'lost', 'wrong', 'stale'),
                'unlisted',
            )
        }
        return {
            **sums,
            'refused': f'{refused / max(1, sums["operations"]):.1%}',
            'well': f'{max(each["well_seconds"] for each in found):.0f} s',
        }

    plain, sharded = map(of_kind, KINDS)
    both = ('operations', 'acknowledged', 'lost', 'wrong')
    apart = ('stale', 'unlisted', 'refused', 'well')
    return (
        what,
        how,
        str(len(results)),
        str(sum(not result['is_good'] for result in results)),
        *(f'{plain[name] + sharded[name]:,}' for name in both),
        *(f'{plain[name]} / {sharded[name]}' for name in apart),
    )


def _markdown(
    head: tuple[str, ...], lines: list[tuple[str, ...]], texts: int = 2
) -> str:
    """Return a table.

    :param texts: how many columns, from the left, are texts
    """
    marks = ['---'] * texts + ['---:'] * (len(head) - texts)
    return ''.join(
        f'| {" | ".join(line)} |\n' for line in [head, marks, *lines]
    )
