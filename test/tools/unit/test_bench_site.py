# SPDX-License-Identifier: Apache-2.0
"""How a site deletes what it has made."""

import pytest
from shardmw_bench import site as sites
from shardmw_bench.errors import BenchError
from shardmw_bench.kinds import PLAIN
from shardmw_bench.load.outcome import Outcome, table_of
from shardmw_bench.site import Site
from shardmw_bench.targets.account import ContainerHead


class Account:
    """An account and a runner of loads in one.

    :param late: names that appear just before each of the first deletions
    """

    proxy_urls = ('http://a',)
    is_insecure = False

    def __init__(self, *late: str) -> None:
        self.token = 'token'
        self.containers: dict[str, set[str]] = {}
        self.late = [*late]

    def container_path(self, container: str) -> str:
        return container

    def put(self, container: str, kind, policy) -> None:
        self.containers[container] = set()

    def head(self, container: str) -> ContainerHead | None:
        found = self.containers.get(container)
        return None if found is None else ContainerHead(len(found), None)

    def refresh(self, container: str) -> None:
        pass

    def names(self, container: str) -> list[str]:
        return sorted(self.containers[container])

    def renew(self) -> None:
        pass

    def delete(self, container: str) -> int:
        if self.late:
            self.containers[container].add(self.late.pop())
        if self.containers[container]:
            return 409
        del self.containers[container]
        return 204

    def run(self, load, label: str) -> Outcome:
        names = self.containers[load.source.container_path]
        names.clear()
        return Outcome(('DELETE',), table_of(b''), 0.0, 0.0, 1.0, 0.0)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(sites, '_DELETE_PAUSES_SECONDS', (0, 0, 0))


def site_of(account: Account) -> Site:
    site = Site(account, account.run, 'bench')
    site.make(PLAIN)
    return site


def test_objects_that_arrive_after_a_container_was_emptied_are_deleted():
    account = Account('a', 'b')
    site_of(account).cleanup()
    assert account.containers == {}


def test_objects_that_keep_arriving_are_reported_with_what_is_left():
    with pytest.raises(
        BenchError, match='cannot be deleted: .* 409; left there: bench-001'
    ):
        site_of(Account('a', 'b', 'c')).cleanup()
