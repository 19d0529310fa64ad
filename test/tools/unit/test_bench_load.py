# SPDX-License-Identifier: Apache-2.0
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.load.outcome import (
    LOST,
    TIMED_OUT,
    Outcome,
    Sample,
    packed,
    table_of,
)
from shardmw_bench.load.sources import Uploads
from shardmw_bench.results import figures
from shardmw_bench.results.summary import (
    PHASES,
    Summary,
    errors_text,
    summarize,
)

UPLOADS = Uploads('/v1/AUTH_test/c', 2, prefix='a b/')
REFUSED = Sample(0, 7, 1.0, 1.2, 1.5, 2.0, 498, 1.5, 9, 3)


def sample(end: float, status: int = 201, number: int = 0) -> Sample:
    begun = end - 0.5
    times = begun, begun + 0.125, begun + 0.25, end
    return Sample(0, number, *times, status, math.nan, 7, 2)


def samples_of(*given: Sample) -> np.ndarray:
    return table_of(b''.join(packed(*each) for each in given))


def outcome_of(*given: Sample, seconds: float = 2.0, busy: float = 0.5):
    """Return the outcome of a load that began at 100.

    The wall clock showed 1,000 then.
    """
    samples = samples_of(*given)
    return Outcome(('PUT',), samples, 100.0, 1000.0, seconds, busy)


def test_samples_come_out_as_they_went_in():
    outcome = outcome_of(REFUSED, sample(1.0, 201, 8))
    assert outcome.samples[0] == REFUSED
    assert outcome.samples[0].is_refused
    assert outcome.samples[1].number == 8


def test_an_upload_has_a_name_of_its_own_and_a_body():
    request = next(UPLOADS.requests(5, 1))
    assert request.method == b'PUT'
    assert request.target == b'/v1/AUTH_test/c/a%20b/0000000005'
    assert request.body_bytes == 2
    assert UPLOADS.name(request.number) == 'a b/0000000005'


@given(st.integers(1, 5))
def test_processes_share_the_requests(processes):
    numbers = []
    for index in range(processes):
        requests = UPLOADS.requests(index, processes)
        own = itertools.islice(requests, len(range(index, 20, processes)))
        numbers += [request.number for request in own]
    assert sorted(numbers) == [*range(20)]


def test_requests_that_are_answered_late_count_as_offered_only():
    summary = summarize(outcome_of(sample(101), sample(102.1)))
    assert (summary.offered, summary.admitted) == (2, 1)
    assert (summary.offered_rate, summary.admitted_rate) == (1, 0.5)


def test_refusals_are_no_errors():
    outcome = outcome_of(sample(101, 498), sample(101, 503), sample(101, LOST))
    summary = summarize(outcome)
    assert summary.refused == 1
    assert summary.errors == {'503': 1, 'connection lost': 1}
    assert errors_text(summary.errors) == '1 × 503, 1 × connection lost'
    assert errors_text({}) == '0'


def test_the_series_counts_admitted_requests():
    given = sample(100.5), sample(100.6, 498), sample(101.5), sample(101.9)
    assert summarize(outcome_of(*given)).admitted_each_second == [1, 2]


def test_latency_is_that_of_admitted_requests():
    found = summarize(outcome_of(sample(100.5), sample(101, 498))).latency
    assert found.mean_ms == pytest.approx(500)


def test_the_first_request_of_each_client_has_no_latency():
    first = [sample(100.2)._replace(start=100), sample(100.4)]
    outcome = replace(outcome_of(*first, sample(101)), clients=2)
    found = summarize(outcome)
    assert found.admitted == sum(found.admitted_each_second) == 3
    assert found.histogram.total == 2
    assert found.latency.mean_ms == pytest.approx(500)
    assert found.phases['total'].mean_ms == pytest.approx(500)
    whole = summarize(replace(outcome, is_exhausted=True))
    assert whole.histogram.total == whole.admitted == 3
    assert whole.latency.mean_ms == pytest.approx(400)


def test_clients_at_their_limit_are_recognized():
    assert not outcome_of(busy=0.8).is_client_bound
    assert outcome_of(busy=0.95).is_client_bound


def one_after_the_other(first: float, took: float) -> list[Sample]:
    """Return what one client does from 100 until before 102."""
    starts = [100.0]
    while starts[-1] < 102:
        starts.append(starts[-1] + (took if starts[1:] else first))
    return [
        sample(end)._replace(start=start)
        for start, end in itertools.pairwise(starts)
    ]


@given(st.floats(0.05, 3), st.integers(1, 4))
def test_a_rate_is_the_same_wherever_its_time_cuts_operations(took, clients):
    given = one_after_the_other(took, took) * clients
    found = summarize(replace(outcome_of(*given), clients=clients))
    assert found.done_rate == pytest.approx(clients / took)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.5))
def test_a_rate_counts_requests_after_the_first_answers(first, took):
    found = summarize(outcome_of(*one_after_the_other(first, took)))
    assert found.steady_seconds == pytest.approx(2 - first)
    assert found.done_rate == pytest.approx(1 / took)


def test_an_operation_of_no_time_is_done_whole_or_not_at_all():
    inside, outside = (
        sample(when)._replace(start=when) for when in (101.0, 102.0)
    )
    outcome = outcome_of(sample(100.5), inside, outside)
    assert [*outcome.steady_shares[1:]] == [1, 0]


def test_a_time_of_the_load_has_a_wall_clock_time():
    assert outcome_of().wall_time(101.5) == 1001.5


def test_the_phases_of_an_operation_add_up():
    found = summarize(outcome_of(sample(101))).phases
    assert [found[name].mean_ms for name in PHASES] == [125, 125, 250, 500]


def test_a_request_that_is_answered_too_early_has_a_total_only():
    early = sample(101)._replace(sent=math.nan)
    found = summarize(outcome_of(early)).phases
    assert (found['request'].mean_ms, found['total'].mean_ms) == (None, 500)


def test_bytes_are_those_of_admitted_requests():
    summary = summarize(outcome_of(sample(101), sample(101, 498)))
    assert (summary.bytes_sent, summary.bytes_received) == (2, 7)


def test_latency_is_grouped_by_the_second_of_the_end():
    found = summarize(outcome_of(sample(101.5), sample(101.6, 503)))
    assert found.latency_each_second == [None, 500]


def test_several_kinds_of_operations_are_summed_up_apart():
    given = sample(101), sample(101)._replace(kind=1), sample(101, 503)
    outcome = replace(outcome_of(*given), kinds=('PUT', 'GET', 'HEAD'))
    found = summarize(outcome).by_operation
    assert [*found] == ['PUT', 'GET']
    assert (found['PUT']['offered'], found['PUT']['admitted']) == (2, 1)
    assert found['PUT']['errors'] == {'503': 1}
    assert found['GET']['latency']['mean_ms'] == 500
    assert summarize(outcome_of(*given)).by_operation == {}


statuses = st.sampled_from([201, 204, 498, 503, LOST, TIMED_OUT])
operations = st.builds(sample, st.floats(100.5, 103), statuses)


@given(st.lists(st.tuples(operations, st.sampled_from([0, 1]))))
def test_a_summary_is_that_of_the_operations_one_by_one(given):
    samples = [each._replace(kind=kind) for each, kind in given]
    outcome = replace(outcome_of(*samples), kinds=('PUT', 'GET'))
    found = summarize(outcome)
    ended = [each for each in samples if each.end < 102]
    admitted = [each for each in ended if each.is_admitted]
    timed = [each for each in admitted if each.end >= outcome.timed_from]
    took = [each.end - each.start for each in timed]
    assert found.latency == figures.latency(took)
    assert found.histogram == figures.histogram(took)
    assert found.phases['total'] == figures.spread(took)
    assert found.refused == sum(each.is_refused for each in ended)
    assert sum(found.errors.values()) == sum(
        not (each.is_admitted or each.is_refused) for each in samples
    )
    for count in ('offered', 'admitted', 'refused'):
        each_kind = found.by_operation.values()
        assert getattr(found, count) == sum(one[count] for one in each_kind)


@given(st.lists(operations))
def test_a_summary_comes_back_from_json(given):
    outcome = replace(outcome_of(*given), kinds=('PUT', 'GET'))
    found = summarize(outcome)
    kept = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert Summary.from_json(kept) == found


@pytest.mark.parametrize('given', [(), (sample(101),)])
def test_a_summary_can_be_kept_as_json(given):
    kept = summarize(outcome_of(*given)).as_json()
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
