# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench ratelimit``: the command."""

from collections.abc import Sequence
from pathlib import Path

import click

from shardmw.bench.command import (
    chosen_parameters,
    parameter_options,
    perform,
)
from shardmw.bench.errors import BenchError
from shardmw.bench.options import Parsed, output_option, page_option
from shardmw.bench.ratelimit import COMMAND
from shardmw.bench.ratelimit.experiments import EXPERIMENTS, markdown
from shardmw.bench.ratelimit.limits import Parameters
from shardmw.bench.report.places import with_figures
from shardmw.bench.results import folder
from shardmw.bench.scenarios.command import experiment_of
from shardmw.bench.screen import Screen
from shardmw.bench.units import parse_choices

_SOME = Parsed('names', lambda text: parse_choices(text, tuple(EXPERIMENTS)))


@click.command()
@click.option(
    '--experiments',
    type=_SOME,
    default=','.join(EXPERIMENTS),
    show_default=True,
    help='The experiments to measure.',
)
@parameter_options(Parameters)
@output_option
@page_option
def ratelimit(
    experiments: Sequence[str],
    output: Path,
    page: Path | None,
    **chosen: object,
) -> None:
    """Measure the effect and the cost of write limits.

    \b
    rates       compare the admitted writes with the limit
    seed        many writers to one container, plain and sharded
    outage      stop memcached under load, and start it again
    operations  count the memcached operations of a write
    latency     latency that limits add to writes to unlimited containers

    Results of other experiments are kept in the folder and in the page.
    """
    parameters = chosen_parameters(Parameters, chosen)
    _check(output, page)
    perform(
        [
            experiment_of(COMMAND, EXPERIMENTS[name], parameters)
            for name in experiments
        ],
        output,
        Screen(),
    )
    _publish(output, page)


COMMANDS = {'ratelimit': ratelimit}


def _check(output: Path, page: Path | None) -> None:
    """Raise BenchError if the tables cannot be written later."""
    folder.make(output)
    folder.load(output, COMMAND, EXPERIMENTS)
    if page is not None:
        with_figures(_read(page), '')


def _publish(output: Path, page: Path | None) -> None:
    """Write the tables of all results that the folder has."""
    figures = markdown(folder.load(output, COMMAND, EXPERIMENTS))
    folder.write(output / f'{COMMAND}.md', figures)
    if page is not None:
        folder.write(page, with_figures(_read(page), figures))


def _read(page: Path) -> str:
    try:
        return page.read_text(encoding='utf-8')
    except FileNotFoundError:
        return ''
    except (OSError, UnicodeDecodeError) as err:
        raise BenchError(f'{page} cannot be read: {err}') from err
