# SPDX-License-Identifier: Apache-2.0
"""Tests of the plan of pairs of faults, and of what the checker allows."""

import itertools
import subprocess
import sys

import pytest

from test.faults.matrix import CELLS, WORKS, chosen
from test.faults.page import pair_table
from test.faults.plan import (
    ALLOWANCES,
    ALONE,
    NAMED,
    Pair,
    allowances,
    contradict,
    planned,
)
from test.faults.run import Late
from test.faults.site import Site
from test.history import Write
from test.unit.test_fault_matrix import outcome, result_of

#: Kinds of faults that contradict each other.
APART = {('old', 'grown'), ('new', 'grown'), ('moved', 'grown')}

PLAN = planned()


def pair(first: str, second: str, is_inside: bool = False) -> Pair:
    ((one,), (other,)) = chosen([first]), chosen([second])
    return Pair(one, other, is_inside)


def test_the_plan_has_all_kinds_of_faults_in_pairs():
    kinds = {frozenset({p.first.how, p.second.how}) for p in PLAN}
    hows = {cell.how for cell in CELLS if cell.what not in ALONE}
    missing = [
        each
        for each in itertools.combinations(hows, 2)
        if frozenset(each) not in kinds
    ]
    assert {frozenset(each) for each in missing} == {*map(frozenset, APART)}


def test_the_plan_has_all_faults_of_the_matrix_and_all_work():
    faults = {each[:2] for p in PLAN for each in p.faults}
    assert faults == {cell[:2] for cell in CELLS if cell.what not in ALONE}
    assert {p.work for p in PLAN} == {*WORKS}
    assert {p.is_inside for p in PLAN} == {True, False}


def test_the_plan_is_always_the_same():
    assert planned() == PLAN
    assert len({*map(str, PLAN)}) == len(PLAN) >= 60
    assert {*NAMED} < {*map(str, PLAN)}


@pytest.mark.parametrize(
    ('first', 'second', 'expected'),
    [
        ('container-killed-objects', 'container-slow-objects', False),
        ('containers-killed-objects', 'container-slow-objects', False),
        ('containers-killed-objects', 'containers-slow-objects', True),
        ('databases-killed-objects', 'device-gone-objects', True),
        ('container-killed-objects', 'object-killed-objects', False),
        ('proxy-killed-objects', 'proxy-slow-objects', True),
        ('memcached-killed-objects', 'memcacheds-stopped-objects', True),
        ('ring-moved-objects', 'ring-grown-objects', True),
        ('ring-grown-objects', 'device-gone-objects', False),
        ('ring-grown-objects', 'device-new-objects', True),
        ('device-new-objects', 'device-gone-objects', False),
    ],
)
def test_faults_contradict_if_they_hit_the_same(first, second, expected):
    both = pair(first, second).faults
    assert contradict(*both) == contradict(*both[::-1]) == expected


@pytest.mark.parametrize('each', PLAN, ids=str)
def test_a_pair_is_allowed_what_its_cells_are_allowed(each):
    one, other = ({*allowances(cell)} - {'none'} for cell in each.faults)
    more = {*allowances(each)} - {'none'} - (one | other)
    assert one | other <= {*allowances(each)} <= {*ALLOWANCES}
    assert more <= ({'any object', 'any row'} if each.lacks_data else set())


def test_two_faults_overlap_and_end_in_either_order():
    one, other = pair('proxy-killed-objects', 'device-gone-objects').faults
    assert Pair(one, other, False).spans(20) == ((one, 0, 15), (other, 5, 15))
    assert Pair(one, other, True).spans(20) == ((one, 0, 20), (other, 5, 10))


@pytest.mark.parametrize(
    ('first', 'second', 'spans'),
    [('ring-moved', 'proxy-slow', (0, 15, 21, 15))]
    + [('proxy-slow', 'ring-moved', (0, 31, 5, 15))],
)
def test_faults_of_rings_last_until_servers_have_loaded_them(
    first, second, spans
):
    both = pair(f'{first}-reshard', f'{second}-reshard')
    assert sum((span[1:] for span in both.spans(20)), ()) == spans


def test_only_the_end_counts_if_no_server_with_the_data_may_be_left():
    both = pair('ring-grown-objects', 'object-killed-objects')
    late = Late(both, window=(20, 40), well_at=90)
    early = late.known(Write('o', 'DELETE', 1, 2))
    meanwhile = late.known(Write('o', 'DELETE', 25, 26))
    assert (early.listed, early.stored, early.is_sure) == (90, 90, True)
    assert (meanwhile.stored, meanwhile.is_sure) == (90, False)
    assert late.known(Write('o', 'PUT', 25, 26)).is_sure


def test_the_plan_is_printed_with_what_the_checker_allows():
    command = (sys.executable, '-m', 'test.faults.pairs', '--plan', NAMED[0])
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert lines[1] == f'  {NAMED[0]}: late rows'
    assert lines[2].startswith('late rows: a listing may lack writes')


def test_a_pair_is_in_the_rows_of_both_kinds():
    both = pair('proxy-killed-objects', 'device-gone-objects')
    result = result_of(str(both), outcome(), outcome(well_seconds=7.6))
    rest = (
        '| 1 | 0 | 2,000 | 600 | 0 | 0 '
        '| 0 / 0 | 0 / 0 | 0.0% / 0.0% | 2 s / 8 s |'
    )
    lines = pair_table([(both, result)]).splitlines()[2:]
    assert lines == [f'| {how} {rest}' for how in ('gone', 'killed', 'all')]


class Process:
    """A process of which only the group is signalled."""

    pid = 7


def test_daemons_continue_when_both_faults_have_ended(monkeypatch, tmp_path):
    sent = []
    monkeypatch.setattr('os.killpg', lambda pid, number: sent.append(number))
    site = Site(tmp_path)
    site._processes['replicator@container-1'] = Process()
    with site.daemons_stopped('replicator'):
        with site.daemons_stopped():
            sent.clear()
        assert not sent
    assert len(sent) == 1
