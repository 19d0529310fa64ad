# SPDX-License-Identifier: Apache-2.0
"""Run the benchmark as a command of its own or in the tests' process."""

import contextlib
import csv
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from shardmw_bench import signals
from shardmw_bench.cli import main
from shardmw_bench.load import stage
from shardmw_bench.load.clients import Clients
from shardmw_bench.results import provenance
from shardmw_bench.site import Runner, Site
from shardmw_bench.targets.account import Account
from shardmw_saio import Cluster, ClusterOptions

from test.functional.conftest import unique

BENCH = (sys.executable, '-m', 'shardmw_bench')
PATIENCE_SECONDS = 600

#: Variables that the tests' environment may have, and commands must not see.
ACCESS_VARIABLES = ('ST_AUTH', 'ST_USER', 'ST_KEY', 'OS_AUTH_TOKEN')


def environment(**also: str) -> dict[str, str]:
    """Return the environment of a command, without access to any cluster."""
    kept = {k: v for k, v in os.environ.items() if k not in ACCESS_VARIABLES}
    return {**kept, **also}


def run_here(*arguments: str, **variables: str) -> Result:
    """Run a command in this process, which saves seconds.

    :param variables: added to its environment
    """
    handlers = {each: signal.getsignal(each) for each in signals.ENDING}
    hidden = dict.fromkeys(ACCESS_VARIABLES)
    with pytest.MonkeyPatch.context() as patch:
        # how busy the machine is does not matter here
        patch.setattr(provenance, '_LOOK_SECONDS', 0.01)
        try:
            runner = CliRunner(env={**hidden, **variables, 'COLUMNS': '160'})
            return runner.invoke(main, arguments)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def own_cluster_is(cluster: Cluster) -> Iterator[None]:
    """Have the benchmark use a running cluster in place of its own ones.

    The cluster gets the benchmark's settings while the benchmark uses it.
    """

    @contextlib.contextmanager
    def site(options: ClusterOptions, run: Runner) -> Iterator[Site]:
        before = cluster.options.settings
        settings = options.settings
        cluster.reconfigure(settings)
        try:
            account = Account.of_cluster(cluster)
            yield Site(account, run, unique('bench'), cluster)
        finally:
            cluster.reconfigure({name: before.get(name) for name in settings})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, 'embedded_site', site)
        yield


def run_bench(
    *arguments: str, **variables: str
) -> subprocess.CompletedProcess:
    """Run a command to its end.

    :param variables: added to its environment
    """
    return subprocess.run(
        [*BENCH, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        stdin=subprocess.DEVNULL,
        env=environment(**variables),
    )


def start_bench(*arguments: str, **variables: str) -> subprocess.Popen:
    """Start a command."""
    return subprocess.Popen(
        [*BENCH, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment(**variables),
    )


def run_on_terminal(*arguments: str, **variables: str) -> tuple[int, str]:
    """Run a command on a terminal; return its exit code and its output."""
    ours, theirs = pty.openpty()
    ran = subprocess.Popen(
        [*BENCH, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(TERM='xterm', COLUMNS='160', **variables),
    )
    os.close(theirs)
    shown = b''
    while received := _read(ours):
        shown += received
    os.close(ours)
    return ran.wait(PATIENCE_SECONDS), shown.decode(errors='replace')


def result_of(folder: Path, words: str) -> Mapping:
    """Return a result that a command kept."""
    return json.loads((folder / f'{words}.json').read_text())


def csv_rows(folder: Path, words: str) -> list[dict[str, str]]:
    """Return the rows of a result's CSV."""
    with (folder / f'{words}.csv').open(newline='') as file:
        return list(csv.DictReader(file))


def runner(clients: Clients) -> Runner:
    """Return a function that runs loads and shows nothing."""
    return lambda load, label: clients.run(load)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # the command has ended
        return b''
