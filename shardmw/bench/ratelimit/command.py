# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench ratelimit``: the command."""

from collections.abc import Sequence
from pathlib import Path

import click

from shardmw.bench import results
from shardmw.bench.command import (
    Experiment,
    chosen_parameters,
    parameter_options,
    perform,
)
from shardmw.bench.errors import BenchError
from shardmw.bench.options import Parsed, output_option, page_option
from shardmw.bench.ratelimit import COMMAND
from shardmw.bench.ratelimit.parameters import EXPERIMENTS, Parameters
from shardmw.bench.ratelimit.report import MODULES, markdown
from shardmw.bench.ratelimit.stage import Stage
from shardmw.bench.report.places import with_figures
from shardmw.bench.screen import Screen
from shardmw.bench.units import parse_choices

_SOME = Parsed('names', lambda text: parse_choices(text, EXPERIMENTS))


@click.command()
@click.option(
    '--experiments',
    type=_SOME,
    default=','.join(EXPERIMENTS),
    show_default=True,
    help='Which to do.',
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
    """Measure what write rates do, and what they cost.

    \b
    rates       is what is admitted what the limit says?
    seed        many writers, one container: plain, and of many shards
    outage      memcached dies under load, and comes back
    operations  what memcached is asked for, for a write
    latency     what a limit costs writes that it does not concern

    Results of experiments that are not done now stay in the folder, and in
    the page.
    """
    parameters = chosen_parameters(Parameters, chosen)
    _check(output, page)
    perform(
        [
            Experiment(
                COMMAND,
                experiment,
                parameters,
                MODULES[experiment].measure,
                Stage,
            )
            for experiment in experiments
        ],
        output,
        Screen(),
    )
    _publish(output, page)


COMMANDS = {'ratelimit': ratelimit}


def _check(output: Path, page: Path | None) -> None:
    """Find out now, and not an hour later, what can't be published.

    :raises BenchError: if so
    """
    results.make(output)
    results.load(output, COMMAND, EXPERIMENTS)
    if page is not None:
        with_figures(_read(page), '')


def _publish(output: Path, page: Path | None) -> None:
    """Write the tables of all results that the folder has."""
    figures = markdown(results.load(output, COMMAND, EXPERIMENTS))
    results.write(output / f'{COMMAND}.md', figures)
    if page is not None:
        results.write(page, with_figures(_read(page), figures))


def _read(page: Path) -> str:
    try:
        return page.read_text(encoding='utf-8')
    except FileNotFoundError:
        return ''
    except (OSError, UnicodeDecodeError) as err:
        raise BenchError(f'{page} cannot be read: {err}') from err
