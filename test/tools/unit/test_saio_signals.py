# SPDX-License-Identifier: Apache-2.0
"""Signals that end a command."""

import signal
import subprocess
import sys

import pytest

#: A program that ends only if a signal during a destructor is handled.
PROGRAM = """
import signal, sys, time
from shardmw_saio.signals import raise_at_signals

class Destroyed:
    def __del__(self):
        signal.raise_signal(int(sys.argv[1]))
        time.sleep(0)

signal.signal(signal.SIGINT, signal.default_int_handler)
raise_at_signals()
try:
    Destroyed()
    time.sleep(60)
    print('not ended')
finally:
    print('cleaned up')
"""

OTHER = """
from shardmw_saio.signals import raise_at_signals

class Destroyed:
    def __del__(self):
        raise ValueError('a defect')

raise_at_signals()
Destroyed()
"""


def run(program, *arguments):
    """Run a program; return the finished process."""
    return subprocess.run(
        [sys.executable, '-c', program, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ('number', 'code'),
    [
        (signal.SIGINT, -signal.SIGINT),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
    ],
    ids=lambda each: getattr(each, 'name', ''),
)
def test_a_signal_during_a_destructor_ends_the_program(number, code):
    ended = run(PROGRAM, str(int(number)))
    assert ended.returncode == code, ended.stderr
    assert ended.stdout == 'cleaned up\n'
    assert 'ignored' not in ended.stderr


def test_other_errors_of_destructors_are_shown():
    ended = run(OTHER)
    assert ended.returncode == 0
    assert 'ValueError: a defect' in ended.stderr
