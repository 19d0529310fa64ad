# SPDX-License-Identifier: Apache-2.0
"""The commands ``scenario``, ``ratelimit`` and ``report``.

:func:`perform` runs experiments of any command, and keeps their results.
"""

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import click

from shardmw_bench import options
from shardmw_bench.errors import BenchError, failure_text
from shardmw_bench.experiments import (
    RATELIMIT,
    RATELIMITS,
    SCENARIO,
    SCENARIOS,
    Section,
    describe,
    sections,
    title,
)
from shardmw_bench.load.clients import Clients
from shardmw_bench.load.stage import Stage
from shardmw_bench.options import chosen_parameters, parameter_options
from shardmw_bench.ratelimit.limits import LimitExperiment
from shardmw_bench.report import pages
from shardmw_bench.results import folder
from shardmw_bench.results.folder import Result
from shardmw_bench.results.provenance import provenance
from shardmw_bench.scenarios.base import Figures, Keep, Scenario
from shardmw_bench.screen import Screen
from shardmw_bench.tables import plain

#: ``measure(stage, keep)`` measures as :meth:`Scenario.measure` does.
Measure = Callable[[Stage, Keep], Figures]

_BY_DEFAULT = 'with the default options'

# Client processes, if the parameters have no such option.
_PROCESSES = 2


class InOrder(click.Group):
    """A group whose help lists the commands as they were added."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


def perform(
    command: str,
    scenarios: Sequence[Scenario],
    output: Path,
    word: str = '',
    measure: Measure | None = None,
) -> None:
    """Measure scenarios in turn; show and keep their results.

    The figures of an interrupted or failed scenario are kept, too. The
    others are measured even if one fails.

    :param command: with the name of a scenario, the name of its result
    :param output: the folder of results
    :param word: appended to the names of the results
    :param measure: in place of :meth:`Scenario.measure`
    :raises BenchError: at the end, if a scenario failed
    :raises Interrupted: if a signal ended the command
    """
    screen = Screen()
    folder.make(output)
    origin = provenance()
    if origin.is_machine_busy:
        screen.warning(
            f'other processes use {origin.busy_cores:.1f} of {origin.cores} '
            'cores: the figures will be those of a busy machine'
        )
    if len(scenarios) > 1:
        total = about_text(60 * sum(each.minutes for each in scenarios))
        screen.line(f'all experiments together take {total}, {_BY_DEFAULT}')
    failed = []
    for each in scenarios:
        result = Result(
            command, each.name, origin, each.as_json(), {}, name=word
        )
        try:
            _perform(result, each, measure or each.measure, output, screen)
        except Exception as err:
            text = failure_text(err)
            if text is None or len(scenarios) == 1:
                raise
            screen.warning(f'{each.name} failed: {text}')
            failed.append(each.name)
    if failed:
        raise BenchError(f'failed, see above: {", ".join(failed)}')


def _perform(
    result: Result,
    scenario: Scenario,
    measure: Measure,
    output: Path,
    screen: Screen,
) -> None:
    screen.heading(title(result))
    screen.line(_expected_text(result, scenario, output))
    kept: list[Figures] = []
    began = time.monotonic()
    try:
        with Clients(getattr(scenario, 'processes', _PROCESSES)) as clients:
            figures = measure(Stage(scenario, clients, screen), kept.append)
    except BaseException:
        if kept:
            part = replace(result, figures=kept[-1], complete=False)
            _publish(part, output, screen)
        raise
    seconds = time.monotonic() - began
    result = replace(result, figures=figures, seconds=seconds)
    _publish(result, output, screen)
    scenario.check_figures(figures)


def _expected_text(result: Result, scenario: Scenario, output: Path) -> str:
    """Return the measured duration of an earlier run, or the estimate."""
    earlier: list[Result] = []
    # a damaged result must not prevent the measurement
    with contextlib.suppress(BenchError):
        earlier = folder.load(output, result.command, [scenario.name])
    for each in earlier:
        before = type(scenario).from_json(each.parameters)
        if each.seconds is not None and before == scenario:
            took = timedelta(seconds=round(each.seconds))
            return f'took {took} the last time'
    if scenario.minutes:
        return f'takes {about_text(60 * scenario.minutes)}, {_BY_DEFAULT}'
    if scenario.expected_seconds is None:
        return 'the time depends on the machine'
    return f'takes {about_text(scenario.expected_seconds)}'


def about_text(seconds: float) -> str:
    """Return a rounded duration such as ``about 5 minutes``."""
    if seconds < 90:
        return f'about {max(5, 5 * round(seconds / 5))} s'
    minutes = math.ceil(seconds / 60)
    if minutes < 90:
        return f'about {minutes} minutes'
    return f'about {plain(round(minutes / 60, 1))} hours'


def _publish(result: Result, output: Path, screen: Screen) -> None:
    """Keep a result, and show it even if it cannot be kept."""
    if found := result.figures.get('cluster'):
        cluster = {'cluster': found['url'], 'swift': found['swift']}
        origin = replace(result.provenance, **cluster)
        result = replace(result, provenance=origin)
    context = click.get_current_context(silent=True)
    replaces = context is not None and context.params.get('replace', False)
    try:
        files = folder.save(output, result, replaces)
    finally:
        for table in describe(result).tables:
            screen.table(table)
    if not result.complete:
        screen.warning('interrupted: the figures are incomplete')
    screen.line(f'kept in {" and ".join(map(str, files))}')


@click.group(cls=InOrder)
def scenario() -> None:
    """Repeat an experiment of this project, or one that others published.

    Published figures are in the help of each command and in the report.
    """


def _add_scenario(each: type[Scenario]) -> None:
    text = '\n\n'.join(filter(None, (each.summary(), each.published)))

    @scenario.command(each.name, help=text, short_help=each.summary())
    @parameter_options(each, **each.defaults)
    @options.output_option
    def run(output: Path, **chosen: object) -> None:
        perform(SCENARIO, [chosen_parameters(each, chosen)], output)


for _each in SCENARIOS.values():
    _add_scenario(_each)


@scenario.command('all')
@options.output_option
def _all(output: Path, **_: object) -> None:
    """Measure all scenarios with their default options."""
    perform(SCENARIO, [s.default() for s in SCENARIOS.values()], output)


@click.command()
@click.option(
    '--experiments',
    type=options.several('names', click.Choice(list(RATELIMITS))),
    default=','.join(RATELIMITS),
    show_default=True,
    help='The experiments to measure.',
)
@parameter_options(LimitExperiment)
@options.output_option
@options.page_option
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
    folder.load(output, RATELIMIT, tuple(RATELIMITS))
    if page is not None:
        pages.with_figures(pages.read(page), '')
    some = [RATELIMITS[name](**parameters) for name in experiments]
    perform(RATELIMIT, some, output)
    results = folder.load(output, RATELIMIT, tuple(RATELIMITS))
    figures = markdown(sections(results))
    folder.write(output / f'{RATELIMIT}.md', figures)
    if page is not None:
        folder.write(page, pages.with_figures(pages.read(page), figures))


def markdown(found: Sequence[Section]) -> str:
    """Return all tables; an origin is repeated only if it differs. Pure."""
    parts: list[str] = []
    for section in found:
        chosen = ', '.join(map(' '.join, section.parameters))
        sentence = section.result.provenance.sentence()
        origin = f'{sentence} The cluster has one replica. Options: {chosen}.'
        if origin not in parts:
            parts.append(origin)
        parts += [f'**{section.title}: {each}**' for each in section.warnings]
        parts += [table.markdown() for table in section.tables]
    return '\n\n'.join(parts) + '\n'


@click.command()
@options.folder_option
@click.option(
    '--html',
    type=options.FILE,
    help='The HTML page to write.  [default: report.html in the folder]',
)
@options.page_option
def report(output: Path, html: Path | None, page: Path | None) -> None:
    """Write an HTML page with the tables and plots of all results.

    The page is a single file without links to other files.

    --page also updates a Markdown page: the main tables replace the text
    between <!-- figures: begin --> and <!-- figures: end -->. A result can
    have a place of its own, which names it: <!-- figures compare-read
    compare-head: begin -->. Such a place is filled once the folder has all of
    its results.
    """
    screen = Screen()
    found = sections(folder.load_all(output))
    if not found:
        raise BenchError(
            f'{output} has no results: measure something first, such as '
            'shardmw-bench compare write'
        )
    # errors of the page come before the plots, which take some time
    text = page and pages.with_sections(pages.read(page), found)
    plots = sum(len(each.plots) for each in found)
    screen.line(f'drawing {plots} plots, which takes some seconds')
    # matplotlib takes a second to import
    from shardmw_bench.report.html import page as html_of

    written = {html or output / 'report.html': html_of(found)}
    if page is not None:
        written[page] = text
    for path, content in written.items():
        folder.write(path, content)
        screen.line(f'written: {path}')
    for word in pages.missing(text or '', found):
        screen.warning(f'{word} is not in {output}: its figures stay')


COMMANDS = {'scenario': scenario, 'ratelimit': ratelimit, 'report': report}
