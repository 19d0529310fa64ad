# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, said in one line."""

import sqlite3


class BenchError(Exception):
    """What was wrong and what to do, in one line for the user's eyes."""


class Interrupted(BaseException):
    """The command was told to end; what it has is kept, then it does.

    Not an :class:`Exception`, so that nothing takes it for a failure.

    :param signal_number: what told it; SIGINT if None
    :param outcome: of the load that it broke off, if there was one: see
                    :class:`shardmw.bench.load.outcome.Outcome`
    """

    def __init__(
        self, signal_number: int | None = None, outcome: object = None
    ) -> None:
        super().__init__('interrupted')
        self.signal_number = signal_number
        self.outcome = outcome


def failure_text(err: Exception) -> str | None:
    """What is said of a failure that people can do something about.

    :returns: a line; None of any other, which has a traceback
    """
    # who raises it has imported it; others need not wait for that
    from shardmw.saio.errors import SaioError

    if isinstance(err, BenchError | SaioError):
        return str(err)
    if isinstance(err, BrokenPipeError):
        # whoever read the output doesn't any more
        return None
    if isinstance(err, OSError):
        place = f'{err.filename}: ' if err.filename else ''
        # some say nothing but what they are
        return f'{place}{err.strerror or str(err) or type(err).__name__}'
    if isinstance(err, sqlite3.OperationalError):
        return f'a database failed: {err}'
    return None
