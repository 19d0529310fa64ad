# SPDX-License-Identifier: Apache-2.0
"""What decides if Swift's tests pass, and the report about it."""

import configparser
import contextlib
import dataclasses
import http.client
import os
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.placement import (
    backing_container,
    hidden_account,
    versions_container,
)
from test.conformance import jobs, report, settings, storage, suites
from test.conformance.balancer import balancing
from test.conformance.census import Census, take_census
from test.conformance.databases import ContainerName
from test.conformance.errors import ConformanceError
from test.conformance.framing import body_length, chunk_length
from test.conformance.jobs import RunResult
from test.conformance.outcomes import Outcome, Status, compare, parse_junit
from test.conformance.provenance import Provenance, provenance
from test.conformance.pytests import progress_in
from test.conformance.results import Results
from test.conformance.shares import are_fair, count_requests
from test.conformance.store import Store
from test.conformance.variants import VARIANTS, plain_twin
from test.conformance.verdict import judge

PASSED = Outcome(Status.PASSED)
FAILED = Outcome(Status.FAILED, 'AssertionError: 404 != 200')
SKIPPED = Outcome(Status.SKIPPED, 'no reason')

CASES = {
    Status.PASSED: '',
    Status.FAILED: '<failure message="m">a\nb</failure>',
    Status.SKIPPED: '<skipped message="not today">at t.py:1</skipped>',
}


def junit(outcomes) -> str:
    """Return a report of tests named a.b, where a is a class."""
    cases = []
    for name, status in outcomes:
        class_name, _, test = name.rpartition('.')
        cases.append(
            f'<testcase classname={quoteattr(class_name)} '
            f'name={quoteattr(test)}>{CASES[status]}</testcase>'
        )
    return f'<testsuites><testsuite>{"".join(cases)}</testsuite></testsuites>'


test_names = st.from_regex(
    r'[a-z]+\.Test[A-Z]\.test[&<">a-z]*', fullmatch=True
)
statuses = st.sampled_from(Status)
outcomes_by_test = st.dictionaries(test_names, statuses.map(Outcome))


# Reports


def test_a_report_has_the_outcome_of_each_test():
    text = junit(zip(['c.p', 'c.s', 'c.f'], Status, strict=True))
    assert parse_junit(text) == {
        'c.p': Outcome(Status.PASSED),
        'c.s': Outcome(Status.SKIPPED, 'not today'),
        'c.f': Outcome(Status.FAILED, 'a\nb'),
    }


def test_an_error_is_a_failure():
    text = (
        '<testsuite><testcase name="t"><error>e</error></testcase></testsuite>'
    )
    assert parse_junit(text) == {'.t': Outcome(Status.FAILED, 'e')}


def test_the_end_of_a_long_failure_is_kept():
    lines = '\n'.join(map(str, range(1000)))
    text = f'<a><testcase name="t"><failure>{lines}</failure></testcase></a>'
    why = parse_junit(text)['.t'].why
    assert why.endswith('\n998\n999')
    assert len(why) < 100


@given(st.lists(st.tuples(test_names, statuses)))
def test_the_worst_report_of_a_test_counts(reported):
    found = parse_junit(junit(reported))
    assert {name: outcome.status for name, outcome in found.items()} == {
        name: max(status for other, status in reported if other == name)
        for name, _ in reported
    }


@pytest.mark.parametrize('text', ['', '<testsuite>', 'Killed'])
def test_text_that_is_no_report_is_refused(text):
    with pytest.raises(ValueError, match='no JUnit report'):
        parse_junit(text)


# Comparisons


@given(outcomes_by_test, outcomes_by_test)
def test_a_test_is_in_exactly_one_field(plain, sharded):
    comparison = compare(plain, sharded)
    places = dataclasses.astuple(comparison)
    found = sorted(name for place in places for name in place)
    assert found == sorted({*plain, *sharded})


@given(outcomes_by_test)
def test_a_test_that_does_not_differ_is_not_worse(outcomes):
    comparison = compare(outcomes, outcomes)
    assert not comparison.regressed
    assert not comparison.better


@pytest.mark.parametrize(
    ('plain', 'sharded', 'place'),
    [
        (PASSED, PASSED, 'passed'),
        (FAILED, FAILED, 'failed'),
        (SKIPPED, SKIPPED, 'skipped'),
        (PASSED, FAILED, 'regressed'),
        (PASSED, SKIPPED, 'regressed'),
        (SKIPPED, FAILED, 'regressed'),
        (FAILED, SKIPPED, 'regressed'),
        (FAILED, PASSED, 'better'),
        (SKIPPED, PASSED, 'better'),
        (PASSED, None, 'plain_only'),
        (None, PASSED, 'sharded_only'),
    ],
)
def test_a_test_is_in_the_field_of_its_difference(plain, sharded, place):
    comparison = compare(
        {'t': plain} if plain else {}, {'t': sharded} if sharded else {}
    )
    assert 't' in getattr(comparison, place)


def test_a_regression_says_why():
    assert compare({'t': PASSED}, {'t': FAILED}).regressed == {'t': FAILED}


# Containers


def name_set(*containers) -> set[ContainerName]:
    return {ContainerName('AUTH_a', each) for each in containers}


LAYOUT_ID = '65a1b2c3d4e5f'


def shards_of(container, count, layout_id=LAYOUT_ID) -> set[ContainerName]:
    return {
        ContainerName(
            hidden_account('AUTH_a'),
            backing_container(container, layout_id, shard),
        )
        for shard in range(count)
    }


@given(st.sets(st.text('abc', min_size=1)), st.integers(1, 9))
def test_containers_with_all_their_shards_are_sharded(containers, shards):
    names = name_set(*containers).union(
        *(shards_of(each, shards) for each in containers)
    )
    assert take_census(names, shards) == Census(
        logical=len(containers),
        sharded=len(containers),
        backing=len(containers) * shards,
        unsharded=(),
    )


@given(st.integers(1, 9), st.data())
def test_a_container_that_lacks_a_shard_is_not_sharded(shards, data):
    backing = shards_of('c', shards)
    lost = data.draw(st.sampled_from(sorted(backing)))
    census = take_census(name_set('c') | backing - {lost}, shards)
    assert census.sharded == 0
    assert census.unsharded == ('AUTH_a/c',)


def test_shards_of_two_layouts_do_not_add_up_to_one():
    first = shards_of('c', 1)
    second = shards_of('c', 2, '65a1b2c3d4e60') - shards_of(
        'c', 1, '65a1b2c3d4e60'
    )
    assert take_census(name_set('c') | first | second, 2).sharded == 0


def test_shards_in_another_account_do_not_count():
    others = {ContainerName('AUTH_b', 'c')}
    assert take_census(others | shards_of('c', 2), 2).sharded == 0


def test_long_names_are_sharded_too():
    container = 'c' * 256
    census = take_census(name_set(container) | shards_of(container, 2), 2)
    assert (census.logical, census.sharded, census.backing) == (1, 1, 2)


def test_containers_of_versions_count_like_others():
    hidden = versions_container('c')
    assert take_census(name_set(hidden), 2).unsharded
    census = take_census(name_set(hidden) | shards_of(hidden, 2), 2)
    assert (census.logical, census.sharded) == (1, 1)


def test_containers_of_swift_itself_do_not_count():
    queue = {ContainerName('.expiring_objects', '1795233600')}
    assert take_census(queue, 2) == Census(0, 0, 0, ())


# Verdicts


SHARDED_CENSUS = Census(logical=1, sharded=1, backing=4, unsharded=())
PLAIN_CENSUS = Census(logical=1, sharded=0, backing=0, unsharded=())
SHARED_REQUESTS = {'proxy-1': 1200, 'proxy-2': 1199}


def plain_run(*outcomes, **changes) -> RunResult:
    run = RunResult(60, '', junit(outcomes), PLAIN_CENSUS)
    return dataclasses.replace(run, **changes)


def sharded_run(*outcomes, **changes) -> RunResult:
    run = RunResult(90, '', junit(outcomes), SHARDED_CENSUS)
    return dataclasses.replace(run, **changes)


ONE_PASSED = ('c.t', Status.PASSED)
ONE_FAILED = ('c.t', Status.FAILED)
OTHER_PASSED = ('c.other', Status.PASSED)
OTHER_SKIPPED = ('c.other', Status.SKIPPED)


def verdict(plain, sharded):
    return judge('base', 4, {'swift': plain}, {'swift': sharded})


def test_nothing_is_wrong_if_nothing_differs():
    judged = verdict(plain_run(ONE_PASSED), sharded_run(ONE_PASSED))
    assert judged.failures == 0
    assert judged.problems == ()


def test_a_failure_on_both_clusters_is_none_of_sharding():
    judged = verdict(plain_run(ONE_FAILED), sharded_run(ONE_FAILED))
    assert judged.failures == 0


def test_a_failure_on_the_sharded_cluster_only_is_one_of_sharding():
    judged = verdict(plain_run(ONE_PASSED), sharded_run(ONE_FAILED))
    assert judged.failures == 1


@pytest.mark.parametrize(
    ('plain', 'sharded', 'problem'),
    [
        (
            plain_run(ONE_PASSED),
            sharded_run(ONE_PASSED, problem='pytest ended with 3'),
            'sharded swift: pytest ended with 3',
        ),
        (
            plain_run(ONE_PASSED, problem='object-1 died'),
            sharded_run(ONE_PASSED),
            'plain swift: object-1 died',
        ),
        (plain_run(ONE_PASSED), sharded_run(junit=''), 'no JUnit report'),
        (plain_run(), sharded_run(ONE_PASSED), 'no test was run'),
        (
            plain_run(ONE_PASSED, OTHER_PASSED),
            sharded_run(ONE_PASSED),
            'not in the sharded run: c.other',
        ),
        (
            plain_run(ONE_PASSED),
            sharded_run(ONE_PASSED, OTHER_PASSED),
            'not in the plain run: c.other',
        ),
        (
            plain_run(ONE_PASSED),
            sharded_run(ONE_PASSED, census=Census(2, 1, 4, ('AUTH_a/c',))),
            'not sharded in the sharded run: AUTH_a/c',
        ),
        (
            plain_run(ONE_PASSED),
            sharded_run(ONE_PASSED, census=Census(0, 0, 0, ())),
            'no container was made',
        ),
        (
            plain_run(ONE_PASSED, census=SHARDED_CENSUS),
            sharded_run(ONE_PASSED),
            '4 backing containers are in the plain run',
        ),
        (
            plain_run(ONE_PASSED, requests=SHARED_REQUESTS),
            sharded_run(ONE_PASSED, requests={'proxy-1': 9, 'proxy-2': 0}),
            'sharded swift: the proxies did not share the requests: '
            'proxy-1 9, proxy-2 0',
        ),
    ],
)
def test_runs_that_prove_nothing_fail(plain, sharded, problem):
    judged = verdict(plain, sharded)
    assert judged.failures > 0
    assert any(problem in each for each in judged.problems)


def test_suites_are_added_up():
    judged = judge(
        'base',
        4,
        {'swift': plain_run(ONE_PASSED), 's3': plain_run(OTHER_PASSED)},
        {'swift': sharded_run(ONE_PASSED), 's3': sharded_run(OTHER_PASSED)},
    )
    assert judged.comparison.passed == ('c.other', 'c.t')
    assert judged.census == Census(2, 2, 8, ())
    assert judged.seconds == 180
    assert judged.failures == 0


def test_requests_of_suites_are_added_up():
    run = sharded_run(ONE_PASSED, requests={'proxy-1': 2, 'proxy-2': 3})
    other_run = dataclasses.replace(run, junit=junit([OTHER_PASSED]))
    judged = judge(
        'proxies',
        4,
        {'swift': plain_run(ONE_PASSED), 's3': plain_run(OTHER_PASSED)},
        {'swift': run, 's3': other_run},
    )
    assert judged.requests == {'proxy-1': 4, 'proxy-2': 6}


def test_a_test_belongs_to_one_suite():
    judged = judge(
        'base',
        4,
        {'swift': plain_run(ONE_PASSED), 's3': plain_run(ONE_PASSED)},
        {'swift': sharded_run(ONE_PASSED), 's3': sharded_run(ONE_PASSED)},
    )
    assert judged.problems[0] == 'plain s3: c.t ran in another suite, too'


# Reports of verdicts


PROVENANCE = Provenance('0.1.0', 'd1', 'abc1234', '2.38.3', '3.11.7', '2026')

GOOD = verdict(
    plain_run(ONE_PASSED, OTHER_SKIPPED),
    sharded_run(ONE_PASSED, OTHER_SKIPPED),
)
BAD = verdict(
    plain_run(ONE_PASSED, OTHER_PASSED), sharded_run(ONE_FAILED, OTHER_PASSED)
)


@pytest.mark.parametrize(
    ('verdicts', 'line'),
    [
        ([GOOD], '1 passed, 0 failed, 1 skipped'),
        ([BAD], '1 passed, 1 failed, 0 skipped'),
        ([GOOD, BAD], '2 passed, 1 failed, 1 skipped'),
    ],
)
def test_the_last_line_has_the_sums(verdicts, line):
    assert report.summary(verdicts) == line


def test_problems_are_failures_in_the_last_line():
    broken = verdict(
        plain_run(ONE_PASSED, problem='x'), sharded_run(ONE_PASSED)
    )
    assert report.summary([broken]) == '1 passed, 1 failed, 0 skipped'


def test_details_name_worse_tests_and_the_reason():
    assert report.details(BAD) == [
        'failed on the sharded cluster only: c.t',
        '    a',
        '    b',
    ]


def test_details_count_reasons_of_skipping():
    assert report.details(GOOD) == ['skipped on both, 1: not today']


def test_details_have_the_shares_of_several_proxies():
    shared = verdict(
        plain_run(ONE_PASSED, requests=SHARED_REQUESTS),
        sharded_run(ONE_PASSED, requests=SHARED_REQUESTS),
    )
    shares = 'proxy-1 1,200, proxy-2 1,199'
    assert report.details(shared) == [f'requests by proxy: {shares}']
    assert f'one proxy (requests: {shares}).' in report.page(
        [shared], PROVENANCE
    )


def test_the_table_has_a_row_for_each_variant():
    head, *rows = report.table_rows([GOOD, BAD])
    assert [dict(zip(head, row, strict=True))['worse'] for row in rows] == [
        '0',
        '1',
    ]


def test_the_table_is_aligned():
    rows = [['variant', 'n'], ['a', '1,000']]
    assert report.table_lines(rows) == ['variant      n', 'a        1,000']


def test_the_page_has_versions_the_table_and_tests_by_name():
    bad = dataclasses.replace(BAD, variant='n1')
    text = report.page([GOOD, bad], PROVENANCE)
    assert 'Swift\n2.38.3, Python 3.11.7 and shardmw 0.1.0 (abc1234)' in text
    assert '\n| base | 4 | 1 | 0 | 1 | 0 | 0 |' in text
    assert '\n## Worse on the sharded cluster\n\n- `c.t` (n1)\n' in text
    assert '\n- not today:\n  - `c.other` (base)\n' in text
    assert '\n## Failed on both\n\nNothing.\n' in text


# Results that are kept


def job(is_sharded=True) -> jobs.Job:
    return jobs.Job(VARIANTS['base'], suites.SUITES['s3'], is_sharded)


def kept_in(folder, **changes) -> Results:
    now = dataclasses.replace(provenance('/'), **changes)
    return Results(Store(folder), now)


def test_results_are_kept(tmp_path):
    shared = sharded_run(ONE_PASSED, OTHER_SKIPPED, requests=SHARED_REQUESTS)
    kept_in(tmp_path).add(job(), shared)
    kept_in(tmp_path).add(job(False), plain_run(ONE_PASSED, OTHER_SKIPPED))
    (kept,) = kept_in(tmp_path, date='later', commit='other').verdicts(
        [VARIANTS['base']], [suites.SUITES['s3']]
    )
    assert kept == judge(
        'base',
        4,
        {'s3': plain_run(ONE_PASSED, OTHER_SKIPPED)},
        {'s3': shared},
    )


@pytest.mark.parametrize('what', ['code', 'shardmw', 'swift', 'python'])
def test_results_of_other_versions_are_refused(tmp_path, what):
    kept_in(tmp_path).add(job(), sharded_run(ONE_PASSED))
    kept_in(tmp_path).add(job(False), plain_run(ONE_PASSED))
    others = kept_in(tmp_path, **{what: 'other'})
    assert others.missing([job()]) == [job()]
    with pytest.raises(ConformanceError, match='no result of base-s3-plain'):
        others.verdicts([VARIANTS['base']], [suites.SUITES['s3']])


def test_a_run_with_a_result_is_not_missing(tmp_path):
    kept_in(tmp_path).add(job(), sharded_run(ONE_PASSED))
    assert kept_in(tmp_path).missing([job(), job(False)]) == [job(False)]


def test_a_broken_run_is_missing(tmp_path):
    kept_in(tmp_path).add(job(), sharded_run(ONE_PASSED, problem='x'))
    assert kept_in(tmp_path).missing([job()]) == [job()]


def test_a_result_that_was_removed_is_missing(tmp_path):
    results = kept_in(tmp_path)
    results.add(job(), sharded_run(ONE_PASSED))
    results.remove(job())
    assert results.missing([job()]) == [job()]


def test_a_result_is_not_kept_if_the_code_has_changed(tmp_path):
    with pytest.raises(ConformanceError, match='was changed'):
        kept_in(tmp_path, code='older').add(job(), sharded_run(ONE_PASSED))


# Progress


@pytest.mark.parametrize(
    ('output', 'progress'),
    [
        ('', (0, 0)),
        ('collected 800 items\n\na.py::test_a ', (0, 0)),
        ('a.py::test_a PASSED [  1/800]\na.py::test_b ', (1, 800)),
        ('a PASSED [ 99/800]\nb SKIPPED (no) [100/800]', (100, 800)),
    ],
)
def test_progress_is_what_pytest_counted_last(output, progress):
    assert progress_in(output) == progress


# Two proxies


class Named(BaseHTTPRequestHandler):
    """A handler that answers with its server's name and the request's body."""

    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.answer(b'')

    def do_PUT(self):
        if self.headers['Transfer-Encoding']:
            self.answer(b''.join(iter(self.chunk, b'')))
        else:
            self.answer(self.rfile.read(int(self.headers['Content-Length'])))

    def chunk(self):
        chunk = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return chunk

    def answer(self, body):
        text = self.server.name.encode() + body
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Closing(Named):
    """A handler that closes the connection after each response."""

    protocol_version = 'HTTP/1.0'


@contextlib.contextmanager
def running_server(name: str, handler=Named):
    """Run a web server that answers with its name."""
    with ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        server.name = name
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()


@contextlib.contextmanager
def two_servers(handler=Named):
    """Run two such servers behind a balancer; yield its address."""
    with (
        running_server('a', handler) as a,
        running_server('b', handler) as b,
        balancing([a, b]) as url,
    ):
        yield urlsplit(url)


@pytest.fixture
def connected():
    """Yield a client's connection to the balancer."""
    with two_servers() as url:
        connection = http.client.HTTPConnection(url.netloc, timeout=10)
        with contextlib.closing(connection):
            yield connection


def answer(connection, method='GET', **request) -> bytes:
    connection.request(method, '/', **request)
    return connection.getresponse().read()


def answer_to_bytes(url, sent: bytes) -> bytes:
    """Send bytes; return all that comes until the connection closes."""
    with socket.create_connection((url.hostname, url.port), 10) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        return b''.join(iter(lambda: client.recv(4096), b''))


def test_requests_of_one_connection_go_to_the_proxies_in_turn(connected):
    answers = [answer(connected) for _ in range(5)]
    assert answers == [b'a', b'b', b'a', b'b', b'a']


def test_connections_go_to_the_proxies_in_turn():
    request = b'GET / HTTP/1.0\r\n\r\n'
    with two_servers() as url:
        answers = [answer_to_bytes(url, request)[-1:] for _ in range(4)]
    assert answers == [b'a', b'b', b'a', b'b']


def test_the_proxies_keep_the_connection_of_the_client(connected):
    connected.request('GET', '/')
    response = connected.getresponse()
    response.read()
    assert response.getheader('Connection') is None
    assert not response.will_close


def test_a_body_goes_to_the_proxy_that_has_its_head(connected):
    body = b'GET / HTTP/1.1\r\n\r\n' * 10_000
    assert answer(connected, 'PUT', body=body) == b'a' + body
    assert answer(connected) == b'b'


def test_a_chunked_body_goes_to_the_proxy_that_has_its_head(connected):
    chunks = [b'GET / HTTP/1.1\r\n\r\n', b'x' * 100_000, b'0\r\n\r\n']
    body = b''.join(chunks)
    assert answer(connected, 'PUT', body=iter(chunks)) == b'a' + body
    assert answer(connected) == b'b'


def test_a_proxy_that_closes_the_connection_closes_the_clients():
    with two_servers(Closing) as url:
        connection = http.client.HTTPConnection(url.netloc, timeout=10)
        with contextlib.closing(connection):
            assert answer(connection) == b'a'
            assert connection.sock is None


@pytest.mark.parametrize(
    'sent',
    [
        b'',
        b'GET / HTT',
        b'GET / HTTP/1.1\r\n\r\n',
        b'PUT / HTTP/1.1\r\nContent-Length: many\r\n\r\n',
        b'PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\ncut',
        b'PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nten',
        b'PUT / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n\x1f\x8b',
        b'PUT / HTTP/1.1\r\nX: ' + b'x' * 5_000_000,
    ],
)
def test_any_bytes_arrive_unchanged(sent):
    received = []

    class Listening(socketserver.StreamRequestHandler):
        def handle(self):
            received.append(self.rfile.read())
            self.wfile.write(b'all of it')

    with running_server('a', Listening) as a, balancing([a]) as url:
        answered = answer_to_bytes(urlsplit(url), sent)
    assert b''.join(received) == sent
    assert answered == (b'all of it' if sent else b'')


def head_with(*headers: str) -> bytes:
    return '\r\n'.join(['PUT /o HTTP/1.1', *headers, '', '']).encode()


@pytest.mark.parametrize(
    ('headers', 'length'),
    [
        ([], 0),
        (['Content-Length: 12'], 12),
        (['content-length:12', 'Host: h', 'CONTENT-LENGTH: 12 '], 12),
        (['Content-Length: 12', 'Transfer-Encoding: Chunked'], None),
        (['X-Content-Length: 12'], 0),
    ],
)
def test_a_head_tells_the_length_of_the_body(headers, length):
    assert body_length(head_with(*headers)) == length


@pytest.mark.parametrize(
    'headers',
    [
        ['Content-Length: -1'],
        ['Content-Length: +1'],
        ['Content-Length:'],
        ['Content-Length: 1', 'Content-Length: 2'],
        ['Transfer-Encoding: gzip'],
        ['Transfer-Encoding: gzip, chunked'],
    ],
)
def test_an_unknown_length_is_not_guessed(headers):
    with pytest.raises(ValueError, match='length'):
        body_length(head_with(*headers))


def test_half_a_head_has_no_length():
    with pytest.raises(ValueError, match='does not end'):
        body_length(b'PUT /o HTTP/1.1\r\nContent-Length: 12\r\n')


@given(st.integers(0), st.sampled_from(['', ';a=b', ' ;a']))
def test_a_chunk_tells_its_length(length, extension):
    assert chunk_length(f'{length:x}{extension}\r\n'.encode()) == length


@pytest.mark.parametrize(
    'line', [b'', b'\r\n', b'ff', b'-1\r\n', b'0x1\r\n', b'ten\r\n']
)
def test_a_chunk_of_unknown_length_is_not_guessed(line):
    with pytest.raises(ValueError, match='chunk'):
        chunk_length(line)


def test_requests_of_clients_are_counted_by_their_transactions():
    log = [
        'INFO proxy-server: HEAD /v1/a - tx3c0ffee0000000000000a-006b0113fd',
        'INFO proxy-server: GET /v1/a/c - tx3c0ffee0000000000000a-006b0113fd',
        'INFO proxy-server: GET /v1/a/c - tx3c0ffee0000000000000b-006b0113fd',
        'INFO proxy-server: Started child',
    ]
    assert count_requests(log) == 2


@pytest.mark.parametrize(
    ('requests', 'fair'),
    [
        ({}, True),
        ({'proxy-1': 0}, True),
        ({'proxy-1': 7}, True),
        ({'proxy-1': 7, 'proxy-2': 6}, True),
        ({'proxy-1': 6, 'proxy-2': 3}, False),
        ({'proxy-1': 1, 'proxy-2': 0}, False),
        ({'proxy-1': 0, 'proxy-2': 0}, False),
    ],
)
def test_requests_are_shared_fairly_or_not(requests, fair):
    assert are_fair(requests) is fair


# Variants, suites and storage


def test_variants_that_differ_in_shards_only_share_the_plain_runs():
    planned = jobs.plan(
        [VARIANTS['base'], VARIANTS['n1'], VARIANTS['proxies']],
        suites.SUITES.values(),
    )
    plain = {job.variant.name for job in planned if not job.is_sharded}
    sharded = {job.variant.name for job in planned if job.is_sharded}
    assert plain == {'base', 'proxies'}
    assert sharded == {'base', 'n1', 'proxies'}


@pytest.mark.parametrize('name', VARIANTS)
def test_both_clusters_differ_in_their_shards_only(name):
    variant = VARIANTS[name]
    option = 'shardmw.default_shards'
    sharded = variant.cluster_options(True, {'s3api.s3_acl': 'true'})
    plain = plain_twin(variant).cluster_options(
        False, {'s3api.s3_acl': 'true'}
    )
    assert sharded.settings[option] == str(variant.shards)
    assert plain.settings[option] == '0'
    assert plain == sharded.with_settings({option: '0'})


def test_tests_that_one_suite_leaves_out_are_in_another():
    left_out = {
        path for suite in suites.SUITES.values() for path in suite.without
    }
    had = {path for suite in suites.SUITES.values() for path in suite.paths}
    assert left_out <= had


def test_the_configuration_of_the_tests_has_all_users():
    users = {
        'test:tester': 'k1',
        'test2:tester2': 'k2',
        'test:tester3': 'k3',
        'test5:tester5': 'k5',
        'admin:admin': 'k6',
        'test:tester2': 's2',
    }
    parser = configparser.RawConfigParser()
    parser.read_string(settings.config_text('http://h:1', users))
    swift, s3 = parser['func_test'], parser['s3api_test']
    assert swift['auth_uri'] == 'http://h:1/auth/v1.0'
    assert swift['storage_domain'] == 'example.com'
    assert [swift[f'password{n}'] for n in ('', 2, 3, 5, 6)] == [
        *('k1', 'k2', 'k3', 'k5', 'k6')
    ]
    assert [swift[f's3_secret_key{n}'] for n in ('', 2, 3)] == [
        *('k1', 's2', 'k3')
    ]
    assert [s3[f'secret_key{n}'] for n in (1, 2, 3)] == ['k1', 's2', 'k3']
    assert s3['endpoint'] == 'http://h:1'


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """Return a folder that stands for memory, in which metadata has room."""
    folder = tmp_path / 'memory'
    folder.mkdir()
    monkeypatch.setattr(storage, '_MEMORY', folder)
    monkeypatch.setattr(storage, '_has_room', lambda path: path == folder)
    return folder


def test_a_cluster_is_where_metadata_has_room(tmp_path, memory):
    path = tmp_path / 'run' / 'cluster'
    storage.make_folder(path)
    assert path.resolve().parent == memory


def test_nothing_of_a_cluster_stays_in_memory(tmp_path, memory):
    path = tmp_path / 'run' / 'cluster'
    storage.make_folder(path)
    (path / 'devices').mkdir()
    storage.remove_folder(path)
    storage.remove_folder(path)
    assert not list(memory.iterdir())
    assert not os.path.lexists(path)


def test_without_room_in_memory_a_cluster_is_in_its_own_folder(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(storage, '_has_room', lambda path: False)
    path = tmp_path / 'run' / 'cluster'
    storage.make_folder(path)
    assert path.is_dir()
    assert not path.is_symlink()
