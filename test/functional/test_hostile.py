# SPDX-License-Identifier: Apache-2.0
"""Hostile requests: those that once failed, and some random ones.

``python -m test.hostile`` plays any number of random ones.
"""

import itertools
from pathlib import Path

import pytest
from shardmw_saio import Cluster, ClusterOptions

from test import hostile
from test.hostile.making import Hostile, Maker
from test.hostile.playing import SETTINGS, Player, failures_in_logs

CORPUS = Path(hostile.__file__).parent / 'corpus.jsonl'
SEED, REQUESTS = 1, 200


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    options = ClusterOptions(settings=SETTINGS)
    with Cluster(tmp_path_factory.mktemp('hostile'), options) as cluster:
        yield cluster


def check(cluster: Cluster, requests) -> None:
    """Play requests; fail if a sharded container answers differently."""
    player = Player(cluster)
    while requests:
        difference = player.play(requests)
        assert difference is None, str(difference)
        requests = requests[player.played :]
    errors = failures_in_logs(cluster.path / 'log', player.transactions)
    assert not errors, '\n'.join(errors)


def test_requests_that_once_failed_are_answered_alike(cluster):
    lines = CORPUS.read_text().splitlines()
    check(cluster, [Hostile.of(line) for line in lines])


def test_random_requests_are_answered_alike(cluster):
    requests = iter(Maker(SEED).request, None)
    check(cluster, list(itertools.islice(requests, REQUESTS)))
