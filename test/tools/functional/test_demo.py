# SPDX-License-Identifier: Apache-2.0
"""The demo, as ``make demo`` runs it, with fewer objects."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from test.functional.client import Client

DEMO = (sys.executable, '-m', 'shardmw_demo')
PATIENCE_SECONDS = 240
ENDED_BY_SIGTERM = 128 + signal.SIGTERM


@pytest.fixture
def environment(tmp_path):
    """The environment of a demo whose cluster is in the test's folder."""
    return {**os.environ, 'TMPDIR': str(tmp_path), 'KEEP': ''}


@pytest.fixture
def heeded_sigint():
    """Have a child react to SIGINT, which background jobs ignore."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def run_demo(*arguments, **kwargs):
    """Run the demo to its end."""
    return subprocess.run(
        [*DEMO, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        stdin=subprocess.DEVNULL,
        **kwargs,
    )


def processes_of(folder: Path) -> list[int]:
    """Return the running processes whose environment names a folder."""
    found = []
    for entry in Path('/proc').iterdir():
        try:
            variables = (entry / 'environ').read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in variables:
            found.append(int(entry.name))
    return found


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    """The completed run of a demo, and its folder."""
    folder = tmp_path_factory.mktemp('demo')
    environment = {**os.environ, 'TMPDIR': str(folder), 'KEEP': ''}
    return run_demo('--objects', '200', env=environment), folder


def test_every_step_succeeds(finished):
    demo, _folder = finished
    assert demo.returncode == 0, demo.stderr
    headings = re.findall(r'^ ?(\d+) [A-Z]', demo.stdout, re.MULTILINE)
    assert headings == [str(i + 1) for i in range(11)]
    assert demo.stderr == ''


@pytest.mark.parametrize(
    'shown',
    [
        'X-Container-Shard-Count: 32',
        'X-Container-Object-Count: 200',
        'GET logs?prefix=2026/03/26/&delimiter=/',
        '<!DOCTYPE html>',
        "s3.list_objects_v2(Bucket='logs'",
    ],
)
def test_requests_and_answers_are_shown(finished, shown):
    demo, _folder = finished
    assert shown in demo.stdout


def test_the_rate_of_the_plain_container_is_limited(finished):
    demo, _folder = finished
    rates = re.findall(r'^ +(\d+) a second', demo.stdout, re.MULTILINE)
    plain, _sharded = map(int, rates)
    assert plain <= 21


def test_all_shards_are_shown_with_their_counts(finished):
    demo, _folder = finished
    table = demo.stdout.partition('container databases')[2]
    table = table.partition('A website')[0]
    cells = re.findall(r'(\d+) [█ ]+ (\d+)', table)
    assert sorted(int(shard) for shard, _count in cells) == [*range(32)]
    assert sum(int(count) for _shard, count in cells) == 200


def test_output_fits_a_terminal_of_80_columns(finished):
    demo, _folder = finished
    assert max(len(line) for line in demo.stdout.splitlines()) <= 80


def test_nothing_is_left(finished):
    _demo, folder = finished
    assert processes_of(folder) == []
    assert list(folder.iterdir()) == []


def test_a_kept_cluster_is_up_and_can_be_removed_as_printed(
    tmp_path, environment
):
    environment['KEEP'] = '1'
    demo = run_demo('--objects', '20', '--shards', '4', env=environment)
    assert demo.returncode == 0, demo.stderr
    exported = dict(re.findall(r'export (\w+)=(\S+)', demo.stdout))
    client = Client.login(
        exported['ST_AUTH'], exported['ST_USER'], exported['ST_KEY']
    )
    assert len(client.listing('logs').names()) == 20
    _text, removal = demo.stdout.split('To remove it:\n')
    subprocess.run(removal, shell=True, check=True, capture_output=True)
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures('heeded_sigint')
@pytest.mark.parametrize(
    'number', [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name
)
def test_an_interrupted_demo_leaves_nothing(tmp_path, environment, number):
    with subprocess.Popen(
        DEMO,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        for line in demo.stdout:
            if 'one container takes logs' in line:
                break
        demo.send_signal(number)
        _output, errors = demo.communicate(timeout=PATIENCE_SECONDS)
    assert demo.returncode in (1, ENDED_BY_SIGTERM), errors
    assert 'Traceback' not in errors
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_one_line(tmp_path, environment):
    environment['PATH'] = str(tmp_path)
    demo = run_demo(env=environment)
    assert demo.returncode == 1
    assert demo.stderr == (
        'Error: memcached is not on the PATH: install it, such as with apt '
        'install memcached\n'
    )
    assert list(tmp_path.iterdir()) == []
