# SPDX-License-Identifier: Apache-2.0
"""Test that a command ends on ^C, whatever its code catches."""

import signal
import subprocess
import sys

import pytest

from shardmw.reshard.errors import FOUND

#: Catches everything, as Swift's filter catch_errors does.
CODE = """
import signal, time
from shardmw.admin.interrupts import interruptible

if {ignored}:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
with interruptible(lambda: 'Interrupted: 3 deleted'):
    print('ready', flush=True)
    for _ in range({tenths}):
        try:
            time.sleep(0.1)
        except BaseException:
            pass
"""


@pytest.mark.parametrize(
    ('ignored', 'tenths', 'ended'),
    [(False, 300, (FOUND, 'Interrupted: 3 deleted\n')), (True, 3, (0, ''))],
    ids=['ends', 'ignores what its shell ignores'],
)
def test_an_interrupt(ignored, tenths, ended):
    code = CODE.format(ignored=ignored, tenths=tenths)
    with subprocess.Popen(
        [sys.executable, '-c', code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == 'ready\n'
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == ended
