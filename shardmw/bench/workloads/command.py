# SPDX-License-Identifier: Apache-2.0
"""The commands ``shardmw-bench write``, ``read``, ``head`` and so on."""

import functools
from collections.abc import Callable
from pathlib import Path

import click

from shardmw.bench.command import (
    Experiment,
    chosen_parameters,
    parameter_options,
    perform,
    usage_errors,
)
from shardmw.bench.options import name_option, output_option
from shardmw.bench.results import folder as results
from shardmw.bench.screen import Screen
from shardmw.bench.workloads import COMMAND
from shardmw.bench.workloads.measuring import check_done, measure
from shardmw.bench.workloads.place import place_of, place_options
from shardmw.bench.workloads.works import WORKS, Work


def work_command(
    command: str,
    work: Work,
    adjust: Callable[[click.Context], None] = lambda context: None,
    **defaults: object,
) -> click.Command:
    """Return the command of a kind of work.

    :param command: in the names of results
    :param adjust: changes ``context.params`` before they are read
    :param defaults: override the defaults of parameters
    """

    @click.command(work.name, help=work.summary)
    @parameter_options(work.parameters, **defaults)
    @place_options
    @output_option
    @name_option
    @click.pass_context
    def run(
        context: click.Context, output: Path, word: str, **_: object
    ) -> None:
        place = place_of(context)
        adjust(context)
        parameters = chosen_parameters(work.parameters, context.params)
        if place.is_own:
            with usage_errors():
                parameters.check_own()
        results.make(output)
        experiment = Experiment(
            *(command, work.name, parameters),
            functools.partial(measure, work=work, place=place),
            word=word,
            check=check_done,
            seconds=parameters.expected_seconds,
        )
        perform([experiment], output, Screen())

    return run


COMMANDS = {work.name: work_command(COMMAND, work) for work in WORKS.values()}
