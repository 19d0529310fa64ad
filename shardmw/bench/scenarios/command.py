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
    """Repeat an experiment that others published, or that they lacked.

    Its table has their figures beside those of this machine.
    """


def _experiment(module: Scenario, parameters: Parameters) -> Experiment:
    return Experiment(COMMAND, module.NAME, parameters, module.measure)


def _perform(experiments: Sequence[Experiment], output: Path) -> None:
    results.make(output)
    perform(experiments, output, Screen())


def _command(module: Scenario) -> click.Command:
    text = '\n\n'.join(filter(None, (module.SUMMARY, module.PUBLISHED)))

    @click.command(module.NAME, help=text, short_help=module.SUMMARY)
    @parameter_options(module.Parameters)
    @output_option
    def run(output: Path, **chosen: object) -> None:
        parameters = chosen_parameters(module.Parameters, chosen)
        _perform([_experiment(module, parameters)], output)

    return run


@click.command('all')
@output_option
def _all(output: Path) -> None:
    """Do all of them, one after the other, as they are by default."""
    _perform(
        [_experiment(each, each.Parameters()) for each in _MODULES], output
    )


_MODULES = list(scenarios().values())

for _module in _MODULES:
    scenario.add_command(_command(_module))
scenario.add_command(_all)

COMMANDS = {'scenario': scenario}
