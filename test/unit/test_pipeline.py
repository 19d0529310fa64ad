# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from swift.common.wsgi import ConfigString, loadcontext, loadwsgi

from shardmw.backend.config import (
    ConfigError,
    check_option_names,
    parse_options,
)
from shardmw.proxy import listings_filter as listing_bypass
from shardmw.proxy.pipeline import (
    ADDED_BY_SWIFT,
    LISTINGS,
    Filter,
    Pipeline,
    account_ratelimit,
    check_app,
    check_listings_order,
    check_order,
    check_pipeline,
    check_rate_limits,
    read_pipeline,
)

#: The sections of the filters in the configuration files below.
FILTERS = {
    'cache': 'use = egg:swift#memcache',
    'keymaster': 'use = egg:swift#keymaster',
    'large': 'use = egg:swift#slo',
    'listing_formats': 'use = egg:swift#listing_formats',
    'proxy-logging': 'use = egg:swift#proxy_logging',
    'ratelimit': 'use = egg:swift#ratelimit',
    'shardmw': 'use = egg:shardmw#shardmw',
    'shardmw-listings': 'use = egg:shardmw#shardmw_listings',
}


def pipeline(*kinds: str, app_conf: dict | None = None) -> Pipeline:
    """Return a proxy's pipeline, whose filters are named after their kinds."""
    filters = [Filter(f'my-{kind}', kind, {}) for kind in kinds]
    return Pipeline(
        filters, 'my-proxy', {'bind_port': '80', **(app_conf or {})}
    )


@pytest.fixture
def conf_of(tmp_path):
    """Return a function that writes a file and returns a filter's options."""

    def conf_of(
        names: str, default: str = '', app: str = '', **sections: str
    ) -> dict[str, str]:
        filters = {**FILTERS, **sections}
        blocks = [
            f'[DEFAULT]\n{default}',
            f'[pipeline:main]\npipeline = {names} proxy-server',
            f'[app:proxy-server]\nuse = egg:swift#proxy\n{app}',
            *(f'[filter:{name}]\n{filters[name]}' for name in names.split()),
        ]
        path = tmp_path / 'proxy-server.conf'
        path.write_text('\n\n'.join(blocks))
        return {'__file__': str(path)}

    return conf_of


def refusal_of(check, *arguments) -> str:
    """Return the message with which a check fails."""
    with pytest.raises(ConfigError) as err:
        check(*arguments)
    message = str(err.value)
    assert '\n' not in message
    return message


class TestOrder:
    def test_last_filter_is_accepted(self):
        check_order(pipeline('memcache', *ADDED_BY_SWIFT, 'shardmw'))

    def test_proxy_logging_may_stand_right(self):
        names = ('proxy_logging', 'memcache', *ADDED_BY_SWIFT, 'encryption')
        check_order(pipeline(*names, 'shardmw', 'proxy_logging'))

    @pytest.mark.parametrize(
        'kind', ['slo', 'encryption', 'keymaster', 'memcache', 'theirs', None]
    )
    def test_any_other_filter_on_the_right_is_refused(self, kind):
        found = pipeline('memcache', 'shardmw', kind)
        assert refusal_of(check_order, found).startswith(
            f'shardmw: my-{kind} is right of my-shardmw: move my-{kind} '
            'to the left'
        )

    def test_filter_must_stand_in_the_pipeline_once(self):
        twice = pipeline('memcache', 'shardmw', 'shardmw')
        assert 'in the pipeline 2 times' in refusal_of(check_order, twice)
        none = pipeline('memcache')
        assert 'in the pipeline 0 times' in refusal_of(check_order, none)

    def test_cache_filter_must_be_there(self):
        message = refusal_of(check_order, pipeline('slo', 'shardmw'))
        assert message.startswith('shardmw: the pipeline has no cache filter')


class TestFiltersThatSwiftAdds:
    @pytest.mark.parametrize('kind', ADDED_BY_SWIFT)
    def test_must_be_named_if_they_would_be_added_on_the_right(self, kind):
        named = [other for other in ADDED_BY_SWIFT if other != kind]
        found = pipeline('memcache', *named, 'shardmw', 'proxy_logging')
        assert refusal_of(check_order, found) == (
            f'shardmw: the pipeline has no {kind}: name it left of '
            'my-shardmw, or Swift adds it on the right'
        )

    def test_may_be_left_out_if_they_would_be_added_on_the_left(self):
        check_order(pipeline('proxy_logging', 'memcache', 'shardmw'))
        check_order(pipeline('memcache', 'shardmw'))

    def test_may_be_left_out_of_an_internal_client(self):
        found = pipeline('memcache', 'shardmw', 'proxy_logging')
        check_order(found._replace(app_conf={}))

    def test_are_added_to_a_proxy_without_a_port(self):
        found = pipeline('gatekeeper', 'memcache', 'shardmw', 'proxy_logging')
        message = refusal_of(check_order, found._replace(app_conf={}))
        assert 'the pipeline has no copy' in message


class TestApp:
    def test_must_look_up_where_rows_go(self):
        conf = {'recheck_updating_shard_ranges': '0'}
        assert refusal_of(check_app, pipeline(app_conf=conf)) == (
            'shardmw: recheck_updating_shard_ranges = 0 in [app:my-proxy]: '
            'must be above 0, or Swift does not send rows to backing '
            'containers'
        )

    @pytest.mark.parametrize('text', ['1', '3600', 'soon'])
    def test_may_look_them_up_at_any_interval(self, text):
        conf = {'recheck_updating_shard_ranges': text}
        check_app(pipeline(app_conf=conf))

    def test_looks_them_up_by_default(self):
        check_app(pipeline())


class TestRateLimits:
    @pytest.mark.parametrize(
        'name', ['container_ratelimit_5', 'container_listing_ratelimit_5']
    )
    def test_in_both_filters_are_refused(self, name):
        stock = Filter('rl', 'ratelimit', {name: '10'})
        ours = parse_options({name: '100'})
        assert refusal_of(check_rate_limits, [stock], ours).startswith(
            f'shardmw: {name} is set in [filter:rl], too: remove {name} there'
        )

    def test_in_swifts_filter_only_are_refused_with_the_lines_to_move(self):
        conf = {'container_ratelimit_0': '10', 'container_ratelimit_9': '5'}
        stock = Filter('rl', 'ratelimit', {'account_ratelimit': '1', **conf})
        message = refusal_of(check_rate_limits, [stock], parse_options({}))
        assert message.startswith(
            'shardmw: container_ratelimit_0 is set in [filter:rl] only: move '
            '"container_ratelimit_0 = 10", "container_ratelimit_9 = 5" to '
            '[filter:shardmw]'
        )

    def test_of_listings_must_move_too(self):
        conf = {'container_listing_ratelimit_5': '1'}
        stock = Filter('rl', 'ratelimit', conf)
        ours = parse_options({'container_ratelimit_0': '1'})
        message = refusal_of(check_rate_limits, [stock], ours)
        assert '"container_listing_ratelimit_5 = 1"' in message

    def test_of_accounts_may_stay(self):
        stock = Filter('rl', 'ratelimit', {'account_ratelimit': '10'})
        ours = parse_options({'container_ratelimit_0': '9'})
        check_rate_limits([stock], ours)

    def test_of_other_filters_do_not_matter(self):
        other = Filter('rl', 'theirs', {'container_ratelimit_0': '10'})
        check_rate_limits([other], parse_options({}))


class TestAccountRatelimit:
    def test_is_none_without_the_filter(self):
        assert account_ratelimit([Filter('slo', 'slo', {})]).rate == 0

    def test_is_that_of_swifts_filter(self):
        conf = {
            'account_ratelimit': '2.5',
            'clock_accuracy': '10000',
            'rate_buffer_seconds': '7',
        }
        stock = Filter('rl', 'ratelimit', conf)
        assert account_ratelimit([stock]) == (2.5, 10000, 7)

    @pytest.mark.parametrize('text', ['0', '-1', 'nan', 'fast', ''])
    def test_of_nothing_is_none(self, text):
        stock = Filter('rl', 'ratelimit', {'account_ratelimit': text})
        assert account_ratelimit([stock]).rate == 0


class TestListings:
    def test_left_of_listing_formats_are_accepted(self):
        check_listings_order(
            pipeline(LISTINGS, 'listing_formats', 's3api', 'shardmw')
        )

    def test_without_shardmw_are_refused(self):
        found = pipeline(LISTINGS, 'listing_formats')
        message = refusal_of(check_listings_order, found)
        assert message.startswith(
            'shardmw-listings: the pipeline has no filter shardmw: take '
            f'my-{LISTINGS} out'
        )

    def test_beside_encryption_are_refused(self):
        kinds = (LISTINGS, 'listing_formats', 'encryption', 'shardmw')
        message = refusal_of(check_listings_order, pipeline(*kinds))
        assert message == (
            'shardmw-listings: the pipeline has encryption, which must '
            f'decrypt listings: take my-{LISTINGS} out of the pipeline'
        )

    def test_right_of_listing_formats_are_refused(self):
        found = pipeline('listing_formats', LISTINGS, 'shardmw')
        assert refusal_of(check_listings_order, found) == (
            f'shardmw-listings: my-{LISTINGS} is right of '
            f'my-listing_formats: move my-{LISTINGS} to the left of '
            'my-listing_formats'
        )

    def test_right_of_shardmw_are_refused(self):
        found = pipeline('listing_formats', 'shardmw', LISTINGS)
        message = refusal_of(check_listings_order, found)
        assert f'move my-{LISTINGS} to the left of my-shardmw' in message

    def test_without_listing_formats_are_refused(self):
        found = pipeline(LISTINGS, 'shardmw')
        message = refusal_of(check_listings_order, found)
        assert 'the pipeline has no listing_formats' in message

    @pytest.mark.parametrize('package', ['swift', 'keystonemiddleware'])
    def test_may_be_carried_around_known_filters(self, package):
        other = Filter('other', 'other', {}, package)
        check_listings_order(with_listings(other))

    def test_are_not_carried_around_unknown_filters(self):
        theirs = Filter('billing', 'billing', {}, 'theirs')
        message = refusal_of(check_listings_order, with_listings(theirs))
        assert f'move billing to the left of my-{LISTINGS}' in message


def with_listings(*between: Filter) -> Pipeline:
    found = pipeline(LISTINGS, 'listing_formats', 'shardmw')
    filters = found.filters
    return found._replace(filters=[*filters[:-1], *between, filters[-1]])


class TestFile:
    def test_without_one_there_is_nothing_to_check(self):
        options = parse_options({})
        assert check_pipeline({}, options) is options
        listing_bypass.filter_factory({})

    def test_whose_app_is_no_pipeline_is_not_checked(self, tmp_path):
        path = tmp_path / 'proxy-server.conf'
        path.write_text('[app:main]\nuse = egg:swift#proxy')
        assert read_pipeline({'__file__': str(path)}) is None

    def test_recognizes_filters_by_their_code(self, conf_of):
        found = read_pipeline(conf_of('cache large shardmw'))
        assert found.kinds == ['memcache', 'slo', 'shardmw']
        assert [each.name for each in found.filters] == [
            'cache',
            'large',
            'shardmw',
        ]
        assert found.filters[1].package == 'swift'
        assert found.app_name == 'proxy-server'

    def test_may_name_filters_by_their_module(self, conf_of):
        module = 'swift.common.middleware.proxy_logging:filter_factory'
        section = f'paste.filter_factory = {module}'
        found = read_pipeline(conf_of('cache shardmw logged', logged=section))
        assert found.kinds[-1] == 'proxy_logging'

    def test_may_be_a_directory(self, conf_of):
        conf = conf_of('cache shardmw')
        directory = Path(conf['__file__']).parent
        assert read_pipeline({'__file__': str(directory)}).kinds == [
            'memcache',
            'shardmw',
        ]

    def test_may_be_a_text(self, conf_of):
        text = Path(conf_of('cache shardmw')['__file__']).read_text()
        found = read_pipeline({'__file__': ConfigString(text)})
        assert found.kinds == ['memcache', 'shardmw']

    def test_in_the_wrong_order_is_refused(self, conf_of):
        conf = conf_of('cache shardmw keymaster proxy-logging')
        message = refusal_of(check_pipeline, conf, parse_options({}))
        assert message.startswith('shardmw: keymaster is right of shardmw')

    def test_gives_the_workers_of_its_proxy(self, conf_of):
        conf = conf_of('cache shardmw', default='workers = 2')
        options = check_pipeline(conf, parse_options({'workers': '2'}))
        assert options.rate_limits.workers == 2
        conf = conf_of('cache shardmw', app='workers = 3')
        proxies = {**conf, 'ratelimit_proxies': '2'}
        options = check_pipeline(proxies, parse_options(proxies))
        assert options.rate_limits.workers == 6

    def test_gives_the_rate_of_accounts(self, conf_of):
        section = 'use = egg:swift#ratelimit\naccount_ratelimit = 20'
        conf = conf_of('cache ratelimit shardmw', ratelimit=section)
        options = check_pipeline(conf, parse_options({}))
        assert options.account_ratelimit == 20
        assert options.account_ratelimit_clock_accuracy == 1000
        assert options.account_ratelimit_buffer_seconds == 5

    def test_may_limit_containers_for_all_filters(self, conf_of):
        limits = 'container_ratelimit_0 = 5'
        conf = conf_of('cache ratelimit shardmw', default=limits)
        ours = parse_options({'container_ratelimit_0': '5'})
        message = refusal_of(check_pipeline, conf, ours)
        assert 'container_ratelimit_0 is set in [filter:ratelimit]' in message

    def test_may_have_options_of_the_app_for_all(self, conf_of):
        wrong = 'recheck_updating_shard_ranges = 0'
        conf = conf_of('cache shardmw', default=wrong)
        message = refusal_of(check_pipeline, conf, parse_options({}))
        assert wrong in message

    def test_may_set_anything_for_all_filters(self, conf_of):
        conf = conf_of('cache shardmw', default='max_shard = 8')
        context = loadcontext(loadwsgi.APP, conf['__file__'])
        check_option_names(context.filter_contexts[-1].local_conf)


class TestListingsFactory:
    def test_accepts_a_pipeline_in_order(self, conf_of):
        names = 'cache shardmw-listings listing_formats shardmw'
        listing_bypass.filter_factory(conf_of(names))

    def test_refuses_a_pipeline_without_shardmw(self, conf_of):
        conf = conf_of('cache shardmw-listings listing_formats')
        message = refusal_of(listing_bypass.filter_factory, conf)
        assert 'the pipeline has no filter shardmw' in message

    def test_refuses_an_option(self):
        with pytest.raises(ConfigError) as err:
            listing_bypass.filter_factory({}, log_levle='INFO')
        assert str(err.value) == (
            'shardmw-listings: unknown option log_levle in '
            '[filter:shardmw-listings]: did you mean log_level?'
        )
