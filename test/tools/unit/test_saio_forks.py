# SPDX-License-Identifier: Apache-2.0
"""Runs that are forked from a process that has loaded Swift."""

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from shardmw_saio import forks, processes
from shardmw_saio.forks import Forker, Run
from shardmw_saio.topology import LOCAL

RUNNER = 'runs_a_line'
SOURCE = """
def main(arguments):
    exec(arguments[0])
"""
CONF = """
[swift-hash]
swift_hash_path_suffix = suffix
[swift-constraints]
max_file_size = 5368709123
"""


@pytest.fixture
def forker(tmp_path, monkeypatch) -> Iterator[Forker]:
    (tmp_path / f'{RUNNER}.py').write_text(SOURCE)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path), prepend=os.pathsep)
    (tmp_path / 'swift.conf').write_text(CONF)
    forker = Forker(tmp_path, tmp_path, tmp_path / 'log', LOCAL)
    yield forker
    forker.end()
    assert processes.find(tmp_path) == []


@pytest.fixture
def printed() -> Iterator:
    with tempfile.TemporaryFile('w+') as file:
        yield file


def start(forker: Forker, printed, line: str) -> Run:
    number = printed.fileno()
    return forker.run([RUNNER], [line], number, number)


def text(file) -> str:
    file.seek(0)
    return file.read()


def test_a_run_prints_to_the_files_of_its_caller(forker, printed):
    line = 'import sys; print(1); print(2, file=sys.stderr)'
    assert start(forker, printed, line).wait() == 0
    assert set(text(printed).split()) == {'1', '2'}


def test_runs_go_on_side_by_side(forker, printed):
    slow = start(forker, printed, 'import time; time.sleep(2)')
    assert start(forker, printed, 'pass').wait(1) == 0
    assert slow.wait() == 0


@pytest.mark.parametrize(
    'line, code, told',
    [
        ('raise SystemExit(3)', 3, ''),
        ('raise SystemExit("sorry")', 1, 'sorry'),
        ('1 / 0', 1, 'ZeroDivisionError'),
        ('import nothing_of_this_name', 1, 'ModuleNotFoundError'),
        ('import os; os.kill(os.getpid(), 9)', -signal.SIGKILL, ''),
    ],
)
def test_a_run_returns_its_exit_code(forker, printed, line, code, told):
    assert start(forker, printed, line).wait() == code
    assert told in text(printed)


def test_a_run_is_where_its_caller_is(forker, printed, tmp_path, monkeypatch):
    assert start(forker, printed, 'pass').wait() == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('COLOUR', 'blue')
    line = 'import os; print(os.getcwd(), os.environ["COLOUR"])'
    assert start(forker, printed, line).wait() == 0
    assert text(printed) == f'{tmp_path} blue\n'


def test_what_a_run_starts_is_of_the_cluster(forker, printed, monkeypatch):
    monkeypatch.setenv('NOTIFY_SOCKET', '/nobody')
    names = (processes.MARK, 'NOTIFY_SOCKET')
    line = f'import os; print(*map(os.environ.get, {names}))'
    assert start(forker, printed, line).wait() == 0
    mark, socket = text(printed).split()
    assert mark.endswith(f':{forks.NAME}')
    assert socket == 'None'


def test_a_module_that_cannot_be_loaded_is_shown(forker, printed):
    number = printed.fileno()
    assert forker.run(['nothing'], [], number, number).wait() == 1
    assert "No module named 'nothing'" in text(printed)


def test_a_run_that_takes_too_long_is_killed(forker, printed):
    run = start(forker, printed, 'import time; time.sleep(60)')
    with pytest.raises(TimeoutError):
        run.wait(0.2)
    assert run.wait(5) == -signal.SIGKILL


def test_it_starts_again_if_it_was_ended(forker, printed, tmp_path):
    assert start(forker, printed, 'pass').wait() == 0
    processes.end(tmp_path, lambda each: each.server == forks.NAME, 5)
    assert start(forker, printed, 'pass').wait() == 0


def test_modules_of_swift_read_the_configuration_of_the_cluster(
    forker, printed
):
    line = 'from swift.common import constraints as c; print(c.MAX_FILE_SIZE)'
    assert start(forker, printed, line).wait() == 0
    assert text(printed) == '5368709123\n'
