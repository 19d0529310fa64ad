# SPDX-License-Identifier: Apache-2.0
"""The command line: ``shardmw-bench``."""

import signal
from types import FrameType
from typing import NoReturn

import click

from shardmw.bench import signals
from shardmw.bench.command import InOrder
from shardmw.bench.compare.command import compare
from shardmw.bench.errors import BenchError, Interrupted
from shardmw.bench.plan import plan
from shardmw.bench.ratelimit.command import ratelimit
from shardmw.bench.report.command import report
from shardmw.bench.scenarios.command import scenario
from shardmw.bench.workloads.command import COMMANDS
from shardmw.saio import SaioError

# What the shell says of commands that a signal ended.
_ENDED_BY_SIGNAL = 128


class _Commands(InOrder):
    """Commands that fail with one line on stderr."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except (BenchError, SaioError, PermissionError) as err:
            raise click.ClickException(str(err)) from err
        except (Interrupted, KeyboardInterrupt) as ended:
            number = getattr(ended, 'signal_number', None) or signal.SIGINT
            click.echo('Interrupted', err=True)
            raise click.exceptions.Exit(_ENDED_BY_SIGNAL + number) from ended


@click.group(cls=_Commands)
def main() -> None:
    """Measure what sharded containers bring, and what they cost.

    Commands work on a Swift cluster of the benchmark's own, which runs on
    loopback and in a temporary folder and is taken down at the end; clients
    and servers share the machine then, so leave it to them. Kinds of work
    and comparisons can be measured on any cluster, too.

    Only plan needs none of it: it reckons.

    One that is interrupted keeps what it has measured, and cleans up.
    """
    # ended from outside, clean up as at the end of a command
    for number in _ending():
        signal.signal(number, _interrupt)


def _ending() -> list[signal.Signals]:
    """Signals that end a command; nohup sees to it that SIGHUP does not."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [
        each
        for each in signals.ENDING
        if not (ignored and each == signal.SIGHUP)
    ]


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted(number)


for _command in (*COMMANDS, compare, scenario, ratelimit, report, plan):
    main.add_command(_command)
