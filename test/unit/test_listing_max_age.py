# SPDX-License-Identifier: Apache-2.0
"""The headers that say how old listings may be."""

import pytest
from swift.common.header_key_dict import HeaderKeyDict
from swift.common.swob import Request

from shardmw.proxy.listing import max_age
from shardmw.proxy.listing.max_age import (
    MAX_AGE_HEADER,
    MAX_AGE_NAME,
    MAX_AGE_SYSMETA,
    REQUEST_HEADER,
    MaxAge,
)

REMOVE_HEADER = 'X-Remove-Container-Listing-Max-Age'

PATH = '/v1/AUTH_test/c'


def info(setting: str | None) -> dict:
    return {'sysmeta': {} if setting is None else {MAX_AGE_NAME: setting}}


def change(headers: dict[str, str]) -> Request:
    environ = {'REQUEST_METHOD': 'POST'}
    return Request.blank(PATH, environ=environ, headers=headers)


def asked(
    headers: dict | None = None,
    source: str | None = None,
    path: str = PATH,
    setting: str = '30',
) -> int:
    environ = {'swift.source': source} if source else {}
    req = Request.blank(path, environ=environ, headers=headers or {})
    return max_age.of_request(req, info(setting), 0).asked


class TestSetting:
    @pytest.mark.parametrize('text', ['0', '30', '3600'])
    def test_of_the_owner_comes_before_that_of_the_operator(self, text):
        assert max_age.setting_of(info(text), 60) == int(text)

    @pytest.mark.parametrize('text', [None, '', 'x', '3601', '-1'])
    def test_is_otherwise_that_of_the_operator(self, text):
        assert max_age.setting_of(info(text), 60) == 60


class TestHeader:
    @pytest.mark.parametrize(
        ('text', 'stored'), [('0', '0'), (' 30 ', '30'), ('03600', '3600')]
    )
    def test_is_stored_in_seconds(self, text, stored):
        req = change({MAX_AGE_HEADER: text})
        assert max_age.take_header(req) is None
        assert req.headers[MAX_AGE_SYSMETA] == stored
        assert MAX_AGE_HEADER not in req.headers

    @pytest.mark.parametrize(
        'headers', [{MAX_AGE_HEADER: ' '}, {REMOVE_HEADER: 'x'}]
    )
    def test_is_removed(self, headers):
        req = change(headers)
        assert max_age.take_header(req) is None
        assert req.headers[MAX_AGE_SYSMETA] == ''
        assert REMOVE_HEADER not in req.headers

    def test_is_not_stored_if_it_is_not_there(self):
        req = change({})
        assert max_age.take_header(req) is None
        assert MAX_AGE_SYSMETA not in req.headers

    @pytest.mark.parametrize(
        'text', ['3601', '-1', '1.5', '30s', 'true', '²', '9' * 5000]
    )
    def test_of_another_value_is_refused(self, text):
        req = change({MAX_AGE_HEADER: text})
        refusal = max_age.take_header(req)
        assert refusal.status_int == 400
        assert b'must be a whole number of seconds from 0' in refusal.body
        assert MAX_AGE_HEADER.encode() in refusal.body
        assert MAX_AGE_SYSMETA not in req.headers

    @pytest.mark.parametrize(
        ('stored', 'default', 'shown'),
        [
            ({MAX_AGE_SYSMETA: '30'}, 0, '30'),
            ({MAX_AGE_SYSMETA: '0'}, 60, '0'),
            ({MAX_AGE_SYSMETA: ''}, 60, '60'),
            ({}, 60, '60'),
            ({}, 0, None),
            ({MAX_AGE_SYSMETA: ''}, 0, None),
        ],
    )
    def test_is_shown_if_it_is_set(self, stored, default, shown):
        headers = HeaderKeyDict(stored)
        max_age.show(headers, default)
        assert headers.get(MAX_AGE_HEADER) == shown


class TestRequest:
    def test_takes_pages_of_the_age_that_the_container_allows(self):
        assert asked() == 30

    @pytest.mark.parametrize(
        ('text', 'seconds'),
        [
            *(('0', 0), ('5', 5), ('30', 30), ('31', 30)),
            *(('9' * 5000, 30), ('007', 7)),
        ],
    )
    def test_may_ask_for_younger_pages(self, text, seconds):
        assert asked({REQUEST_HEADER: text}) == seconds

    def test_that_asks_for_younger_pages_does_not_keep_them_shorter(self):
        req = Request.blank(PATH, headers={REQUEST_HEADER: '5'})
        assert max_age.of_request(req, info('30'), 0) == MaxAge(30, 5)

    @pytest.mark.parametrize('text', ['', '-1', '1.5', 'x', '²'])
    def test_for_an_age_that_is_no_number_is_wrong(self, text):
        with pytest.raises(ValueError, match='must be a whole number'):
            asked({REQUEST_HEADER: text})

    def test_with_x_newest_takes_no_page_that_is_old(self):
        assert asked({'X-Newest': 'true', REQUEST_HEADER: '5'}) == 0
        assert asked({'X-Newest': 'false'}) == 30

    @pytest.mark.parametrize('source', [None, 'S3', 'SW'])
    def test_of_clients_and_web_sites_takes_pages_that_are_old(self, source):
        assert asked(source=source) == 30

    @pytest.mark.parametrize('source', ['OV', 'VW', 'DLO', 'SLO', 'other'])
    def test_of_other_filters_takes_no_page_that_is_old(self, source):
        assert asked(source=source) == 0

    def test_for_the_parts_of_s3_uploads_takes_no_page_that_is_old(self):
        assert asked(source='S3', path=f'{PATH}+segments') == 0
        assert asked(path=f'{PATH}+segments') == 30

    def test_for_versions_takes_no_page_that_is_old(self):
        assert asked(path=f'{PATH}?versions') == 0

    def test_takes_no_page_that_is_old_if_the_container_allows_none(self):
        assert asked({REQUEST_HEADER: '5'}, setting='0') == 0
