# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench scenario``: the command."""

from pathlib import Path

import click

from shardmw.bench.command import InOrder, perform
from shardmw.bench.experiments import SCENARIOS
from shardmw.bench.options import (
    chosen_parameters,
    output_option,
    parameter_options,
)
from shardmw.bench.scenarios import COMMAND
from shardmw.bench.scenarios.base import Scenario


@click.group(cls=InOrder)
def scenario() -> None:
    """Repeat an experiment of this project, or one that others published.

    Published figures are in the help of each command and in the report.
    """


def _command(each: type[Scenario]) -> click.Command:
    text = '\n\n'.join(filter(None, (each.summary(), each.published)))

    @click.command(each.name, help=text, short_help=each.summary())
    @parameter_options(each, **each.defaults)
    @output_option
    def run(output: Path, **chosen: object) -> None:
        perform(COMMAND, [chosen_parameters(each, chosen)], output)

    return run


@click.command('all')
@output_option
def _all(output: Path) -> None:
    """Measure all scenarios with their default options."""
    perform(COMMAND, [s.default() for s in SCENARIOS.values()], output)


for _scenario in SCENARIOS.values():
    scenario.add_command(_command(_scenario))
scenario.add_command(_all)

COMMANDS = {'scenario': scenario}
