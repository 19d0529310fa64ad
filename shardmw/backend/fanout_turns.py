# SPDX-License-Identifier: Apache-2.0
"""Limit how many requests that read many shards a process serves at once.

One listing of a container with 512 shards sends 512 requests. If a client
sends a hundred such listings, they must not take all of the process's time and
memory. So a client request takes a *turn* before it reads or writes many
backing containers. A process has a bounded number of turns, and each account
has a part of them. Requests without a turn wait in order. Within its turn, a
request takes another kind of turn for each read of one shard, which bounds the
reads that are under way for an account.

A turn is charged to the account whose container is read, and not to that of
the reader: an anonymous reader has no account. So the readers of a public
container can delay each other and its owner, but no other account.
"""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

from shardmw.backend.containers import BackendError
from shardmw.swift.concurrency import Event, Timeout

#: This key is in the environment of a request that has a turn.
TURN_ENV = 'shardmw.turn'


class NoTurn(BackendError):
    """A request has waited too long for a turn."""

    def __init__(self, account: str, seconds: float) -> None:
        super().__init__(
            None,
            503,
            f'no turn for account {account} in {seconds:g} s: see '
            'account_fanout_concurrency',
        )


class Turns:
    """Hands out turns.

    A free turn goes to the account that has the fewest and, of those, to the
    one that has not been given one for longest.

    :param most: the turns of all accounts
    :param most_of_account: the turns that one account can have
    :param wait_seconds: how long a request waits for a turn; None for as long
                         as it takes
    """

    def __init__(
        self,
        most: float,
        most_of_account: int,
        wait_seconds: float | None = None,
    ) -> None:
        self.most = most
        self.most_of_account = most_of_account
        self.wait_seconds = wait_seconds
        # How many turns each account has.
        self._taken: Counter[str] = Counter()
        # The requests that wait, in order.
        self._waiting: dict[str, deque[Event]] = {}

    @contextmanager
    def turn(self, env: dict, account: str) -> Iterator[None]:
        """Hold a turn during a block.

        A block inside another block of the same request uses the turn of that
        block. A request that has a turn must not wait for another request that
        may need one.

        :param env: the environment of the request
        :param account: the account of the container
        :raises NoTurn: if no turn is free in time
        """
        if TURN_ENV in env:
            yield
            return
        self._take(account)
        env[TURN_ENV] = True
        try:
            yield
        finally:
            del env[TURN_ENV]
            self._give_back(account)

    def _take(self, account: str) -> None:
        if account not in self._waiting and self._is_free(account):
            self._taken[account] += 1
            return
        given = Event()
        self._waiting.setdefault(account, deque()).append(given)
        try:
            with Timeout(self.wait_seconds, False):
                given.wait()
                return
        except BaseException:
            self._leave(account, given)
            raise
        self._leave(account, given)
        raise NoTurn(account, self.wait_seconds)

    def _leave(self, account: str, given: Event) -> None:
        """Remove a request that gets no turn from the queue."""
        if given.ready():  # a turn came at the last moment
            self._give_back(account)
            return
        waiting = self._waiting[account]
        waiting.remove(given)
        if not waiting:
            del self._waiting[account]

    def _give_back(self, account: str) -> None:
        self._taken[account] -= 1
        if not self._taken[account]:
            del self._taken[account]
        while free := [each for each in self._waiting if self._is_free(each)]:
            self._give(min(free, key=self._taken.__getitem__))

    def _give(self, account: str) -> None:
        waiting = self._waiting.pop(account)
        self._taken[account] += 1
        waiting.popleft().send()
        if waiting:
            self._waiting[account] = waiting  # the last one now

    def _is_free(self, account: str) -> bool:
        return (
            self._taken.total() < self.most
            and self._taken[account] < self.most_of_account
        )
