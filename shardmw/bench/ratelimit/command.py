# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench ratelimit``: the command."""

from collections.abc import Sequence
from pathlib import Path

import click

from shardmw.bench.command import perform
from shardmw.bench.experiments import RATELIMIT
from shardmw.bench.options import (
    chosen_parameters,
    output_option,
    page_option,
    parameter_options,
    several,
)
from shardmw.bench.ratelimit import COMMAND
from shardmw.bench.ratelimit.limits import LimitExperiment
from shardmw.bench.report import pages
from shardmw.bench.report.sections import sections
from shardmw.bench.results import folder
from shardmw.bench.results.folder import Result

_SOME = several('names', click.Choice(list(RATELIMIT)))


@click.command()
@click.option(
    '--experiments',
    type=_SOME,
    default=','.join(RATELIMIT),
    show_default=True,
    help='The experiments to measure.',
)
@parameter_options(LimitExperiment)
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
    parameters = vars(chosen_parameters(LimitExperiment, chosen))
    # an error of the folder or of the page comes before the measurement
    folder.make(output)
    folder.load(output, COMMAND, tuple(RATELIMIT))
    if page is not None:
        pages.with_figures(pages.read(page), '')
    some = [RATELIMIT[name](**parameters) for name in experiments]
    perform(COMMAND, some, output)
    figures = markdown(folder.load(output, COMMAND, tuple(RATELIMIT)))
    folder.write(output / f'{COMMAND}.md', figures)
    if page is not None:
        text = pages.with_figures(pages.read(page), figures)
        folder.write(page, text)


def markdown(results: Sequence[Result]) -> str:
    """Return all tables; an origin is repeated only if it differs. Pure."""
    parts = []
    told = None
    for section in sections(results):
        result = section.result
        chosen = dict(section.parameters)
        origin = (
            f'{result.provenance.sentence()} The cluster has one replica; '
            f'proxies of one process each: {chosen["proxies"]}; client '
            f'processes, which share the machine: {chosen["processes"]}.'
        )
        if 'settings' in chosen:
            origin += f' Settings: {chosen["settings"]}.'
        if origin != told:
            parts.append(origin)
            told = origin
        if not result.complete:
            parts.append(f'**{result.experiment} was interrupted.**')
        parts += [table.markdown() for table in section.tables]
    return '\n\n'.join(parts) + '\n'


COMMANDS = {'ratelimit': ratelimit}
