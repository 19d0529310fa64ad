# SPDX-License-Identifier: Apache-2.0
"""Count the requests to storage servers that one client request causes."""

import re
import time
from collections.abc import Callable
from pathlib import Path

from shardmw_saio import Cluster
from shardmw_saio.logs import lines, size

PAGE = Path(__file__).parents[2] / 'doc' / 'access.md'

STORAGE_LOGS = ('account-*.log', 'container-*.log', 'object-*.log')

#: How often a request is sent at most until it has the documented cost.
ATTEMPTS = 5

#: The space that stands for multiplication in the page's formulas.
FACTOR = re.compile(r'(?<=[\w)]) (?=[NR(])')


class StorageRequests:
    """Counts requests by the access logs of a cluster's storage servers.

    A storage server logs a request before it answers. With several replicas,
    a proxy does not wait for the last answer.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._folder = cluster.path / 'log'
        self._wait_seconds = 0.2 if cluster.options.replicas > 1 else 0

    def behind(self, ask: Callable[[], str]) -> int:
        """Return how many requests a client's request has caused.

        :param ask: sends the request and returns its transaction ID
        """
        logs = [
            log
            for pattern in STORAGE_LOGS
            for log in self._folder.glob(pattern)
        ]
        starts = {log: size(log) for log in logs}
        field = f'"{ask()}"'
        time.sleep(self._wait_seconds)
        return sum(
            field in line
            for log, start in starts.items()
            for line in lines(log, start)
        )

    def usually_behind(self, ask: Callable[[], str], said: int) -> int:
        """Return how many requests a request to a container in use causes.

        A request costs more if a worker has to look up what it caches for a
        second or a minute, so other counts than the documented one are
        measured again.

        :param said: the documented count
        """
        for _ in range(ATTEMPTS):
            found = self.behind(ask)
            if found == said:
                break
        return found


def table(heading: str) -> dict[str, list[str]]:
    """Return the rows of the first table of a section, by their first cells.

    :param heading: the section's heading
    """
    _, _, section = PAGE.read_text().partition(f'## {heading}\n')
    _, _, rest = section.partition('\n| --- ')
    body, _, _ = rest.partition('\n\n')
    rows = [
        [cell.strip() for cell in line.strip('| ').split(' | ')]
        for line in body.splitlines()[1:]
    ]
    return {first: rest for first, *rest in rows}


def cost(formula: str, shards: int, replicas: int) -> int:
    """Return the value of a formula such as ``R (N + 1) + min(N, 8)``."""
    names = {'__builtins__': {'min': min}, 'N': shards, 'R': replicas}
    return eval(FACTOR.sub('*', formula), names)
