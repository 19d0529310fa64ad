# SPDX-License-Identifier: Apache-2.0
"""Runs: what they show of a load, and their JSON."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.kinds import PLAIN, sharded
from shardmw_bench.load.outcome import Sample
from shardmw_bench.results.runs import Run
from shardmw_bench.results.summary import summarize

from test.tools.unit.test_bench_load import outcome_of, sample


def run_of(
    *ends: float,
    seconds: float = 2.0,
    kind=PLAIN,
    turn=0,
    rows=0,
    **conditions,
) -> Run:
    """Return a run whose operations ended at these seconds."""
    outcome = outcome_of(*(sample(100 + end) for end in ends), seconds=seconds)
    return Run('write', kind, turn, conditions, summarize(outcome), rows)


@given(
    clients=st.integers(1, 5),
    duration=st.floats(0.01, 5),
    seconds=st.floats(2, 10),
)
def test_the_rate_is_by_how_long_operations_take(clients, duration, seconds):
    starts = [n * duration for n in range(math.ceil(seconds / duration))]
    outcome = outcome_of(
        *(lasting(start, duration) for start in starts * clients),
        seconds=seconds,
    )
    outcome = replace(outcome, clients=clients)
    run = Run('write', PLAIN, 0, {}, summarize(outcome))
    assert run.rate == pytest.approx(clients / duration)
    listing = replace(run, rows_listed=10 * run.summary.done)
    assert listing.rate == pytest.approx(10 * clients / duration)
    assert listing.operations_rate == run.rate


@given(clients=st.integers(1, 20), each=st.floats(0.01, 0.1))
def test_the_rate_of_clients_in_a_queue_is_that_of_the_server(clients, each):
    # all clients begin at once, and then take turns
    ends = [n * each for n in range(1, math.ceil(7 / each))]
    starts = [0.0] * clients + ends
    waits = zip(starts, ends, strict=False)
    outcome = outcome_of(
        *(lasting(start, end - start) for start, end in waits), seconds=4.5
    )
    outcome = replace(outcome, clients=clients)
    run = Run('write', PLAIN, 0, {}, summarize(outcome))
    assert run.rate == pytest.approx(1 / each, rel=0.01)


def lasting(start: float, duration: float) -> Sample:
    """Return an operation by the second when it began and its duration."""
    begun = 100 + start
    return sample(begun + duration)._replace(
        start=begun, sent=begun, first_byte=begun + duration
    )


def test_operations_of_a_mix_have_separate_rates():
    first, put = sample(100.0), sample(100.5)
    get = sample(101.0)._replace(kind=1)
    outcome = outcome_of(first, put, get, get)
    outcome = replace(outcome, kinds=('PUT', 'GET'))
    run = Run('mixed', PLAIN, 0, {}, summarize(outcome))
    again = Run.from_json(json.loads(json.dumps(run.as_json())))
    parts = {part.work: part for part in again.by_operation()}
    assert parts['PUT'].rate == 0.5
    assert parts['GET'].rate == 1.0
    assert run.rate == 1.5
    assert run_of(0.5).by_operation() == []


def test_without_an_operation_in_time_the_rate_is_0():
    assert run_of(seconds=2.0).rate == 0
    assert run_of(3.0, seconds=2.0).rate == 0
    assert run_of(seconds=2.0).bandwidth is None


def test_bandwidth_is_of_bodies_both_ways():
    # of 7 bytes received and 2 sent each
    assert run_of(0.0, 0.5, 1.0).bandwidth == pytest.approx(9e-6)


def test_processor_time_is_by_request_and_of_all_operations_together():
    first, put = sample(100.0), sample(100.5)
    get = sample(101.0)._replace(kind=1)
    outcome = replace(outcome_of(first, put, get, get), kinds=('PUT', 'GET'))
    run = Run('mixed', PLAIN, 0, {}, summarize(outcome), 0, 0.5)
    assert run.processor_ms == 125
    assert run.as_json()['processor_ms'] == 125
    assert [part.processor_ms for part in run.by_operation()] == [None, None]


def test_processor_time_that_is_not_known_is_none():
    assert run_of(0.5).processor_ms is None
    old = run_of(0.5).as_json()
    del old['processor_seconds'], old['processor_ms']
    assert Run.from_json(old).processor_ms is None
    assert replace(run_of(), processor_seconds=1.0).processor_ms is None


def test_runs_survive_json():
    run = run_of(0.5, 1.0, kind=sharded(8), turn=3, rows=20, size=4096)
    run = replace(run, processor_seconds=0.25)
    text = json.dumps(run.as_json(), allow_nan=False)
    assert Run.from_json(json.loads(text)) == run
