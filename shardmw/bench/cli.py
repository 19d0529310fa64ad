# SPDX-License-Identifier: Apache-2.0
"""The command line: ``shardmw-bench``.

A command is imported when it is asked for, which may take a second: whoever
ends it by then is understood, too.
"""

import signal
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click

from shardmw.bench import signals
from shardmw.bench.errors import Interrupted, failure_text

# What the shell says of commands that a signal ended.
_ENDED_BY_SIGNAL = 128

# In which module each command is, in the order of the help.
_MODULES = {
    **dict.fromkeys(
        (
            *('write', 'read', 'head', 'delete'),
            *('list', 'head-container', 'mixed'),
        ),
        'workloads.command',
    ),
    'compare': 'compare.command',
    'scenario': 'scenarios.command',
    'ratelimit': 'ratelimit.command',
    'report': 'report.command',
    'plan': 'plan',
}


class _Commands(click.Group):
    """Commands that fail with one line on stderr."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(
        self, ctx: click.Context, cmd_name: str
    ) -> click.Command | None:
        module = _MODULES.get(cmd_name)
        if module is None:
            return None
        found = import_module(f'shardmw.bench.{module}')
        return found.COMMANDS[cmd_name]

    def invoke(self, ctx: click.Context) -> object:
        try:
            # ended from outside, clean up as at the end of a command
            for number in _ending():
                signal.signal(number, _interrupt)
            return super().invoke(ctx)
        except Exception as err:
            text = failure_text(err)
            if text is None:
                raise
            raise click.ClickException(text) from err
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
