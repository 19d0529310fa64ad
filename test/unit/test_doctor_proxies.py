# SPDX-License-Identifier: Apache-2.0
"""shardmw-admin doctor: what it concludes from /info, and how it asks."""

import http.server
import threading

import pytest

from shardmw.admin.doctor.asking import (
    NoAnswerError,
    ask_all,
    exchange,
    url_of,
)
from shardmw.admin.doctor.proxies import (
    Agreement,
    Machine,
    Proxy,
    about_proxies,
    agreement_of,
    clock_difference,
)
from shardmw.reshard.errors import AdminError

MACHINE = Machine('1.0', '/etc/swift/swift.conf', 'hash')
DIGESTS = {'hash_path': 'hash', 'options': 'opts', 'memcache': 'servers'}


def proxy(name: str, digests: dict | None = DIGESTS, **info) -> Proxy:
    info = {'version': '1.0', 'max_shards': 8, **info}
    if digests is not None:
        info['digests'] = {**DIGESTS, **digests}
    return Proxy(f'http://{name}', info)


def findings(*proxies: Proxy, machine: Machine = MACHINE) -> dict[str, str]:
    """Return the problems by the place, which has at most one."""
    agreed = agreement_of(proxies, machine)
    found = [*about_proxies(proxies, agreed, machine)]
    problems = {each.where: each.problem for each in found}
    assert len(problems) == len(found)
    assert all(each.remedy for each in found)
    return problems


class TestComparison:
    def test_of_proxies_that_are_alike_finds_nothing(self):
        assert findings(*map(proxy, 'abc')) == {}
        assert findings() == {}

    def test_takes_for_right_what_most_have(self):
        odd = proxy('a', {'memcache': 'other'})
        assert [*findings(odd, proxy('b'), proxy('c'))] == ['http://a']
        odd = proxy('a', max_shards=4)
        assert findings(odd, proxy('b'), proxy('c')) == {
            'http://a': 'its options are not those of http://b: max_shards = '
            '4 instead of 8'
        }

    def test_takes_the_first_of_two_for_right(self):
        odd = proxy('b', {'memcache': 'other'})
        assert [*findings(proxy('a'), odd)] == ['http://b']

    def test_names_options_that_info_does_not_show(self):
        odd = proxy('c', {'options': 'other'})
        problem = findings(proxy('a'), proxy('b'), odd)['http://c']
        assert problem.endswith(
            'ratelimit_proxies or shard_rules or stats_cache_seconds differs'
        )

    def test_does_not_compare_digests_of_another_hash_path(self):
        odd = proxy('c', dict.fromkeys(DIGESTS, 'other'))
        problem = findings(proxy('a'), proxy('b'), odd)['http://c']
        assert problem.startswith('it has another hash path in swift.conf')

    def test_takes_the_hash_path_of_this_machine_for_right_if_in_doubt(self):
        odd = proxy('a', dict.fromkeys(DIGESTS, 'other'))
        assert [*findings(odd)] == ['http://a']

    def test_finds_that_this_machine_has_another_hash_path(self):
        machine = MACHINE._replace(hash_path='other')
        found = findings(proxy('a'), proxy('b'), machine=machine)
        assert [*found] == ['/etc/swift/swift.conf']
        agreed = agreement_of([proxy('a'), proxy('b')], machine)
        assert not agreed.comparable

    def test_finds_that_this_machine_has_another_version(self):
        machine = MACHINE._replace(version='2.0')
        assert findings(proxy('a'), machine=machine) == {
            'this machine': 'shardmw 2.0, most proxies have 1.0'
        }

    def test_tells_what_it_cannot_check(self):
        found = findings(
            proxy('a'),
            proxy('b', digests=None),
            proxy('c', {'memcache': None}),
            Proxy('http://d', problem='it does not answer: refused'),
        )
        assert found == {
            'http://b': 'not checked: /info shows no digests of shardmw',
            'http://c': "not checked: its cache filter is not Swift's",
            'http://d': 'not checked: it does not answer: refused',
        }

    def test_finds_a_proxy_without_the_filter(self):
        found = findings(proxy('a'), Proxy('http://b'))
        assert found == {'http://b': '/info shows no shardmw'}

    def test_learns_nothing_from_proxies_without_the_filter(self):
        agreed = agreement_of([Proxy('http://a')], MACHINE)
        assert agreed == Agreement(None, 'hash', None, None, True)
        assert (agreed.options, agreed.options_digest) == ({}, None)

    def test_finds_a_clock_that_is_off(self):
        late = Proxy('http://a', proxy('a').info, clock_seconds=-3.4)
        early = Proxy('http://b', proxy('b').info, clock_seconds=9)
        right = Proxy('http://c', proxy('c').info, clock_seconds=2)
        assert findings(late, early, right) == {
            'http://a': 'its clock is at least 3 s behind that of this '
            'machine',
            'http://b': 'its clock is at least 9 s ahead of that of this '
            'machine',
        }


@pytest.mark.parametrize(
    ('date', 'seconds'),
    [(100, 0), (101, 0), (105, 2), (109, 6), (99, -0.5), (90, -9.5)],
)
def test_a_clock_that_shows_whole_seconds_may_be_right(date, seconds):
    assert clock_difference(date, 100.5, 103) == seconds


class TestAddress:
    @pytest.mark.parametrize(
        ('address', 'url'),
        [
            ('10.0.0.7:8080', 'http://10.0.0.7:8080'),
            ('[::1]:8080', 'http://[::1]:8080'),
            ('https://proxy-7/', 'https://proxy-7'),
        ],
    )
    def test_becomes_a_url(self, address, url):
        assert url_of(address) == url

    @pytest.mark.parametrize(
        'address',
        ['', 'proxy', 'proxy:many', 'ftp://p', 'http://p/v1', 'http://p?q'],
    )
    def test_that_is_none_is_refused(self, address):
        with pytest.raises(AdminError, match='not the address of a proxy'):
            url_of(address)


class Server(http.server.BaseHTTPRequestHandler):
    """Answers with the status and the body that the path names."""

    def do_GET(self) -> None:  # noqa: N802 (http.server's name)
        status, body = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def server():
    """A server; its attribute ``answer`` is a status and a body."""
    with http.server.HTTPServer(('127.0.0.1', 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        server.url = f'http://127.0.0.1:{server.server_port}'
        yield server
        server.shutdown()
        thread.join()


class TestAsking:
    def test_reads_the_section_of_the_filter(self, server):
        server.answer = 200, b'{"shardmw": {"version": "1.0"}}'
        (found,) = ask_all([server.url], 9)
        assert found == Proxy(server.url, {'version': '1.0'})
        server.answer = 200, b'{"swift": {}}'
        (found,) = ask_all([server.url], 9)
        assert (found.answers, found.info) == (True, None)

    @pytest.mark.parametrize(
        ('answer', 'problem'),
        [
            ((403, b''), 'GET /info answered 403: expose_info must be true'),
            ((200, b'<html>'), 'GET /info is not that of a Swift'),
            ((200, b'[]'), 'GET /info is not that of a Swift'),
        ],
    )
    def test_tells_why_info_cannot_be_read(self, server, answer, problem):
        server.answer = answer
        (found,) = ask_all([server.url], 9)
        assert found.problem.startswith(problem)

    def test_keeps_the_order_and_goes_on_after_a_failure(self, server):
        server.answer = 200, b'{}'
        urls = ['http://127.0.0.1:1', server.url]
        first, second = ask_all(urls, 9)
        assert [first.url, second.url] == urls
        assert first.problem.startswith('it does not answer: ')
        assert second.answers

    def test_raises_an_error_that_says_why(self):
        with pytest.raises(NoAnswerError, match='it does not answer: .+'):
            exchange('http://127.0.0.1:1', 'GET', '/', 1)
