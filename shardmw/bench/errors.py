# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, said in one line."""


class BenchError(Exception):
    """What was wrong and what to do, in one line for the user's eyes."""


class Interrupted(BaseException):
    """The command was told to end; what it has is kept, then it does.

    Not an :class:`Exception`, so that nothing takes it for a failure.

    :param signal_number: what told it; SIGINT if None
    :param outcome: of the load that it broke off (a
                    :class:`shardmw.bench.load.Outcome`), if there was one
    """

    def __init__(
        self, signal_number: int | None = None, outcome: object = None
    ) -> None:
        super().__init__('interrupted')
        self.signal_number = signal_number
        self.outcome = outcome
