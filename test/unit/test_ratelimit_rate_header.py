# SPDX-License-Identifier: Apache-2.0
import math

import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request

from shardmw.proxy.ratelimit import rate_header
from shardmw.proxy.ratelimit.rate_header import (
    RATE_HEADER,
    RATE_NAME,
    RATE_SYSMETA,
)

REMOVE_HEADER = 'X-Remove-Container-Write-Ratelimit'


def request(headers: dict[str, str], **environ) -> Request:
    environ = {'REQUEST_METHOD': 'POST', 'reseller_request': True, **environ}
    return Request.blank('/v1/AUTH_test/c', environ=environ, headers=headers)


class TestRateOf:
    @pytest.mark.parametrize(
        ('text', 'rate'),
        [('2.50', 2.5), ('0.0001', 0.0001), ('unlimited', math.inf)],
    )
    def test_is_the_rate_in_sysmeta(self, text, rate):
        assert rate_header.rate_of({'sysmeta': {RATE_NAME: text}}) == rate

    @pytest.mark.parametrize('text', ['', '0', 'nan', 'inf', 'x'])
    def test_is_none_for_other_text(self, text):
        assert rate_header.rate_of({'sysmeta': {RATE_NAME: text}}) is None

    def test_is_none_without_sysmeta(self):
        assert rate_header.rate_of({'sysmeta': {}}) is None


class TestTakeHeader:
    def test_without_a_header_the_request_stays_as_it_is(self):
        req = request({})
        assert rate_header.take_header(req) is None
        assert RATE_SYSMETA not in req.headers

    @pytest.mark.parametrize(
        ('text', 'stored'),
        [('2.50', '2.50'), (' Unlimited ', 'unlimited'), ('', '')],
    )
    def test_a_rate_becomes_sysmeta(self, text, stored):
        req = request({RATE_HEADER: text})
        assert rate_header.take_header(req) is None
        assert req.headers[RATE_SYSMETA] == stored
        assert RATE_HEADER not in req.headers

    def test_a_removed_rate_becomes_empty_sysmeta(self):
        req = request({REMOVE_HEADER: 'x'})
        assert rate_header.take_header(req) is None
        assert req.headers[RATE_SYSMETA] == ''
        assert REMOVE_HEADER not in req.headers

    @pytest.mark.parametrize('text', ['0', '-1', 'nan', 'inf', 'x', '\xff'])
    def test_an_invalid_rate_is_refused(self, text):
        req = request({RATE_HEADER: text})
        refusal = rate_header.take_header(req)
        assert refusal.status_int == 400
        assert refusal.body.decode()[:60].startswith(
            f'Bad rate {text!a}: must be 0.0001 or more, or unlimited'
        )
        assert RATE_SYSMETA not in req.headers

    @pytest.mark.parametrize('header', [RATE_HEADER, REMOVE_HEADER])
    def test_only_a_reseller_admin_may_set_a_rate(self, header):
        req = request({header: '5'}, reseller_request=False)
        assert rate_header.take_header(req).status_int == 403


class TestShow:
    def test_the_owner_sees_the_rate(self):
        headers = HeaderKeyDict({RATE_SYSMETA: '5'})
        rate_header.show(request({}, swift_owner=True), headers)
        assert headers[RATE_HEADER] == '5'

    def test_other_users_do_not_see_the_rate(self):
        headers = HeaderKeyDict({RATE_SYSMETA: '5'})
        rate_header.show(request({}), headers)
        assert RATE_HEADER not in headers

    def test_a_container_without_a_rate_shows_none(self):
        headers = HeaderKeyDict()
        rate_header.show(request({}, swift_owner=True), headers)
        assert RATE_HEADER not in headers
