# SPDX-License-Identifier: Apache-2.0
import itertools
import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.bench.load import Load, Outcome, Share, Usage
from shardmw.bench.samples import LOST, Sample, Samples
from shardmw.bench.sources import Uploads
from shardmw.bench.summary import errors_text, summarize

UPLOADS = Uploads('/v1/AUTH_test/c', 2, prefix='a b/')
REFUSED = Sample(0, 7, 1.0, 1.2, 1.5, 2.0, 498, 1.5, 9, 3)


def sample(end: float, status: int = 201, number: int = 0) -> Sample:
    begun = end - 0.5
    times = begun, begun + 0.125, begun + 0.25, end
    return Sample(0, number, *times, status, math.nan, 7, 2)


def outcome_of(*given: Sample, seconds: float = 2.0, busy: float = 0.5):
    """What came of a load that began at 100, and at 1,000 on the wall."""
    samples = Samples()
    for each in given:
        samples.append(*each)
    usage = Usage(busy * seconds, 0.0, seconds)
    return Outcome(('PUT',), samples, 100.0, 1000.0, seconds, (usage,))


def test_samples_come_out_as_they_went_in():
    samples = Samples()
    samples.append(*REFUSED)
    assert [*samples] == [REFUSED]
    assert [*samples][0].is_refused


def test_samples_survive_a_pipe_and_add_up():
    samples = Samples()
    samples.append(*sample(1.0))
    samples.extend(pickle.loads(pickle.dumps(samples)))
    assert len(samples) == 2


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
        own = itertools.islice(requests, len(Share(index, processes).of(20)))
        numbers += [request.number for request in own]
    assert sorted(numbers) == [*range(20)]


def test_a_load_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="unknown policy 'cry'"):
        Load(('http://a',), 't', UPLOADS, clients=1, on_refusal='cry')


def test_what_is_admitted_late_was_offered_only():
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


def test_the_series_is_of_what_was_admitted():
    given = sample(100.5), sample(100.6, 498), sample(101.5), sample(101.9)
    assert summarize(outcome_of(*given)).admitted_each_second == [1, 2]


def test_latency_is_that_of_what_was_admitted():
    found = summarize(outcome_of(sample(100.5), sample(101, 498))).latency
    assert found.mean_ms == pytest.approx(500)


def test_clients_at_their_limit_are_told():
    assert not outcome_of(busy=0.8).is_client_bound
    assert outcome_of(busy=0.95).is_client_bound


def test_the_wall_clock_goes_along():
    assert outcome_of().wall_time(101.5) == 1001.5


@pytest.mark.parametrize('given', [(), (sample(101),)])
def test_a_summary_can_be_kept_as_json(given):
    kept = summarize(outcome_of(*given)).as_json()
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
