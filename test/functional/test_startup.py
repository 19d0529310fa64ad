# SPDX-License-Identifier: Apache-2.0
"""How a proxy reports its configuration: refusals to start, and /info."""

import configparser
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shardmw import __version__

PATIENCE_SECONDS = 60

DEFAULT_INFO = {
    'version': __version__,
    'default_shards': 0,
    'default_depth': 0,
    'max_depth': 16,
    'max_shards': 1024,
    'client_max_shards': 64,
    'unordered_listings': True,
    'listing_max_age': 0,
    'head_cache_seconds': 5,
    'max_sleep_time_seconds': 60,
    'rate_buffer_seconds': 5,
    'container_ratelimits': [],
    'container_listing_ratelimits': [],
}


class Configuration:
    """A proxy's configuration, with which a test starts the proxy.

    :param model: a configuration with which a proxy does start
    """

    def __init__(self, model: Path, path: Path) -> None:
        self.path = path
        self._conf = configparser.RawConfigParser()
        self._conf.optionxform = str
        self._conf.read(model)

    @property
    def pipeline(self) -> list[str]:
        return self._conf['pipeline:main']['pipeline'].split()

    @pipeline.setter
    def pipeline(self, names: list[str]) -> None:
        self._conf['pipeline:main']['pipeline'] = ' '.join(names)

    def set(self, name: str, **options: str) -> None:
        """Set options of a filter."""
        self._conf[f'filter:{name}'].update(options)

    def set_app(self, **options: str) -> None:
        """Set options of the proxy app."""
        self._conf['app:proxy-server'].update(options)

    def insert_after(self, neighbour: str, name: str) -> None:
        """Put a filter into the pipeline, right of another."""
        names = [each for each in self.pipeline if each != name]
        names.insert(names.index(neighbour) + 1, name)
        self.pipeline = names

    def remove(self, name: str) -> None:
        """Take a filter out of the pipeline."""
        self.pipeline = [each for each in self.pipeline if each != name]

    def add(self, name: str, **options: str) -> None:
        """Configure one more filter."""
        self._conf[f'filter:{name}'] = options

    def start(self) -> subprocess.CompletedProcess:
        """Run the proxy, which must refuse to start, to its end."""
        with self.path.open('w') as text:
            self._conf.write(text)
        return subprocess.run(
            [sys.executable, '-m', 'shardmw_saio.launch', 'server']
            + ['proxy-server', self.path, self.path.with_suffix('.log')],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )


@pytest.fixture
def configuration(cluster, tmp_path) -> Configuration:
    """A copy of a proxy's configuration."""
    etc = cluster.path / 'etc'
    shutil.copy(etc / 'swift.conf', tmp_path)
    return Configuration(etc / 'proxy-1.conf', tmp_path / 'proxy.conf')


@pytest.fixture
def refusal(configuration) -> Callable[[], str]:
    """Return a function that returns the line of the proxy's refusal."""

    def refused() -> str:
        done = configuration.start()
        assert done.returncode != 0
        assert done.stderr == ''
        assert done.stdout.count('\n') == 1, done.stdout
        return done.stdout.rstrip('\n')

    return refused


class TestWrongOption:
    @pytest.mark.parametrize(
        ('option', 'value', 'right'),
        [
            ('default_shards', 'many', 'a whole number from 0 to 1024'),
            ('max_shards', '1025', 'a whole number from 0 to 1024'),
            ('client_max_shards', '-1', 'a whole number from 0 to 1024'),
            ('fanout_concurrency', '0', 'a whole number from 1 to 1024'),
            ('stats_cache_seconds', '0.5', 'a whole number from 0 to 86400'),
            ('max_sleep_time_seconds', '-1', 'seconds from 0 to 86400'),
            ('rate_buffer_seconds', 'x', 'a whole number from 0 to 86400'),
            ('log_sleep_time_seconds', 'nan', 'seconds from 0 to 86400'),
        ],
    )
    def test_is_refused_with_the_allowed_values(
        self, configuration, refusal, option, value, right
    ):
        configuration.set('shardmw', **{option: value})
        expected = f'shardmw: {option} = {value}: must be {right}'
        assert refusal() == expected

    @pytest.mark.parametrize('max_shards', ['0', '8'])
    def test_more_shards_by_default_than_allowed_are_refused(
        self, configuration, refusal, max_shards
    ):
        configuration.set('shardmw', max_shards=max_shards, default_shards='9')
        assert refusal() == (
            'shardmw: default_shards = 9: must be at most max_shards = '
            f'{max_shards}'
        )

    @pytest.mark.parametrize(
        'rule', ['logs=8', 'AUTH_test/logs', 'AUTH_test/logs=x']
    )
    def test_invalid_rule_is_refused(self, configuration, refusal, rule):
        configuration.set('shardmw', shard_rules=f'*/ok=2, {rule}')
        assert refusal() == (
            f"shardmw: shard_rules: '{rule}': must be account/container = "
            'shards [depth k] [listing_max_age seconds], globs allowed'
        )

    def test_rule_of_more_shards_than_allowed_is_refused(
        self, configuration, refusal
    ):
        configuration.set('shardmw', max_shards='8', shard_rules='*/logs=9')
        assert refusal() == (
            "shardmw: shard_rules: '*/logs=9': must be at most max_shards = 8"
        )

    @pytest.mark.parametrize('rate', ['0', 'fast'])
    def test_invalid_rate_is_refused_by_its_name(
        self, configuration, refusal, rate
    ):
        configuration.set('shardmw', container_ratelimit_100=rate)
        assert refusal() == (
            f'shardmw: container_ratelimit_100 = {rate}: must be 0.0001 or '
            'more requests a second'
        )

    def test_rate_for_an_invalid_size_is_refused_by_its_name(
        self, configuration, refusal
    ):
        configuration.set('shardmw', container_ratelimit_large='5')
        assert refusal() == (
            "shardmw: container_ratelimit_large = 5: 'large' must be a whole "
            'number of objects, as in container_ratelimit_1000 = 20'
        )

    @pytest.mark.parametrize(
        ('name', 'option', 'advice'),
        [
            ('shardmw', 'defualt_shards', 'did you mean default_shards?'),
            ('shardmw', 'colour', 'remove it'),
            ('shardmw-listings', 'log_levle', 'did you mean log_level?'),
        ],
    )
    def test_unknown_option_is_refused_with_advice(
        self, configuration, refusal, name, option, advice
    ):
        configuration.set(name, **{option: '8'})
        assert refusal() == (
            f'{name}: unknown option {option} in [filter:{name}]: {advice}'
        )

    def test_app_that_does_not_look_up_shard_ranges_is_refused(
        self, configuration, refusal
    ):
        configuration.set_app(recheck_updating_shard_ranges='0')
        assert refusal() == (
            'shardmw: recheck_updating_shard_ranges = 0 in '
            '[app:proxy-server]: must be above 0, or Swift does not send '
            'rows to backing containers'
        )


ONLY_LOGGING = 'only proxy_logging may be between shardmw and the proxy app'


class TestPipeline:
    @pytest.mark.parametrize('name', ['slo', 'symlink', 'healthcheck'])
    def test_other_filter_on_the_right_is_refused(
        self, configuration, refusal, name
    ):
        configuration.insert_after('shardmw', name)
        assert refusal() == (
            f'shardmw: {name} is right of shardmw: move {name} to the '
            f'left: {ONLY_LOGGING}'
        )

    def test_encryption_on_the_right_is_refused(self, configuration, refusal):
        configuration.add('keymaster', use='egg:swift#keymaster')
        configuration.insert_after('shardmw', 'keymaster')
        assert refusal() == (
            'shardmw: keymaster is right of shardmw: move keymaster to '
            f'the left: {ONLY_LOGGING}'
        )

    def test_filter_is_recognized_by_its_code_not_by_its_name(
        self, configuration, refusal
    ):
        configuration.add('proxy-logging-2', use='egg:swift#slo')
        configuration.insert_after('shardmw', 'proxy-logging-2')
        assert refusal() == (
            'shardmw: proxy-logging-2 is right of shardmw: move '
            f'proxy-logging-2 to the left: {ONLY_LOGGING}'
        )

    def test_shardmw_twice_is_refused(self, configuration, refusal):
        configuration.add('again', use='egg:shardmw#shardmw')
        configuration.insert_after('shardmw', 'again')
        assert refusal() == (
            'shardmw: it is in the pipeline 2 times: list it exactly once'
        )

    def test_without_cache_is_refused(self, configuration, refusal):
        configuration.remove('cache')
        assert refusal() == (
            'shardmw: the pipeline has no cache filter (egg:swift#memcache): '
            'name one left of shardmw: without it Swift does not send rows '
            'to backing containers. Its servers may be down'
        )

    def test_filter_that_swift_would_add_on_the_right_must_be_named(
        self, configuration, refusal
    ):
        configuration.remove('copy')
        configuration.remove('proxy-logging')
        configuration.insert_after('shardmw', 'proxy-logging')
        assert refusal() == (
            'shardmw: the pipeline has no copy: name it left of shardmw, or '
            'Swift adds it on the right'
        )


class TestContainerRates:
    def test_in_both_filters_are_refused(self, configuration, refusal):
        configuration.set('shardmw', container_ratelimit_0='100')
        configuration.set('ratelimit', container_ratelimit_5='10')
        assert refusal() == (
            'shardmw: container_ratelimit_5 is set in [filter:ratelimit], '
            'too: remove container_ratelimit_5 there, or two filters limit '
            'the same requests'
        )

    @pytest.mark.parametrize(
        'name', ['container_ratelimit_5', 'container_listing_ratelimit_5']
    )
    def test_in_swifts_filter_only_are_refused(
        self, configuration, refusal, name
    ):
        configuration.set('ratelimit', **{name: '10'})
        assert refusal() == (
            f'shardmw: {name} is set in [filter:ratelimit] only: move '
            f'"{name} = 10" to [filter:shardmw], which limits plain '
            'containers, too: ratelimit takes a sharded container for an '
            'empty one, so that clients could escape its limits'
        )


class TestListingsFilter:
    NAME = 'shardmw-listings'

    def test_right_of_listing_formats_is_refused(self, configuration, refusal):
        configuration.insert_after('listing_formats', self.NAME)
        assert refusal() == (
            'shardmw-listings: shardmw-listings is right of '
            'listing_formats: move shardmw-listings to the left of '
            'listing_formats'
        )

    def test_right_of_shardmw_is_refused(self, configuration, refusal):
        configuration.insert_after('shardmw', self.NAME)
        assert refusal() == (
            'shardmw-listings: shardmw-listings is right of shardmw: move '
            'shardmw-listings to the left of shardmw'
        )

    def test_without_shardmw_is_refused(self, configuration, refusal):
        configuration.remove('shardmw')
        assert refusal() == (
            'shardmw-listings: the pipeline has no filter shardmw: take '
            'shardmw-listings out, or name shardmw (egg:shardmw#shardmw) as '
            'the last filter'
        )

    def test_beside_encryption_is_refused(self, configuration, refusal):
        secret = {'encryption_root_secret': 'A' * 44}
        configuration.add('keymaster', use='egg:swift#keymaster', **secret)
        configuration.add('encryption', use='egg:swift#encryption')
        configuration.insert_after('symlink', 'keymaster')
        configuration.insert_after('keymaster', 'encryption')
        assert refusal() == (
            'shardmw-listings: the pipeline has encryption, which must '
            'decrypt listings: take shardmw-listings out of the pipeline'
        )

    def test_without_listing_formats_is_refused(self, configuration, refusal):
        configuration.remove('listing_formats')
        assert refusal() == (
            'shardmw-listings: the pipeline has no listing_formats: name it '
            'right of shardmw-listings, or Swift adds it on the left'
        )


@pytest.fixture
def reconfigured(cluster):
    """Return a function that sets the proxy's options until the test ends."""
    changed = {}

    def reconfigured(**options: str) -> None:
        settings = {f'shardmw.{key}': text for key, text in options.items()}
        changed.update(settings)
        cluster.reconfigure(settings)

    yield reconfigured
    cluster.reconfigure(dict.fromkeys(changed))


@pytest.fixture
def whole_info(client):
    """Return a function that gets the filter's section of /info."""
    return lambda: client.raw('GET', '/info').json()['shardmw']


@pytest.fixture
def info(whole_info):
    """Return a function that gets what /info shows to clients."""

    def shown() -> dict:
        section = whole_info()
        del section['digests']
        return section

    return shown


class TestInfo:
    def test_shows_the_defaults(self, info):
        assert info() == DEFAULT_INFO

    def test_shows_the_options_that_are_set(self, reconfigured, info):
        reconfigured(
            default_shards='2',
            default_depth='1',
            max_shards='8',
            client_max_shards='4',
            listing_max_age='30',
            max_sleep_time_seconds='2.5',
            rate_buffer_seconds='3',
            container_ratelimit_0='100',
            container_ratelimit_1000='10',
            container_listing_ratelimit_5='20',
        )
        assert info() == {
            'default_shards': 2,
            'default_depth': 1,
            'version': __version__,
            'max_depth': 16,
            'max_shards': 8,
            'client_max_shards': 4,
            'unordered_listings': True,
            'listing_max_age': 30,
            'head_cache_seconds': 5,
            'max_sleep_time_seconds': 2.5,
            'rate_buffer_seconds': 3,
            'container_ratelimits': [[0, 100], [1000, 10]],
            'container_listing_ratelimits': [[5, 20]],
        }

    def test_does_not_show_account_names(self, reconfigured, info):
        reconfigured(shard_rules='AUTH_secret/*=4')
        assert info() == DEFAULT_INFO

    def test_shows_digests_that_change_with_what_they_stand_for(
        self, reconfigured, whole_info
    ):
        before = whole_info()['digests']
        assert {*before} == {'hash_path', 'memcache', 'options'}
        assert all(re.fullmatch('[0-9a-f]{16}', x) for x in before.values())
        reconfigured(shard_rules='AUTH_secret/*=4')
        after = whole_info()['digests']
        assert after.pop('options') != before.pop('options')
        assert after == before
