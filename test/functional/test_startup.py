# SPDX-License-Identifier: Apache-2.0
"""What a proxy says of its configuration: a refusal to start, or /info."""

import configparser
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE_SECONDS = 60

DEFAULT_INFO = {
    'default_shards': 0,
    'max_shards': 1024,
    'max_sleep_time_seconds': 60,
    'rate_buffer_seconds': 5,
    'container_ratelimits': [],
    'container_listing_ratelimits': [],
}


class Configuration:
    """A proxy's configuration, which a test changes and starts.

    :param model: the configuration of a proxy that does start
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

    def insert_after(self, neighbour: str, name: str) -> None:
        """Put a filter into the pipeline, right of another."""
        names = [each for each in self.pipeline if each != name]
        names.insert(names.index(neighbour) + 1, name)
        self.pipeline = names

    def add(self, name: str, **options: str) -> None:
        """Configure one more filter."""
        self._conf[f'filter:{name}'] = options

    def start(self) -> subprocess.CompletedProcess:
        """Run the proxy, which is not to come up, to its end."""
        with self.path.open('w') as text:
            self._conf.write(text)
        return subprocess.run(
            [sys.executable, '-m', 'shardmw.saio.launch', 'server']
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
    """Starts the proxy; gives the one line with which it refuses."""

    def refused() -> str:
        done = configuration.start()
        assert done.returncode != 0
        assert done.stderr == ''
        assert done.stdout.count('\n') == 1, done.stdout
        return done.stdout.rstrip('\n')

    return refused


class TestSenselessOption:
    @pytest.mark.parametrize(
        ('option', 'value', 'right'),
        [
            ('default_shards', 'many', 'a whole number from 0 to 1024'),
            ('max_shards', '0', 'a whole number from 1 to 100000'),
            ('fanout_concurrency', '0', 'a whole number from 1 to 1024'),
            ('stats_cache_seconds', '0.5', 'a whole number from 0 to 86400'),
            ('max_sleep_time_seconds', '-1', 'seconds from 0 to 86400'),
            ('rate_buffer_seconds', 'x', 'a whole number from 0 to 86400'),
            ('log_sleep_time_seconds', 'nan', 'seconds from 0 to 86400'),
        ],
    )
    def test_is_refused_with_what_would_be_right(
        self, configuration, refusal, option, value, right
    ):
        configuration.set('shardmw', **{option: value})
        expected = f'shardmw: {option} = {value}: must be {right}'
        assert refusal() == expected

    def test_more_shards_by_default_than_allowed_are_refused(
        self, configuration, refusal
    ):
        configuration.set('shardmw', max_shards='8', default_shards='9')
        assert refusal() == (
            'shardmw: default_shards = 9: must be a whole number from 0 to 8'
        )

    @pytest.mark.parametrize(
        'rule', ['logs=8', 'AUTH_test/logs', 'AUTH_test/logs=x']
    )
    def test_rule_that_is_none_is_refused(self, configuration, refusal, rule):
        configuration.set('shardmw', shard_rules=f'*/ok=2, {rule}')
        assert refusal() == (
            f"shardmw: shard_rules: '{rule}': must be account/container = "
            'shards, globs allowed'
        )

    def test_rule_of_more_shards_than_allowed_is_refused(
        self, configuration, refusal
    ):
        configuration.set('shardmw', max_shards='8', shard_rules='*/logs=9')
        assert refusal() == (
            "shardmw: shard_rules: '*/logs=9': must be at most max_shards = 8"
        )

    @pytest.mark.parametrize(
        ('option', 'value'),
        [
            ('container_ratelimit_0', 'fast'),
            ('container_ratelimit_large', '5'),
        ],
    )
    def test_rate_that_is_no_number_is_refused(
        self, configuration, refusal, option, value
    ):
        configuration.set('shardmw', **{option: value})
        assert refusal().startswith(
            'shardmw: container_ratelimit_SIZE = RATE: both must be numbers'
        )

    def test_rate_of_nothing_is_refused(self, configuration, refusal):
        configuration.set('shardmw', container_ratelimit_100='0')
        assert refusal() == (
            'shardmw: container_ratelimit_100 = 0.0: must be 0.0001 '
            'requests a second or more, for a size of 0 or more'
        )


class TestPipeline:
    @pytest.mark.parametrize('name', ['slo', 'symlink', 's3api'])
    def test_filter_of_logical_containers_must_stand_left(
        self, configuration, refusal, name
    ):
        configuration.insert_after('shardmw', name)
        assert refusal() == (
            f'shardmw: wrong pipeline order: move {name} to the left of '
            'shardmw'
        )

    def test_encryption_must_stand_right(self, configuration, refusal):
        configuration.add('keymaster', use='egg:swift#keymaster')
        configuration.insert_after('symlink', 'keymaster')
        assert refusal() == (
            'shardmw: wrong pipeline order: move keymaster to the right of '
            'shardmw'
        )

    def test_filter_is_told_by_what_it_is_not_by_its_name(
        self, configuration, refusal
    ):
        configuration.add('my-large-objects', use='egg:swift#slo')
        configuration.insert_after('shardmw', 'my-large-objects')
        assert refusal() == (
            'shardmw: wrong pipeline order: move my-large-objects to the '
            'left of shardmw'
        )

    def test_shardmw_twice_is_refused(self, configuration, refusal):
        configuration.add('again', use='egg:shardmw#shardmw')
        configuration.insert_after('shardmw', 'again')
        assert refusal() == 'shardmw: the pipeline must name it exactly once'

    def test_container_rates_in_stock_ratelimit_too_are_refused(
        self, configuration, refusal
    ):
        configuration.set('shardmw', container_ratelimit_0='100')
        configuration.set('ratelimit', container_ratelimit_5='10')
        assert refusal() == (
            'shardmw: container_ratelimit_5 is set in filter ratelimit, too, '
            'which would hold a sharded container to the rate of one: remove '
            'it there'
        )


@pytest.fixture
def reconfigured(cluster):
    """Sets options of the running proxy, for one test."""
    changed = {}

    def reconfigured(**options: str) -> None:
        settings = {f'shardmw.{key}': text for key, text in options.items()}
        changed.update(settings)
        cluster.reconfigure(settings)

    yield reconfigured
    cluster.reconfigure(dict.fromkeys(changed))


@pytest.fixture
def info(client):
    """Asks for what /info tells of the filter."""
    return lambda: client.raw('GET', '/info').json()['shardmw']


class TestInfo:
    def test_tells_the_defaults(self, info):
        assert info() == DEFAULT_INFO

    def test_tells_what_is_set(self, reconfigured, info):
        reconfigured(
            default_shards='2',
            max_shards='8',
            max_sleep_time_seconds='2.5',
            rate_buffer_seconds='3',
            container_ratelimit_0='100',
            container_ratelimit_1000='10',
            container_listing_ratelimit_5='20',
        )
        assert info() == {
            'default_shards': 2,
            'max_shards': 8,
            'max_sleep_time_seconds': 2.5,
            'rate_buffer_seconds': 3,
            'container_ratelimits': [[0, 100], [1000, 10]],
            'container_listing_ratelimits': [[5, 20]],
        }

    def test_does_not_tell_account_names(self, reconfigured, info):
        reconfigured(shard_rules='AUTH_secret/*=4')
        assert info() == DEFAULT_INFO
