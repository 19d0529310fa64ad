# SPDX-License-Identifier: Apache-2.0
"""One run: a cluster, and Swift's tests on it."""

import contextlib
import os
import shutil
import time
from pathlib import Path

from shardmw_saio import Cluster
from shardmw_saio.status import RUNNING
from shardmw_saio.topology import PROXY_KIND

from test.conformance.accounts import create_accounts
from test.conformance.balancer import balancing
from test.conformance.census import take_census
from test.conformance.databases import container_names
from test.conformance.jobs import Job, RunResult
from test.conformance.pytests import Progress, Pytest
from test.conformance.settings import ACCOUNTS, RESELLER_ADMIN, config_text
from test.conformance.shares import count_requests
from test.conformance.storage import make_folder, remove_folder

#: A run that takes longer is ended.
TIMEOUT_SECONDS = 3600

# pytest's exit codes of completed runs: all tests passed, or not all
_COMPLETED = (0, 1)


class Run:
    """A job under way, to be started, watched, and finished or ended.

    :param tests: the folder with Swift's tests
    :param folder: for the cluster, its logs and the report; what an earlier
                   run left there is removed
    """

    def __init__(self, job: Job, tests: Path, folder: Path) -> None:
        self.job = job
        self._tests = tests
        self._folder = folder
        self._storage = folder / 'cluster'
        self._logs = folder / 'log'
        self._cluster: Cluster | None = None
        self._held = contextlib.ExitStack()
        self._pytest: Pytest | None = None
        self._began = 0.0

    def start(self) -> None:
        """Bring the cluster up and start the tests.

        :raises SaioError: if the cluster cannot be brought up
        """
        self._began = time.monotonic()
        self._remove_leftovers()
        make_folder(self._storage)
        self._cluster = self._cluster_there()
        self._held.callback(self._cluster.down)
        self._cluster.up()
        url = self._url()
        users = self._cluster.users
        create_accounts(url, ACCOUNTS, RESELLER_ADMIN, users[RESELLER_ADMIN])
        config = self._folder / 'test.conf'
        config.write_text(config_text(url, users))
        self._pytest = Pytest(
            self.job.suite, self._tests, config, self._folder
        )
        self._held.callback(self._pytest.end)

    def progress(self) -> Progress:
        """Return the progress of the tests."""
        return self._pytest.progress()

    def is_over(self) -> bool:
        """Return True if the tests have ended or take too long."""
        return self._pytest.exit_code() is not None or self._is_late()

    def finish(self) -> RunResult:
        """Take the cluster down, and return the results."""
        problem = self._problem()
        seconds = time.monotonic() - self._began
        self._held.close()
        shards = self.job.variant.shards if self.job.is_sharded else 0
        names = container_names(self._cluster.devices_path)
        census = take_census(names, shards)
        requests = self._requests()
        self.end()
        return RunResult(
            seconds, problem, self._pytest.junit(), census, requests
        )

    def end(self) -> None:
        """End the tests and the cluster; keep the cluster's logs."""
        self._held.close()
        logs = self._storage / 'log'
        if logs.is_dir():
            shutil.copytree(logs, self._logs, dirs_exist_ok=True)
        remove_folder(self._storage)

    def _cluster_there(self) -> Cluster:
        options = self.job.variant.cluster_options(
            self.job.is_sharded, self.job.suite.settings
        )
        return Cluster(self._storage, options)

    def _remove_leftovers(self) -> None:
        self._cluster_there().down()
        remove_folder(self._storage)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)

    def _url(self) -> str:
        """Return the URL that the tests use."""
        urls = self._cluster.proxy_urls
        if self.job.variant.has_balancer:
            return self._held.enter_context(balancing(urls))
        return urls[0]

    def _requests(self) -> dict[str, int]:
        """Return the number of requests that each proxy has logged."""
        requests = {}
        for server in self._cluster.servers.values():
            if server.kind == PROXY_KIND:
                path = self._cluster.log_path(server.name)
                with path.open(errors='replace') as log:
                    requests[server.name] = count_requests(log)
        return requests

    def _is_late(self) -> bool:
        return time.monotonic() > self._began + TIMEOUT_SECONDS

    def _problem(self) -> str:
        """Return why the results cannot be trusted, '' if they can."""
        code = self._pytest.exit_code()
        output = os.path.relpath(self._pytest.output)
        if code is None:
            done, total = self.progress()
            return (
                f'gave up after {TIMEOUT_SECONDS} s, with {done} of {total} '
                f'tests done: {output} has the last one'
            )
        if code not in _COMPLETED:
            return f'pytest ended with {code}: {output} says why'
        dead = [
            each.server.name
            for each in self._cluster.status()
            if each.state != RUNNING
        ]
        if dead:
            log_name = self._cluster.log_path(dead[0]).name
            log = os.path.relpath(self._logs / log_name)
            return f'{", ".join(dead)} died: {log} may say why'
        return ''
