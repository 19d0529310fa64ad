# SPDX-License-Identifier: Apache-2.0
"""The header with which an owner allows listings without an order."""

import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request

from shardmw.proxy.listing import container_order
from shardmw.proxy.listing.container_order import (
    UNORDERED_HEADER,
    UNORDERED_NAME,
    UNORDERED_SYSMETA,
)
from shardmw.proxy.listing.params import params_of

REMOVE_HEADER = 'X-Remove-Container-Unordered-Listings'

ON = {'sysmeta': {UNORDERED_NAME: 'true'}}
OFF = {'sysmeta': {UNORDERED_NAME: ''}}


def change(headers: dict[str, str]) -> Request:
    environ = {'REQUEST_METHOD': 'POST'}
    return Request.blank('/v1/AUTH_test/c', environ=environ, headers=headers)


def allows(query: str, info: dict, source: str | None = None) -> bool:
    environ = {'swift.source': source} if source else {}
    req = Request.blank(f'/v1/AUTH_test/c?{query}', environ=environ)
    params = params_of(req)
    return container_order.allows_unordered(req, params, info)


class TestTakeHeader:
    def test_without_a_header_the_request_stays_as_it_is(self):
        req = change({})
        assert container_order.take_header(req) is None
        assert UNORDERED_SYSMETA not in req.headers

    @pytest.mark.parametrize(
        ('text', 'stored'),
        [('true', 'true'), (' Yes ', 'true'), ('False', ''), ('', '')],
    )
    def test_a_value_becomes_sysmeta(self, text, stored):
        req = change({UNORDERED_HEADER: text})
        assert container_order.take_header(req) is None
        assert req.headers[UNORDERED_SYSMETA] == stored
        assert UNORDERED_HEADER not in req.headers

    def test_a_removed_setting_becomes_empty_sysmeta(self):
        req = change({REMOVE_HEADER: 'x'})
        assert container_order.take_header(req) is None
        assert req.headers[UNORDERED_SYSMETA] == ''
        assert REMOVE_HEADER not in req.headers

    @pytest.mark.parametrize('text', ['2', 'maybe', '\xff'])
    def test_an_invalid_value_is_refused(self, text):
        req = change({UNORDERED_HEADER: text})
        refusal = container_order.take_header(req)
        assert refusal.status_int == 400
        assert refusal.body.decode() == (
            f'Bad value {text!a}: must be true or false ({UNORDERED_HEADER})'
        )
        assert UNORDERED_SYSMETA not in req.headers


class TestShow:
    def test_every_client_sees_the_setting(self):
        headers = HeaderKeyDict({UNORDERED_SYSMETA: 'true'})
        container_order.show(headers)
        assert headers[UNORDERED_HEADER] == 'true'

    @pytest.mark.parametrize('stored', [{}, {UNORDERED_SYSMETA: ''}])
    def test_a_setting_that_is_off_is_not_shown(self, stored):
        headers = HeaderKeyDict(stored)
        container_order.show(headers)
        assert UNORDERED_HEADER not in headers


class TestAllowsUnordered:
    @pytest.mark.parametrize('source', [None, 'S3'])
    def test_for_clients_of_swift_and_of_s3(self, source):
        assert allows('prefix=a&marker=ab&end_marker=b', ON, source)

    @pytest.mark.parametrize('info', [OFF, {'sysmeta': {}}])
    def test_not_without_the_setting(self, info):
        assert not allows('', info)

    @pytest.mark.parametrize(
        'query',
        ['delimiter=/', 'path=', 'reverse=on', 'versions', 'versions=true'],
    )
    def test_not_for_parameters_that_need_the_order(self, query):
        assert not allows(query, ON)

    @pytest.mark.parametrize('value', ['false', 'true', ''])
    def test_not_for_a_client_that_sets_the_parameter_itself(self, value):
        assert not allows(f'allow_unordered={value}', ON)

    @pytest.mark.parametrize('source', ['DLO', 'OV', 'SW', 'VW'])
    def test_not_for_other_filters(self, source):
        assert not allows('prefix=segments/', ON, source)
