# SPDX-License-Identifier: Apache-2.0
"""The command line: ``shardmw-bench``."""

import signal
from types import FrameType
from typing import NoReturn

import click

from shardmw.bench.errors import BenchError
from shardmw.bench.ratelimit.command import ratelimit
from shardmw.saio import SaioError

# What the shell says of commands that a signal ended.
_ENDED_BY_SIGNAL = 128


class _Commands(click.Group):
    """Commands that fail with one line on stderr."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except (BenchError, SaioError, PermissionError) as err:
            raise click.ClickException(str(err)) from err


@click.group(cls=_Commands)
def main() -> None:
    """Measure shardmw on Swift clusters of the benchmark's own.

    They run on loopback and in temporary folders, and are taken down at the
    end. Clients and servers share the machine, so leave it to them.
    """
    # ended from outside, clean up as at the end of a command
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit_by_signal)


def _exit_by_signal(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(_ENDED_BY_SIGNAL + number)


main.add_command(ratelimit)
