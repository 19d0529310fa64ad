# SPDX-License-Identifier: Apache-2.0
"""The accounts and containers that one process of the daemon looks after."""

from collections.abc import Collection, Iterator

from swift.common.utils import hash_path

from shardmw.backend.containers import BackendError
from shardmw.core.paths import Path
from shardmw.reshard.register import Register
from shardmw.swift.concurrency import Timeout


class Scope:
    """Lists the accounts and containers that one process looks after.

    :param accounts: accounts to look at that the register may lack
    :param processes: how many processes divide the containers; 0 or 1: all
                      belong to this one
    :param process: the number of this one, from 0
    """

    def __init__(
        self,
        register: Register,
        logger,
        accounts: Collection[str] = (),
        processes: int = 0,
        process: int = 0,
    ) -> None:
        self.register = register
        self.logger = logger
        self.named = accounts
        self.processes = processes
        self.process = process
        self._problem = ''

    def accounts(self) -> list[str]:
        """Return the accounts of all processes, in order."""
        registered = self.until_error('register', self.register.accounts())
        return sorted({*registered, *self.named})

    def changes(self) -> Iterator[Path]:
        """List the registered containers of this process."""
        for account in self.until_error('register', self.register.accounts()):
            changes = self.register.changes(account)
            for path in self.until_error(f'changes of {account}', changes):
                if self.has(path):
                    yield path

    def has(self, path: Path) -> bool:
        """Return True if a container belongs to this process."""
        if not self.processes:
            return True
        digest = int(hash_path(path.account, path.container), 16)
        return digest % self.processes == self.process

    def until_error(self, what: str, items: Iterator) -> Iterator:
        """Yield the items of a listing, and report an error that ends it."""
        try:
            yield from items
        except (Exception, Timeout) as err:
            self.report(what, err)

    def report(self, what: str, err: BaseException) -> None:
        """Log and keep the error that has ended a listing."""
        if isinstance(err, BackendError):
            self._problem = f'{what}: cannot be listed: {err}'
            self.logger.error('%s: cannot be listed: %s', what, err)
        else:
            self._problem = f'{what}: {type(err).__name__}'
            self.logger.exception('%s: unexpected error', what)

    def take_problem(self) -> str:
        """Return the last error since the last call, '' for none."""
        problem, self._problem = self._problem, ''
        return problem
