# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench scenario``: the command."""

from collections.abc import Sequence
from pathlib import Path

import click

from shardmw.bench.command import (
    Experiment,
    InOrder,
    chosen_parameters,
    parameter_options,
    perform,
)
from shardmw.bench.options import output_option
from shardmw.bench.parameters import Parameters
from shardmw.bench.results import folder as results
from shardmw.bench.scenarios import COMMAND, Scenario, scenarios
from shardmw.bench.screen import Screen


@click.group(cls=InOrder)
def scenario() -> None:
    """Repeat an experiment of this project, or one that others published.

    Published figures are in the help of each command and in the report.
    """


def experiment_of(
    command: str, each: Scenario, parameters: Parameters
) -> Experiment:
    """Return the experiment that measures a scenario."""
    return Experiment(
        command,
        each.name,
        parameters,
        each.measure,
        seconds=each.seconds(parameters),
    )


def _perform(experiments: Sequence[Experiment], output: Path) -> None:
    results.make(output)
    perform(experiments, output, Screen())


def _command(each: Scenario) -> click.Command:
    text = '\n\n'.join(filter(None, (each.summary, each.published)))

    @click.command(each.name, help=text, short_help=each.summary)
    @parameter_options(each.parameters, **each.defaults)
    @output_option
    def run(output: Path, **chosen: object) -> None:
        parameters = chosen_parameters(each.parameters, chosen)
        _perform([experiment_of(COMMAND, each, parameters)], output)

    return run


@click.command('all')
@output_option
def _all(output: Path) -> None:
    """Measure all scenarios with their default options."""
    _perform(
        [
            experiment_of(COMMAND, each, each.default_parameters())
            for each in scenarios().values()
        ],
        output,
    )


for _scenario in scenarios().values():
    scenario.add_command(_command(_scenario))
scenario.add_command(_all)

COMMANDS = {'scenario': scenario}
