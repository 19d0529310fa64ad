# SPDX-License-Identifier: Apache-2.0
"""The benchmark's clients, against servers that answer as a test says."""

import itertools
import math
import multiprocessing
import os
import signal
import socket
import ssl
import time
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from shardmw_bench.errors import BenchError, Interrupted
from shardmw_bench.load import clients as module
from shardmw_bench.load.clients import Clients
from shardmw_bench.load.outcome import (
    LOST,
    TIMED_OUT,
    UNANSWERED,
)
from shardmw_bench.load.sources import (
    AT_ONCE,
    BACK_OFF,
    Deletes,
    Load,
    Mixed,
    Reads,
    Uploads,
)
from shardmw_bench.names import FlatNames
from shardmw_bench.results.summary import summarize
from shardmw_bench.units import Mix

from test.functional.answering import CREATED, answering, refused

UPLOADS = Uploads('/v1/AUTH_test/c', 3)


@pytest.fixture(scope='module')
def clients():
    with Clients(2) as clients:
        yield clients


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    """A self-signed certificate of 127.0.0.1, with its key."""
    path = tmp_path_factory.mktemp('tls') / 'certificate.pem'
    path.write_bytes(self_signed('127.0.0.1'))
    return path


@pytest.fixture
def tls(certificate):
    """The TLS context of a server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def self_signed(address: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, 'a test')])
    own = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(own, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return made.public_bytes(pem) + key.private_bytes(
        pem,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def made_load(*servers, **changes) -> Load:
    given = {'clients': 4, 'count': 20, 'source': UPLOADS, **changes}
    return Load(tuple(server.url for server in servers), 'AUTH_t', **given)


def run(pool, answers, **changes):
    """Run a load against one server; return its outcome and the server."""
    with answering(answers) as server:
        return pool.run(made_load(server, **changes)), server


def raising(what):
    """Return a callback for progress that interrupts the load."""

    def interrupt(part) -> None:
        raise what()

    return interrupt


def requested(server, method: bytes) -> list[bytes]:
    """Return the paths of all requests with a method."""
    lines = [head.split() for head in server.heads]
    return [line[1] for line in lines if line[0] == method]


def statuses(outcome) -> list[int]:
    return sorted(each.status for each in outcome.samples)


def names(server) -> list[bytes]:
    return sorted(head.split()[1].rpartition(b'/')[2] for head in server.heads)


def test_every_request_is_sent_once(clients):
    outcome, server = run(clients, lambda n: CREATED)
    assert statuses(outcome) == [201] * 20
    assert names(server) == [b'o%010d' % i for i in range(20)]
    assert sorted(each.number for each in outcome.samples) == [*range(20)]


def test_a_request_is_what_swift_wants(clients):
    _, server = run(clients, lambda n: CREATED, count=1)
    method, path, version = server.heads[0].partition(b'\r\n')[0].split()
    assert method == b'PUT'
    assert path == b'/v1/AUTH_test/c/o0000000000'
    assert version == b'HTTP/1.1'
    assert b'\r\nX-Auth-Token: AUTH_t\r\n' in server.heads[0]
    assert b'\r\nContent-Length: 3\r\n' in server.heads[0]


def test_proxies_share_the_clients(clients):
    with ExitStack() as stack:
        servers = [
            stack.enter_context(answering(lambda n: CREATED)) for _ in range(2)
        ]
        clients.run(made_load(*servers, pace_seconds=0.01))
        assert [len(server.heads) for server in servers] == [10, 10]


def test_times_are_within_the_load(clients):
    outcome, _ = run(clients, lambda n: CREATED, count=None, seconds=0.3)
    for each in outcome.samples:
        assert outcome.began <= each.start < each.end
        assert each.start < outcome.began + 0.3


def test_a_duration_ends_the_load(clients):
    outcome, _ = run(clients, lambda n: CREATED, count=None, seconds=0.3)
    assert outcome.seconds == 0.3
    assert summarize(outcome).admitted > 4


def test_a_client_keeps_to_its_pace(clients):
    outcome, _ = run(clients, lambda n: CREATED, count=8, pace_seconds=0.2)
    assert outcome.seconds >= 0.2


class TestRefusals:
    def test_are_offered_and_not_admitted(self, clients):
        answers = [CREATED, refused()]
        outcome, _ = run(clients, lambda n: answers[n % 2], on_refusal=AT_ONCE)
        summary = summarize(outcome)
        assert (summary.offered, summary.errors) == (20, {})
        assert (summary.admitted, summary.refused) == (10, 10)

    def test_retry_after_is_honoured(self, clients):
        outcome, _ = run(clients, lambda n: refused(0.2), clients=1, count=2)
        first, second = outcome.samples
        assert first.retry_after == 0.2
        assert second.start - first.end >= 0.2

    def test_without_retry_after_make_a_client_back_off(self, clients):
        outcome, _ = run(
            clients,
            lambda n: refused(),
            clients=1,
            count=2,
            backoff_seconds=0.2,
        )
        first, second = outcome.samples
        assert math.isnan(first.retry_after)
        assert second.start - first.end >= 0.2

    def test_a_client_may_choose_its_own_pause(self, clients):
        outcome, _ = run(
            clients,
            lambda n: refused(60),
            clients=1,
            count=2,
            on_refusal=BACK_OFF,
            backoff_seconds=0.2,
        )
        assert outcome.seconds < 60

    def test_a_client_may_go_on_at_once(self, clients):
        outcome, _ = run(clients, lambda n: refused(60), on_refusal=AT_ONCE)
        assert statuses(outcome) == [498] * 20


class TestFailures:
    def test_of_a_connection_are_counted_and_do_not_end_the_load(
        self, clients
    ):
        answers = itertools.chain([b''], itertools.repeat(CREATED))
        outcome, _ = run(clients, lambda n: next(answers), clients=1, count=2)
        assert statuses(outcome) == [LOST, 201]
        assert summarize(outcome).errors == {'connection lost': 1}

    def test_an_answer_that_is_not_http_counts_as_a_lost_connection(
        self, clients
    ):
        outcome, _ = run(clients, lambda n: b'hello\r\n\r\n', count=1)
        assert statuses(outcome) == [LOST]

    def test_a_slow_answer_times_out(self, clients):
        outcome, _ = run(
            clients, lambda n: None, clients=1, count=1, timeout_seconds=0.1
        )
        assert statuses(outcome) == [TIMED_OUT]

    def test_the_last_answers_are_not_waited_for_too_long(self, clients):
        outcome, _ = run(
            clients, lambda n: None, clients=1, count=1, drain_seconds=0.1
        )
        assert statuses(outcome) == [UNANSWERED]

    def test_other_answers_are_errors_by_their_status(self, clients):
        unavailable = CREATED.replace(b'201 Created', b'503 Unavailable')
        outcome, _ = run(clients, lambda n: unavailable)
        assert summarize(outcome).errors == {'503': 20}

    def test_a_url_without_a_server_is_an_error(self):
        with socket.socket() as unused, Clients(1) as clients:
            unused.bind(('127.0.0.1', 0))
            url = 'http://{}:{}'.format(*unused.getsockname())
            with pytest.raises(BenchError, match='cannot connect to 127'):
                clients.run(Load((url,), 't', UPLOADS, clients=1, count=1))


def test_a_load_without_an_end_runs_until_it_is_stopped(clients):
    with answering(lambda n: CREATED) as server:
        running = clients.begin(made_load(server, count=None))
        running.sleep_until(0.3)
        outcome = running.stop()
        assert outcome.seconds >= 0.3
        assert summarize(outcome).admitted > 4
        # and the next load is not affected
        again = clients.run(made_load(server))
        assert statuses(again) == [201] * 20


def test_a_load_that_is_not_watched_does_not_fill_the_pipes(clients):
    with answering(lambda n: CREATED) as server:
        running = clients.begin(made_load(server, count=None))
        running.sleep_until(0.5)
        assert clients._control.progress.empty()
        running.stop()


def test_a_loads_time_excludes_waiting_for_the_last_answers(clients):
    with answering(lambda n: None) as server:
        load = made_load(server, count=None, drain_seconds=1)
        running = clients.begin(load)
        running.sleep_until(0.1)
        outcome = running.stop()
    assert outcome.seconds < 1
    assert statuses(outcome) == [UNANSWERED] * 4


def test_a_load_without_an_end_cannot_be_waited_for(clients):
    with (
        answering(lambda n: CREATED) as server,
        pytest.raises(ValueError, match='ends when it is told to'),
    ):
        clients.run(made_load(server, count=None))


class TestProgress:
    def test_covers_every_request(self, clients):
        parts = []
        unavailable = CREATED.replace(b'201 Created', b'503 Unavailable')
        answers = [CREATED, refused(), unavailable]
        with answering(lambda n: answers[n % 3]) as server:
            load = made_load(server, count=30, on_refusal=AT_ONCE)
            clients.run(load, parts.append)
        told = [each for part in parts for each in part]
        assert sorted(each['number'] for each in told) == [*range(30)]

    def test_is_reported_during_a_load(self, clients):
        moments = []
        with answering(lambda n: CREATED) as server:
            load = made_load(server, count=None, seconds=1.3)
            clients.run(load, lambda _: moments.append(time.monotonic()))
        assert len(moments) >= 3
        assert moments[1] - moments[0] > 0.2


def test_processes_of_clients_ignore_sigint():
    with Clients(2) as own, answering(lambda n: CREATED) as server:
        running = own.begin(made_load(server))
        for process in multiprocessing.active_children():
            os.kill(process.pid, signal.SIGINT)
        outcome = running.wait()
    assert statuses(outcome) == [201] * 20


class TestInterruption:
    @pytest.mark.parametrize('what', [KeyboardInterrupt, Interrupted])
    def test_keeps_the_results_so_far(self, clients, what):
        with (
            answering(lambda n: CREATED) as server,
            pytest.raises(Interrupted) as caught,
        ):
            load = made_load(server, count=None, seconds=60)
            clients.run(load, raising(what))
        outcome = caught.value.outcome
        assert 0.2 < outcome.seconds < 10
        assert summarize(outcome).admitted > 4
        assert summarize(outcome).errors == {}

    def test_by_a_signal_has_its_number(self, clients):
        with (
            answering(lambda n: CREATED) as server,
            pytest.raises(Interrupted) as caught,
        ):
            load = made_load(server, count=None, seconds=60)
            clients.run(load, raising(lambda: Interrupted(15)))
        assert caught.value.signal_number == 15

    def test_does_not_wait_for_answers_that_do_not_come(
        self, clients, monkeypatch
    ):
        monkeypatch.setattr(module, '_INTERRUPTED_DRAIN_SECONDS', 0.1)
        with (
            answering(lambda n: None) as server,
            pytest.raises(Interrupted) as caught,
        ):
            clients.run(made_load(server), raising(KeyboardInterrupt))
        assert statuses(caught.value.outcome) == [UNANSWERED] * 4

    def test_leaves_the_clients_ready_for_the_next_load(self, clients):
        with answering(lambda n: CREATED) as server:
            load = made_load(server, count=None, seconds=60)
            with pytest.raises(Interrupted):
                clients.run(load, raising(KeyboardInterrupt))
            assert statuses(clients.run(made_load(server))) == [201] * 20

    def test_of_the_caller_does_not_disturb_the_next_load(self, clients):
        with answering(lambda n: CREATED) as server:
            clients.begin(made_load(server, count=None))
            assert statuses(clients.run(made_load(server))) == [201] * 20


def test_a_load_ends_with_its_source(clients):
    deletes = Deletes('/v1/AUTH_test/c', FlatNames(7))
    outcome, server = run(
        clients, lambda n: CREATED, source=deletes, count=None, seconds=60
    )
    assert outcome.seconds < 10
    assert statuses(outcome) == [201] * 7
    assert names(server) == [b'o%010d' % i for i in range(7)]


def test_a_mix_deletes_what_was_written(clients):
    mixed = Mixed('/v1/AUTH_test/c', Mix(1, 0, 0, 1), FlatNames(1), 3)
    outcome, server = run(clients, lambda n: CREATED, source=mixed, count=60)
    written = set(requested(server, b'PUT'))
    deleted = requested(server, b'DELETE')
    assert len(deleted) > 10
    assert written.issuperset(deleted)
    assert len(set(deleted)) == len(deleted)
    assert summarize(outcome).by_operation['DELETE']['admitted'] > 10


def test_the_times_of_an_operation_are_in_order(clients):
    outcome, _ = run(clients, lambda n: CREATED)
    for each in outcome.samples:
        assert each.start < each.sent < each.first_byte < each.end
        assert each.sent_bytes == 3


class TestLargeBodies:
    SIZE = 40_000_001

    def test_are_sent_whole(self, clients):
        outcome, server = run(
            clients,
            lambda n: CREATED,
            source=Uploads('/v1/AUTH_test/c', self.SIZE),
            clients=2,
            count=4,
        )
        assert statuses(outcome) == [201] * 4
        assert server.body_bytes == [self.SIZE] * 4
        assert summarize(outcome).bytes_sent == 4 * self.SIZE

    def test_are_received_whole(self, clients):
        head = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % self.SIZE
        answer = head + b'x' * self.SIZE
        reads = Reads('/v1/AUTH_test/c', FlatNames(2))
        outcome, _ = run(clients, lambda n: answer, source=reads, count=4)
        assert statuses(outcome) == [200] * 4
        assert summarize(outcome).bytes_received == 4 * self.SIZE


class TestTls:
    def test_works_with_a_trusted_server(self, certificate, tls, monkeypatch):
        monkeypatch.setenv('SSL_CERT_FILE', str(certificate))
        with answering(lambda n: CREATED, tls) as server, Clients(1) as own:
            assert statuses(own.run(made_load(server))) == [201] * 20

    def test_with_an_untrusted_server_is_an_error(self, clients, tls):
        with (
            answering(lambda n: CREATED, tls) as server,
            pytest.raises(BenchError, match='is not trusted .* --insecure'),
        ):
            clients.run(made_load(server))

    def test_can_be_used_without_trust(self, clients, tls):
        with answering(lambda n: CREATED, tls) as server:
            outcome = clients.run(made_load(server, insecure=True))
        assert statuses(outcome) == [201] * 20
        for each in outcome.samples:
            assert each.start < each.sent < each.first_byte < each.end

    def test_begins_anew_on_each_connection(self, clients, tls):
        closing = CREATED.replace(
            b'\r\n\r\n', b'\r\nConnection: close\r\n\r\n'
        )
        with answering(lambda n: closing, tls) as server:
            outcome = clients.run(made_load(server, insecure=True))
        assert statuses(outcome) == [201] * 20

    def test_carries_large_bodies(self, clients, tls):
        size = 10_000_001
        head = b'HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n' % size
        with answering(lambda n: head + b'x' * size, tls) as server:
            uploads = Uploads('/v1/AUTH_test/c', size)
            load = made_load(server, source=uploads, count=4, insecure=True)
            outcome = clients.run(load)
        assert server.body_bytes == [size] * 4
        assert summarize(outcome).bytes_received == 4 * size
