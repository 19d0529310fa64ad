# SPDX-License-Identifier: Apache-2.0
"""shardmw-admin doctor: the probe deletes what it has created, and ends."""

import re
from email.message import Message
from types import SimpleNamespace

import pytest

from shardmw.admin.doctor import probe as module
from shardmw.admin.doctor.asking import NoAnswerError, Reply
from shardmw.admin.doctor.probe import Probe
from shardmw.backend.containers import BackendError
from shardmw.core.paths import Place
from shardmw.reshard.cluster import Replica
from shardmw.reshard.errors import AdminError

STORAGE_URL = 'https://swift.example.com/v1/AUTH_a'
SHARD = Place('.shards', 'shard')
STATUSES = {'PUT': 201, 'GET': 200, 'DELETE': 204}


class Proxies:
    """Proxies and container servers with one container.

    :ivar requests: the URL, method and path of each request
    :ivar failing: what a request of this URL and method gets: a status, or an
                   error to raise
    :ivar rows: the containers in which a row is
    :ivar target: where rows go
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str]] = []
        self.failing: dict[tuple[str, str], object] = {}
        self.rows: set[Place] = set()
        self.target = SHARD
        self.has_it: bool | None = True

    def exchange(self, url, method, path, _timeout, headers, body) -> Reply:
        assert headers['X-Auth-Token'] == 'token'
        self.requests.append((url, method, path))
        failure = self.failing.get((url, method), 0)
        if isinstance(failure, Exception):
            raise failure
        is_object = path.count('/') > 3
        if is_object and method == 'PUT':
            self.rows = {self.target}
        elif is_object and method == 'DELETE' and not failure:
            self.rows = set()
        name = re.search('prefix=(.*)$', path)
        listing = f'[{{"name": "{name[1]}"}}]'.encode() if name else None
        return Reply(
            failure or STATUSES[method], Message(), listing or module.BODY
        )

    # The parts of a SwiftCluster that the probe uses.

    def root(self, _path):
        return None

    def logical(self, _path, _root):
        return SimpleNamespace(place_of=lambda name: SHARD)

    def row_replicas(self, place, _name):
        has_it = self.has_it and place in self.rows
        return 1, [Replica('server', 'sdb1', has_it)]


@pytest.fixture
def proxies(monkeypatch) -> Proxies:
    proxies = Proxies()
    monkeypatch.setattr(module, 'exchange', proxies.exchange)
    for name in ('ROW_SECONDS', 'CLEAN_SECONDS', 'CLEAN_POLL_SECONDS'):
        monkeypatch.setattr(module, name, 0)
    return proxies


@pytest.fixture
def probe(proxies) -> Probe:
    return Probe(proxies, STORAGE_URL, 'token', 9)


def run(probe: Probe) -> list[str]:
    return [str(each) for each in probe.run(['a', 'b'], ['a', 'b'], 2)]


def is_clean(proxies: Proxies, probe: Probe) -> bool:
    """Return True if the container was deleted last."""
    path = f'/v1/AUTH_a/{probe.path.container}'
    return proxies.requests[-1][1:] == ('DELETE', path)


def test_goes_through_each_proxy_and_finds_nothing(proxies, probe):
    assert run(probe) == []
    of_b = [method for url, method, _ in proxies.requests if url == 'b']
    assert of_b == ['PUT', 'GET', 'GET', 'DELETE']
    assert is_clean(proxies, probe)


def test_uses_a_container_of_its_own(proxies):
    first, second = (Probe(proxies, STORAGE_URL, 't', 9) for _ in range(2))
    assert first.path.container.startswith('shardmw-doctor-')
    assert first.path != second.path


@pytest.mark.parametrize(
    ('failure', 'problem'),
    [
        (503, 'b: PUT /v1/AUTH_a/'),
        (401, 'b: not checked: PUT /v1/AUTH_a/'),
        (NoAnswerError('it does not answer: late'), 'b: PUT /v1/AUTH_a/'),
    ],
)
def test_goes_on_after_a_proxy_that_fails(proxies, probe, failure, problem):
    proxies.failing['b', 'PUT'] = failure
    found = [str(each) for each in probe.run('ba', 'a', 2)]
    assert len(found) == 1
    assert found[0].startswith(problem)
    assert ('a', 'GET') in [each[:2] for each in proxies.requests]
    assert is_clean(proxies, probe)


def test_finds_a_row_in_the_root(proxies, probe):
    proxies.target = probe.path.place
    for line, url in zip(run(probe), 'ab', strict=True):
        assert line.startswith(f'{url}: the row of its object went to the r')
    assert is_clean(proxies, probe)


def test_finds_a_row_that_stays_after_the_deletion(
    proxies, probe, monkeypatch
):
    exchange = proxies.exchange

    def without_deletions(url, method, path, *args) -> Reply:
        rows = proxies.rows
        reply = exchange(url, method, path, *args)
        if method == 'DELETE':
            proxies.rows = rows
        return reply

    monkeypatch.setattr(module, 'exchange', without_deletions)
    assert 'the row of its deleted object is still in .sh' in run(probe)[0]


def test_a_replica_may_be_late(proxies, probe):
    """A replica knows of no object, and another of no deletion."""

    def row_replicas(place, _name):
        if place != SHARD:
            return 1, [Replica('server', 'sdb1', False)]
        has_it = (True, False, None)
        return 1, [Replica('server', 'sdb1', each) for each in has_it]

    proxies.row_replicas = row_replicas
    assert run(probe) == []


def test_finds_a_row_that_does_not_arrive(proxies, probe):
    proxies.target = Place('.shards', 'elsewhere')
    assert 'is not in .shards/shard, nor in the root' in run(probe)[0]


def test_tells_that_container_servers_do_not_answer(proxies, probe):
    proxies.has_it = None
    for line in run(probe):
        assert ': not checked: no replica of ' in line
    assert is_clean(proxies, probe)


def test_finds_a_container_that_is_not_sharded(proxies, probe):
    proxies.logical = lambda path, root: None
    (line,) = run(probe)
    assert line.startswith('a: it creates a plain container if asked for 2 s')
    assert is_clean(proxies, probe)


def test_tells_that_the_container_cannot_be_read(proxies, probe):
    def root(_path):
        raise BackendError(None, 503)

    proxies.root = root
    (line,) = run(probe)
    assert line.startswith('a: not checked: the container that it has created')
    assert is_clean(proxies, probe)


def test_deletes_nothing_that_it_was_not_allowed_to_create(proxies, probe):
    proxies.failing['a', 'PUT'] = 400
    (line,) = run(probe)
    assert 'answered 400 (shardmw-admin doctor): look at the log' in line
    assert [method for _, method, _ in proxies.requests] == ['PUT']


def test_deletes_what_it_may_have_created(proxies, probe):
    proxies.failing['a', 'PUT'] = NoAnswerError('it does not answer: late')
    (line,) = run(probe)
    assert line.startswith('a: PUT /v1/AUTH_a/shardmw-doctor-')
    assert is_clean(proxies, probe)


def test_deletes_the_container_after_an_unexpected_error(proxies, probe):
    proxies.failing['b', 'PUT'] = RuntimeError('unexpected')
    with pytest.raises(RuntimeError):
        run(probe)
    assert is_clean(proxies, probe)


def test_deletes_the_container_through_another_proxy(
    proxies, probe, monkeypatch
):
    monkeypatch.setattr(module, 'CLEAN_SECONDS', 9)
    proxies.failing['a', 'DELETE'] = 503
    (line,) = run(probe)
    assert line.startswith('a: DELETE /v1/AUTH_a/')
    assert proxies.requests[-1][0] == 'b'
    assert is_clean(proxies, probe)


def test_names_a_container_that_cannot_be_deleted(proxies, probe):
    proxies.failing['a', 'DELETE'] = proxies.failing['b', 'DELETE'] = 503
    *_, line = run(probe)
    container = probe.path.container
    assert line.startswith(f'AUTH_a/{container}: the container of the probe')
    assert line.endswith(f': swift delete {container}')


@pytest.mark.parametrize('path', ['', '/', '/v1', '/v1/AUTH_a/c'])
def test_needs_the_url_of_an_account(proxies, path):
    url = f'http://swift.example.com{path}'
    with pytest.raises(AdminError, match='not the URL of an account'):
        Probe(proxies, url, 'token', 9)
