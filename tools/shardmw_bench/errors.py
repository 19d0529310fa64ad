# SPDX-License-Identifier: Apache-2.0
"""Errors of the benchmark, and their texts."""

import sqlite3


class BenchError(Exception):
    """A failure that a user can act on, described in one line."""


class Interrupted(BaseException):
    """A signal ended the command. Not caught by ``except Exception``.

    :param signal_number: None for SIGINT
    :param outcome: the Outcome of the interrupted load, if there was one
    """

    def __init__(
        self, signal_number: int | None = None, outcome: object = None
    ) -> None:
        super().__init__('interrupted')
        self.signal_number = signal_number
        self.outcome = outcome


def failure_text(err: Exception) -> str | None:
    """Return one line about a failure; None if it deserves a traceback."""
    # imported late, since it is slow
    from shardmw_saio.errors import SaioError

    if isinstance(err, BenchError | SaioError):
        return str(err)
    # the reader of the output has gone
    if isinstance(err, BrokenPipeError):
        return None
    if isinstance(err, OSError):
        place = f'{err.filename}: ' if err.filename else ''
        return f'{place}{err.strerror or str(err) or type(err).__name__}'
    if isinstance(err, sqlite3.OperationalError):
        return f'a database failed: {err}'
    return None
