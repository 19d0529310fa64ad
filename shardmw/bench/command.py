# SPDX-License-Identifier: Apache-2.0
"""Run experiments, and keep their results."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from shardmw.bench.errors import BenchError, failure_text
from shardmw.bench.experiments import describe, title
from shardmw.bench.load.clients import Clients
from shardmw.bench.load.stage import Stage
from shardmw.bench.options import REPLACING
from shardmw.bench.results import folder
from shardmw.bench.results.folder import Result
from shardmw.bench.results.provenance import provenance
from shardmw.bench.scenarios.base import Figures, Keep, Scenario
from shardmw.bench.screen import Screen
from shardmw.bench.words import about_text, duration_text

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
) -> list[Path]:
    """Measure scenarios in turn; show and keep their results.

    The figures of an interrupted or failed scenario are kept, too. The
    others are measured even if one fails.

    :param command: with the name of a scenario, the name of its result
    :param output: the folder of results
    :param word: appended to the names of the results
    :param measure: in place of :meth:`Scenario.measure`
    :returns: the files of results
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
    files, failed = [], []
    for each in scenarios:
        result = Result(
            command, each.name, origin, each.as_json(), {}, name=word
        )
        try:
            files.append(
                _perform(result, each, measure or each.measure, output, screen)
            )
        except Exception as err:
            text = failure_text(err)
            if text is None or len(scenarios) == 1:
                raise
            screen.warning(f'{each.name} failed: {text}')
            failed.append(each.name)
    if failed:
        raise BenchError(f'failed, see above: {", ".join(failed)}')
    return files


def _perform(
    result: Result,
    scenario: Scenario,
    measure: Measure,
    output: Path,
    screen: Screen,
) -> Path:
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
    path = _publish(result, output, screen)
    scenario.check_figures(figures)
    return path


def _expected_text(result: Result, scenario: Scenario, output: Path) -> str:
    """Return the measured duration of an earlier run, or the estimate."""
    earlier: list[Result] = []
    # a damaged result must not prevent the measurement
    with contextlib.suppress(BenchError):
        earlier = folder.load(output, result.command, [scenario.name])
    for each in earlier:
        before = type(scenario).from_json(each.parameters)
        if each.seconds is not None and before == scenario:
            return f'took {duration_text(each.seconds)} the last time'
    if scenario.minutes:
        return f'takes {about_text(60 * scenario.minutes)}, {_BY_DEFAULT}'
    if scenario.expected_seconds is None:
        return 'the time depends on the machine'
    return f'takes {about_text(scenario.expected_seconds)}'


def _publish(result: Result, output: Path, screen: Screen) -> Path:
    """Keep a result, and show it even if it cannot be kept."""
    if cluster := result.figures.get('cluster'):
        origin = replace(
            result.provenance, cluster=cluster['url'], swift=cluster['swift']
        )
        result = replace(result, provenance=origin)
    context = click.get_current_context(silent=True)
    replaces = context is not None and context.meta.get(REPLACING, False)
    try:
        files = folder.save(output, result, replaces)
    finally:
        for table in describe(result).tables:
            screen.table(table)
    if not result.complete:
        screen.warning('interrupted: the figures are incomplete')
    screen.line(f'kept in {" and ".join(map(str, files))}')
    return files[0]
