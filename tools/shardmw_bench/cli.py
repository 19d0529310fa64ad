# SPDX-License-Identifier: Apache-2.0
"""The command line: ``shardmw-bench``."""

import signal
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click

from shardmw.admin.completion import completion_help
from shardmw_bench import signals
from shardmw_bench.errors import Interrupted, failure_text

# Shells add this to the number of the signal that ended a command.
_ENDED_BY_SIGNAL = 128

_WORKS = ('write', 'read', 'head', 'delete', 'list', 'head-container', 'mixed')

# The module of each command, in the order of the help.
_MODULES = {
    **dict.fromkeys(_WORKS, 'workloads.command'),
    'compare': 'workloads.command',
    **dict.fromkeys(('scenario', 'ratelimit', 'report'), 'command'),
    'plan': 'planning',
}


class _Commands(click.Group):
    """Commands that report a failure in one line on stderr."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(
        self, ctx: click.Context, cmd_name: str
    ) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        # imported only when needed: some imports take a second
        module = import_module(f'shardmw_bench.{_MODULES[cmd_name]}')
        return module.COMMANDS[cmd_name]

    def invoke(self, ctx: click.Context) -> object:
        ignores_hangup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        try:
            for number in signals.ENDING:
                # nohup ignores SIGHUP
                if number != signal.SIGHUP or not ignores_hangup:
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


@click.group(cls=_Commands, epilog=completion_help('shardmw-bench'))
def main() -> None:
    """Measure the benefit and the cost of sharded containers.

    By default, a command starts a temporary Swift cluster on loopback and
    removes it at the end. Clients and servers share the machine then: run
    nothing else on it. write, read, head, delete, list, head-container,
    mixed and compare can also measure an existing cluster. plan only
    calculates and needs no cluster.

    A command that is interrupted keeps what it has measured, and cleans up.
    """


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted(number)
