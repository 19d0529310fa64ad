# SPDX-License-Identifier: Apache-2.0
"""Runs: what they say of a load, and JSON of it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.bench.kinds import PLAIN, sharded
from shardmw.bench.runs import Run
from shardmw.bench.summary import summarize
from test.unit.test_bench_load import outcome_of, sample


def run_of(
    *ends: float,
    seconds: float = 2.0,
    kind=PLAIN,
    turn=0,
    rows=0,
    **conditions,
) -> Run:
    """A run whose operations ended at these seconds."""
    outcome = outcome_of(*(sample(100 + end) for end in ends), seconds=seconds)
    return Run('write', kind, turn, conditions, summarize(outcome), rows)


@given(duration=st.floats(0.01, 1.9), seconds=st.floats(2, 10))
def test_the_rate_of_a_client_is_by_how_long_its_operations_take(
    duration, seconds
):
    ends = [n * duration for n in range(1, 2 + int(seconds / duration))]
    run = run_of(*ends, seconds=seconds)
    assert run.rate == pytest.approx(1 / duration)
    listing = replace(run, rows_listed=10 * run.summary.admitted)
    assert listing.rate == pytest.approx(10 / duration)
    assert listing.operations_rate == run.rate


def test_nothing_answered_is_no_rate():
    assert run_of(seconds=2.0).rate == 0
    assert run_of(3.0, seconds=2.0).rate == 0
    assert run_of(seconds=2.0).bandwidth is None


def test_bandwidth_is_of_bodies_both_ways():
    # of 7 bytes received and 2 sent each
    assert run_of(0.5, 1.0).bandwidth == pytest.approx(18e-6)


def test_runs_survive_json():
    run = run_of(0.5, 1.0, kind=sharded(8), turn=3, rows=20, size=4096)
    text = json.dumps(run.as_json(), allow_nan=False)
    assert Run.from_json(json.loads(text)) == run
