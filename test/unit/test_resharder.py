# SPDX-License-Identifier: Apache-2.0
"""The daemon that changes layouts: its configuration, and what it logs."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from swift.common.exceptions import ChunkReadTimeout

from shardmw import resharder
from shardmw.backend.containers import BackendError
from shardmw.config import ConfigError
from shardmw.layout.resharding import Progress
from shardmw.resharder import SECTION, Resharder
from test.unit.fakeswift import Logger

COMMAND = 'from shardmw.commands import resharder; resharder()'


@pytest.fixture
def conf(tmp_path) -> Path:
    return tmp_path / 'shardmw-resharder.conf'


def write(conf: Path, line: str, section: str = SECTION) -> None:
    conf.write_text(f'[{section}]\n{line}\n')


@pytest.mark.parametrize(
    ('option', 'value', 'allowed'),
    [
        ('interval', 'often', 'a number, 0 or more'),
        ('interval', '-1', 'a number, 0 or more'),
        ('interval', 'inf', 'a number, 0 or more'),
        ('interval', 'nan', 'a number, 0 or more'),
        ('late_rows_interval', 'daily', 'a number, 0 or more'),
        ('reclaim_age', '7d', 'a number, 0 or more'),
        ('settle_seconds', '-5', 'a number, 0 or more'),
        ('info_cache_seconds', 'car', 'auto, or a number, 0 or more'),
        ('info_cache_seconds', '-1', 'auto, or a number, 0 or more'),
        ('concurrency', '0', 'a whole number, 1 or more'),
        ('concurrency', '1.5', 'a whole number, 1 or more'),
        ('rows_per_shard', '0', 'a whole number, 1 or more'),
        ('rows_per_shard', '1e6', 'a whole number, 1 or more'),
        ('rows_per_second', '-1', 'a whole number, 0 or more'),
        ('processes', '-1', 'a whole number, 0 or more'),
        ('process', 'first', 'a whole number, 0 or more'),
        ('process', '-1', 'a whole number, 0 or more'),
        ('auto_reshard', 'maybe', 'true or false'),
        ('auto_shrink', '2', 'true or false'),
        ('ask_for_objects', 'ja', 'true or false'),
    ],
)
def test_a_wrong_value_is_refused_and_the_allowed_ones_are_named(
    conf, option, value, allowed
):
    write(conf, f'{option} = {value}')
    with pytest.raises(ConfigError) as raised:
        Resharder({'__file__': str(conf), option: value})
    text = f'{SECTION}: {option} = {value}: must be {allowed}'
    assert str(raised.value) == text


def test_a_process_must_be_one_of_the_processes(conf):
    write(conf, '')
    options = {'processes': '2', 'process': '2'}
    with pytest.raises(ConfigError, match='must be less than processes = 2'):
        Resharder({'__file__': str(conf), **options})


@pytest.mark.parametrize(
    ('error', 'line'),
    [
        (
            BackendError(None, 503),
            'AUTH_a: cannot be listed: the root answered 503',
        ),
        (ChunkReadTimeout(None), 'AUTH_a: unexpected error'),
        (ValueError('half a page'), 'AUTH_a: unexpected error'),
    ],
)
def test_a_listing_that_breaks_off_is_logged_and_ends(error, line):
    def rows() -> Iterator[str]:
        yield 'first'
        raise error

    daemon = object.__new__(Resharder)
    daemon.logger = Logger()
    assert list(daemon._read('AUTH_a', rows())) == ['first']
    assert daemon.logger.lines == [line]


def test_a_change_that_waits_for_its_turn_says_so(monkeypatch):
    daemon = object.__new__(Resharder)
    daemon.logger = Logger()
    daemon.logger.info = daemon.logger.warning
    daemon.concurrency, daemon.turn_text = 1, 'others move rows'
    daemon._moving = {('AUTH_a', 'other')}
    daemon._progress, daemon._states = {}, {}
    monkeypatch.setattr(
        resharder, 'sleep', lambda _seconds: daemon._moving.clear()
    )
    noted = []
    progress = Progress('moving', 7)
    daemon._take_turn(('AUTH_a', 'c'), progress, noted.append)
    waiting = Progress('moving', 7, problem='others move rows')
    assert noted == [waiting, progress]
    assert daemon._moving == {('AUTH_a', 'c')}


@pytest.mark.parametrize(
    ('section', 'line', 'message'),
    [
        (
            SECTION,
            'auto_reshrad = true',
            'Error: shardmw-resharder: unknown option auto_reshrad in '
            '[shardmw-resharder]: did you mean auto_reshard?',
        ),
        (
            SECTION,
            'concurrency = many',
            'Error: shardmw-resharder: concurrency = many: must be a whole '
            'number, 1 or more',
        ),
        (
            'other',
            '',
            'Unable to find shardmw-resharder config section in {conf}',
        ),
        (
            SECTION,
            'swift_dir = {folder}',
            'Error: {folder}/swift.conf: no such file: name its folder with '
            '--swift-dir, in a file of the daemon with swift_dir',
        ),
    ],
)
def test_the_command_ends_with_one_line(conf, section, line, message):
    folder = conf.parent
    write(conf, line.format(folder=folder), section)
    ran = subprocess.run(
        [sys.executable, '-c', COMMAND, str(conf), 'once'],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    assert ran.stderr == message.format(conf=conf, folder=folder) + '\n'


def test_the_command_tells_of_a_file_without_sections_in_one_line(conf):
    conf.write_text('garbage')
    ran = subprocess.run(
        [sys.executable, '-c', COMMAND, str(conf), 'once'],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith('Error: File contains no section headers. ')
