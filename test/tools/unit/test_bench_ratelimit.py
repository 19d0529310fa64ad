# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.errors import BenchError
from shardmw_bench.load.sources import Uploads
from shardmw_bench.names import one_name_each
from shardmw_bench.ratelimit.experiments import (
    admission_times,
    bound_by,
    count_log_lines,
    most_by_window,
    rate_since_first,
    trickling_clients,
)
from shardmw_bench.ratelimit.limits import (
    SHARDMW,
    STOCK,
    LimitExperiment,
    is_machine_bound,
    limit_settings,
)
from shardmw_bench.results.folder import Result, load, make, save
from shardmw_bench.results.provenance import Provenance, provenance
from shardmw_bench.targets.usage import counted
from shardmw_saio import ClusterOptions
from shardmw_saio.config import check_settings

from shardmw.core.placement import shard_of
from test.tools.unit.test_bench_load import outcome_of, sample

ORIGIN = Provenance(
    *('2026-11-21', '0.1.0', 'abc1234', '2.38.3', '3.11.7', '1.6.18'),
    *(2, 'x86_64', 24, 0.1),
)

ANSWER = (
    'STAT cmd_get 10\r\nSTAT cmd_set 4\r\nSTAT cmd_touch 0\r\n'
    'STAT incr_hits 5\r\nSTAT incr_misses 2\r\nSTAT decr_hits 1\r\n'
    'STAT decr_misses 0\r\nSTAT delete_hits 0\r\nSTAT delete_misses 3\r\n'
    'STAT version 1.6.18\r\nEND\r\n'
)

LOG = """\
2026-11-21T07:00:00.000Z 1 INFO 127.0.0.1 PUT /v1/a/memcached/o HTTP/1.0 201
2026-11-21T07:00:00.000Z 1 ERROR Timeout connecting to memcached: 127.0.0.1
2026-11-21T07:00:00.000Z 1 ERROR Error limiting server 127.0.0.1
2026-11-21T07:00:00.000Z 1 ERROR shardmw: 498 for PUT /v1/a/c/o: would wait 2 s
2026-11-21T07:00:00.000Z 1 WARNING shardmw: memcached is away
"""


# Settings


def test_every_setting_is_one_that_clusters_know():
    settings = LimitExperiment(settings={'DEFAULT.a': '1'}).cluster_settings
    check_settings(ClusterOptions(settings=settings))
    assert settings['shardmw.ratelimit_proxies'] == '2'
    assert settings['ratelimit.rate_buffer_seconds'] == '5'
    assert settings['DEFAULT.a'] == '1'


def test_a_limit_takes_the_place_of_any_other():
    assert limit_settings(SHARDMW, 20.0) == {
        'shardmw.container_ratelimit_0': '20',
        'shardmw.use': None,
        'shardmw-listings.use': None,
        'ratelimit.container_ratelimit_0': None,
    }
    assert set(limit_settings(None, None).values()) == {None}


def test_shardmw_is_replaced_while_swifts_filter_limits_containers():
    settings = limit_settings(STOCK, 20.0)
    assert settings['ratelimit.container_ratelimit_0'] == '20'
    assert settings['shardmw.container_ratelimit_0'] is None
    assert settings['shardmw.use'] == settings['shardmw-listings.use']
    assert settings['shardmw.use'].startswith('egg:swift#')


def test_a_limit_may_begin_at_a_size():
    settings = limit_settings(SHARDMW, 0.5, least_size=100)
    assert settings['shardmw.container_ratelimit_100'] == '0.5'
    assert settings['shardmw.container_ratelimit_0'] is None


def test_parameters_survive_json():
    given = LimitExperiment(rates=(1.0, 2.0), settings={'shardmw.a': 'b'})
    kept = json.loads(json.dumps(given.as_json()))
    assert LimitExperiment.from_json(kept) == given


# Figures


def test_a_limit_near_the_rate_of_the_machine_is_no_bound():
    assert is_machine_bound(100, 105)
    assert not is_machine_bound(100, 120)


@pytest.mark.parametrize(
    ('changes', 'bound'),
    [
        ({}, 'limit'),
        ({'shards': None}, 'limit'),
        ({'shards': 32}, 'machine'),
        ({'rate': None}, 'machine'),
        ({'is_client_bound': True}, 'clients'),
    ],
)
def test_the_bound_of_a_rate_is_named(changes, bound):
    row = {
        'rate': 20,
        'shards': 8,
        'unlimited_rate': 200,
        'is_client_bound': False,
    }
    assert bound_by({**row, **changes}) == bound


def test_listed_times_replace_those_of_answers():
    uploads = Uploads('/v1/a/c', 1)
    outcome = outcome_of(
        sample(101, number=1), sample(101, number=2), sample(101, 498, 3)
    )
    times = admission_times(outcome, uploads, {'o0000000002': 1000.5})
    assert times == {'o0000000001': 1001.0, 'o0000000002': 1000.5}


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 20)))
def test_the_most_of_one_shard_is_the_most_of_all(times):
    (most,) = most_by_window(times, 1, [100]).values()
    assert most == len(times)
    (most,) = most_by_window(times, 4, [100]).values()
    assert len(times) / 4 <= most <= len(times)


def test_the_most_is_given_by_window():
    times = {'a': 0.0, 'b': 0.5, 'c': 5.0}
    assert most_by_window(times, 1) == {'1': 2, '10': 3}
    assert most_by_window({}, 8) == {'1': 0, '10': 0}


def test_the_rate_is_that_since_the_first_write():
    times = {'a': 10.0, 'b': 11.0, 'c': 12.0, 'd': 13.0}
    assert rate_since_first(times, 12.0) == 1
    assert rate_since_first(times, 10.0) == 0
    assert rate_since_first({}, 10.0) == 0


@pytest.mark.parametrize('shards', [1, 8, 32])
def test_each_shard_gets_a_first_object(shards):
    names = one_name_each(shards, 'first')
    assert [shard_of(name, shards) for name in names] == [*range(shards)]


def test_a_trickle_is_half_a_limit():
    assert trickling_clients(20, None) == 10
    assert trickling_clients(20, 8) == 80
    assert trickling_clients(0.5, 1) == 1


def test_log_lines_are_counted_by_kind():
    assert count_log_lines(LOG) == (1, 1, 1)


def test_operations_are_summed_up_by_kind():
    kinds = 'get', 'set', 'incr', 'decr', 'delete', 'touch'
    found = counted(ANSWER)
    assert [found[kind] for kind in kinds] == [10, 4, 7, 1, 3, 0]


# Results


def test_a_result_survives_its_folder(tmp_path):
    result = Result('ratelimit', 'seed', ORIGIN, {'a': 1}, {'rows': []})
    save(tmp_path / 'new', result)
    found = load(tmp_path / 'new', 'ratelimit', ('rates', 'seed'))
    assert found == [result]
    assert [each.name for each in (tmp_path / 'new').iterdir()] == [
        'ratelimit-seed.json'
    ]


def test_a_result_has_figures_that_are_numbers(tmp_path):
    save(tmp_path, Result('ratelimit', 'seed', ORIGIN, {}, {'rate': 1.5}))
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text().replace('1.5', 'NaN'))
    with pytest.raises(BenchError, match='NaN is no figure'):
        load(tmp_path, 'ratelimit', ('seed',))


@pytest.mark.parametrize('text', ['', '{}', '{"format": 99}', '[]'])
def test_a_result_that_cannot_be_read_is_named(tmp_path, text):
    path: Path = tmp_path / 'ratelimit-seed.json'
    path.write_text(text)
    with pytest.raises(BenchError, match='is no result of this version'):
        load(tmp_path, 'ratelimit', ('seed',))


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / 'file').write_text('')
    result = Result('ratelimit', 'seed', ORIGIN, {}, {})
    with pytest.raises(BenchError, match='cannot be made'):
        make(tmp_path / 'file' / 'folder')
    with pytest.raises(BenchError, match='cannot be written'):
        save(tmp_path / 'file' / 'folder', result)


def test_a_provenance_names_versions_and_machine():
    assert ORIGIN.sentence() == (
        'Measured on 2026-11-21 with shardmw 0.1.0 (abc1234), Swift 2.38.3, '
        'Python 3.11.7 and memcached 1.6.18, on a machine with 2 cores '
        '(x86_64), 24 GiB, whose load average was 0.1 when it began.'
    )


def test_this_provenance_survives_json():
    here = provenance()
    assert Provenance(**json.loads(json.dumps(vars(here)))) == here
