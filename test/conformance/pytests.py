# SPDX-License-Identifier: Apache-2.0
"""A pytest process that runs some of Swift's tests."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from test.conformance.suites import Suite

_PATIENCE_SECONDS = 5
_TAIL_BYTES = 4096

# Variables that could direct the tests, or their clients, to other servers.
_FOREIGN = ('AWS_', 'BOTO', 'OS_', 'PYTEST_', 'ST_', 'SWIFT_TEST_')

_COUNTER = re.compile(r'\[ *(\d+)/(\d+)\]')


class Progress(NamedTuple):
    """The number of tests done and in total; both 0 while unknown."""

    done: int
    total: int


def progress_in(output: str) -> Progress:
    """Return the progress that pytest has printed last."""
    counters = _COUNTER.findall(output)
    done, total = counters[-1] if counters else (0, 0)
    return Progress(int(done), int(total))


class Pytest:
    """A pytest process, which the constructor starts.

    :param suite: the suite to run
    :param tests: the folder with Swift's tests
    :param config: the file that tells the tests where the cluster is
    :param folder: for the log and the report
    """

    def __init__(
        self, suite: Suite, tests: Path, config: Path, folder: Path
    ) -> None:
        self.output = folder / 'pytest.log'
        self._report = folder / 'junit.xml'
        with self.output.open('wb') as output:
            self._process = subprocess.Popen(
                self._command(suite, tests),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=tests,
                env=_environment(config),
                # a Ctrl-C reaches only this process, which then ends pytest
                start_new_session=True,
            )

    def progress(self) -> Progress:
        """Return the progress of the tests."""
        return progress_in(_tail(self.output))

    def exit_code(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._process.poll()

    def junit(self) -> str:
        """Return the report, or '' if there is none."""
        with contextlib.suppress(FileNotFoundError):
            return self._report.read_text()
        return ''

    def end(self) -> None:
        """End the process, if it runs, and all that it has started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_SECONDS)

    def _command(self, suite: Suite, tests: Path) -> list[str]:
        return [
            *(sys.executable, '-m', 'pytest', '-v', '--tb=short'),
            # ignore any configuration file
            *('-c', os.devnull, '--rootdir', str(tests)),
            *('-p', 'no:cacheprovider'),
            *('-o', 'console_output_style=count'),
            *('-o', 'python_files=test_*.py tests.py'),
            f'--junitxml={self._report}',
            *(f'--deselect={each}' for each in suite.without),
            *suite.paths,
        ]


def _environment(config: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN)
        and not name.lower().endswith('_proxy')
    }
    return {
        **kept,
        'SWIFT_TEST_CONFIG_FILE': str(config),
        'SWIFT_TEST_QUIET_BOTO_LOGS': '1',
        # ignore the user's own configuration of the clients
        'AWS_CONFIG_FILE': os.devnull,
        'AWS_SHARED_CREDENTIALS_FILE': os.devnull,
        'BOTO_CONFIG': os.devnull,
    }


def _tail(path: Path) -> str:
    with path.open('rb') as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - _TAIL_BYTES))
        return log.read().decode(errors='replace')
