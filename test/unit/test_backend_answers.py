# SPDX-License-Identifier: Apache-2.0
import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request

from shardmw.backend.answers import (
    Answer,
    Verbatim,
    next_marker,
    require_success,
    unavailable,
)
from shardmw.backend.containers import BackendError
from shardmw.backend.fanout_turns import NoTurn
from shardmw.backend.requests import Backend
from shardmw.core.layout import LayoutError
from shardmw.core.paths import Path
from test.unit.fakeswift import Logger

REQUEST = Request.blank('/v1/a/%E2%98%83')
CONTAINER = Path('v1', 'a', '☃')


def answer(status: int, shard: int | None = None, **headers: str) -> Answer:
    return Answer(shard, f'{status} X', HeaderKeyDict(headers), [b'[]'])


@pytest.mark.parametrize(
    'status, is_success, is_missing',
    [
        (200, True, False),
        (204, True, False),
        (404, False, True),
        (410, False, False),
        (503, False, False),
    ],
)
def test_an_answer_is_classified_by_its_status(status, is_success, is_missing):
    each = answer(status)
    assert each.status == status
    assert (each.is_success, each.is_missing) == (is_success, is_missing)


def test_an_answer_without_counts_has_zeros():
    assert (answer(204).object_count, answer(204).bytes_used) == (0, 0)


@pytest.mark.parametrize(
    'body, rows', [([b'[{"na', b'me": "a"}]'], [{'name': 'a'}]), ([], [])]
)
def test_rows_are_read_from_all_parts_of_a_body(body, rows):
    assert answer(200)._replace(body=body).rows() == rows


@pytest.mark.parametrize('marker, last', [('a', 'a'), ('b', 'a')])
def test_a_page_that_does_not_go_on_is_an_error(marker, last):
    with pytest.raises(BackendError, match=f"a/c lists '{last}' after"):
        next_marker('a/c', marker, last)


def test_a_page_goes_on_from_its_last_name():
    assert next_marker('a/c', 'a', 'b') == 'b'


def test_a_client_gets_an_answer_unchanged():
    headers = {'X-One': '1', 'Content-Length': '2'}
    each = Answer(None, '418 Teapot', HeaderKeyDict(headers), [b'[]'])
    req = Request.blank('/v1/a/c')
    status, told, body = req.call_application(Verbatim(each))
    assert (status, dict(told), list(body)) == ('418 Teapot', headers, [b'[]'])


def test_the_first_answer_that_failed_is_an_error():
    answers = [answer(204, 0), answer(404, 1), answer(503, 2)]
    with pytest.raises(BackendError, match='shard 1 answered 404') as caught:
        require_success(answers)
    assert (caught.value.shard, caught.value.status) == (1, 404)


def test_answers_without_a_failure_are_no_error():
    require_success([answer(200), answer(204)])


@pytest.mark.parametrize(
    'reason, line',
    [
        (
            BackendError(None, 500),
            'shardmw: 503 for GET /v1/a/%E2%98%83: backing: '
            'the root answered 500',
        ),
        (
            BackendError(3, 503, 'no quorum'),
            'shardmw: 503 for GET /v1/a/%E2%98%83: backing: no quorum',
        ),
        (
            LayoutError('version 3'),
            'shardmw: 503 for GET /v1/a/%E2%98%83: layout record: version 3',
        ),
    ],
)
def test_the_log_says_why_a_request_got_a_503(reason, line):
    logger = Logger()
    backend = Backend(None, logger, 1)
    resp = unavailable(REQUEST, CONTAINER, backend, reason)
    assert resp.status_int == 503
    assert logger.lines == [line]


@pytest.mark.parametrize(
    ('reason', 'cause'),
    [
        (BackendError(None, 500), 'other'),
        (BackendError(3, 503), 'shard'),
        (LayoutError('version 3'), 'record'),
        (NoTurn('a', 30), 'turn'),
    ],
)
def test_a_503_is_counted_by_its_cause(reason, cause):
    logger = Logger()
    backend = Backend(None, logger, 1, metrics=logger.metrics)
    unavailable(REQUEST, CONTAINER, backend, reason)
    assert logger.counts == {
        f'unavailable.{cause}': 1,
        f'top.unavailable.a.%E2%98%83.{cause}': 1,
    }


def test_a_503_for_an_account_names_no_container():
    logger = Logger()
    backend = Backend(None, logger, 1, metrics=logger.metrics)
    reason = BackendError(None, 503)
    unavailable(REQUEST, Path('v1', 'a'), backend, reason)
    assert logger.counts == {'unavailable.other': 1}
