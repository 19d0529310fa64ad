# SPDX-License-Identifier: Apache-2.0
"""Test what the fault matrix consists of, and how its results are shown."""

import pytest

from test.faults.inject import HOW
from test.faults.matrix import CELLS, WORKS, chosen
from test.faults.mutations import MUTATIONS, ROOT, mutated
from test.faults.page import mutation_table, put_in, table


def outcome(**fields) -> dict:
    return {
        'operations': 1000,
        'acknowledged': 300,
        'refused': {},
        'lost': 0,
        'wrong': 0,
        'well_seconds': 2.4,
        'problems': [],
        **fields,
    }


def test_cells_are_distinct_and_can_be_run():
    assert len({*CELLS}) == len(CELLS) >= 60
    assert {cell.work for cell in CELLS} == {*WORKS}
    assert {cell.how for cell in CELLS} == {*HOW}


def test_cells_are_chosen_by_the_first_parts_of_their_names():
    assert {cell.what for cell in chosen(['object'])} == {'object'}
    assert {str(cell)[-8:] for cell in chosen(['*-*-reshard'])} == {'-reshard'}
    assert chosen([]) == [*CELLS]
    with pytest.raises(ValueError, match='no cell'):
        chosen(['object-nowhere'])


@pytest.mark.parametrize('name', MUTATIONS)
def test_mutations_fit_the_code(name):
    texts = {}
    for module, old, new in MUTATIONS[name].edits:
        text = texts.get(module) or (ROOT / 'shardmw' / module).read_text()
        texts[module] = mutated(text, old, new)
        compile(texts[module], module, 'exec')
    assert chosen([*MUTATIONS[name].cells])


def test_the_table_sums_up_what_was_hit_and_how():
    results = [
        {
            'cell': f'proxy-killed-{work}',
            'plain': outcome(refused={'GET: 503': 10}),
            'sharded': outcome(lost=1, well_seconds=7.6),
        }
        for work in ('objects', 'reshard')
    ]
    line = '| {} | 2 | 4,000 | 1,200 | 2 | 0 | 1.0% | 0.0% | 2 s | 8 s |'
    lines = table(results).splitlines()
    assert lines[2:] == [
        line.format('proxy | killed'),
        line.format('all | '),
    ]


def test_the_last_result_of_a_mutation_counts():
    found = [
        {'mutation': 'a', 'cell': '', 'what': ''},
        {'mutation': 'a', 'cell': 'x-y-z', 'what': '1 wrong answers'},
    ]
    text = mutation_table(found, {'a': 'says a', 'b': 'says b'})
    assert text.splitlines()[2:] == ['| says a | x-y-z | 1 wrong answers |']


def test_a_table_is_put_between_the_marks_of_a_page():
    page = 'a <!-- x: begin --> old <!-- x: end --> b'
    new = 'a <!-- x: begin -->\n\nnew\n<!-- x: end --> b'
    assert put_in(page, 'x', 'new') == new
    with pytest.raises(ValueError, match='no <!-- y'):
        put_in(page, 'y', 'new')
