# SPDX-License-Identifier: Apache-2.0
"""The description of a result of any command. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shardmw.bench import compare, ratelimit, scenarios, workloads
from shardmw.bench.errors import BenchError
from shardmw.bench.options import Parsed
from shardmw.bench.parameters import Option, Parameters
from shardmw.bench.plots import runs as runplots
from shardmw.bench.plots.plot import Plot
from shardmw.bench.ratelimit.experiments import EXPERIMENTS
from shardmw.bench.results.folder import Result
from shardmw.bench.results.runs import runs_of
from shardmw.bench.scenarios import Scenario
from shardmw.bench.scenarios import scenarios as all_scenarios
from shardmw.bench.tables import Table
from shardmw.bench.workloads import report as works
from shardmw.bench.workloads.works import WORKS


@dataclass(frozen=True)
class Description:
    """A result as text, tables and plots.

    :param title: such as ``compare write``
    :param published: figures that others published
    :param parameters: ``(name, value)``
    :param brief: the tables of a page for operators
    """

    title: str
    summary: str
    published: str
    parameters: list[tuple[str, str]]
    tables: list[Table]
    plots: list[Plot]
    brief: list[Table]


def describe(result: Result) -> Description:
    """Return the description of a result.

    :raises BenchError: if this version knows no such command or experiment
    """
    known = _KNOWN.get(result.command)
    if known is None or result.experiment not in known[0]():
        raise BenchError(
            f'this version does not know the result {result.command} '
            f'{result.experiment}: remove it'
        )
    return known[1](result)


def title(result: Result) -> str:
    """Return the title of a result."""
    command = {
        scenarios.COMMAND: '',
        workloads.COMMAND: '',
    }.get(result.command, result.command)
    words = ' '.join(filter(None, (command, result.experiment)))
    also = ', '.join(filter(None, (result.name, result.time)))
    return f'{words} ({also})' if also else words


def in_order(results: Iterable[Result]) -> list[Result]:
    """Return results in the order of a report."""
    order = [
        (command, experiment)
        for command, (experiments, _) in _KNOWN.items()
        for experiment in experiments()
    ]
    places = {each: place for place, each in enumerate(order)}
    return sorted(
        sorted(results, key=lambda each: (each.name, each.time)),
        key=lambda each: places.get(
            (each.command, each.experiment), len(places)
        ),
    )


def parameter_texts(parameters: Parameters) -> list[tuple[str, str]]:
    """Return parameters as typed, without unset ones."""
    texts = []
    for name, (_, option) in type(parameters).options().items():
        value = getattr(parameters, name)
        if value is None or value is False or value == '' or value == {}:
            continue
        texts.append((name.replace('_', '-'), _typed(option, value)))
    return texts


def _typed(option: Option, value: object) -> str:
    if value is True:
        return 'yes'
    if isinstance(option.kind, Parsed) and not option.multiple:
        return option.kind.typed(value)
    return str(value)


def _scenario(result: Result) -> Description:
    return _described(result, all_scenarios()[result.experiment])


def _described(result: Result, scenario: Scenario) -> Description:
    parameters = scenario.parameters.from_json(result.parameters)
    tables = scenario.tables(parameters, result.figures)
    return Description(
        title(result),
        scenario.summary,
        scenario.published,
        parameter_texts(parameters),
        tables,
        scenario.plots(parameters, result.figures),
        tables[:1],
    )


def _of_work(result: Result) -> Description:
    work = WORKS[result.experiment]
    tables = works.tables(result.figures)
    is_comparison = result.command == compare.COMMAND
    return Description(
        title(result),
        work.summary,
        '',
        parameter_texts(work.from_json(result.parameters)),
        tables,
        runplots.all_of(runs_of(result.figures), result.words),
        works.brief(result.figures) if is_comparison else tables[:2],
    )


def _rates(result: Result) -> Description:
    described = _described(result, EXPERIMENTS[result.experiment])
    return replace(described, brief=described.tables)


#: By command: its experiments, and the function that describes a result.
_KNOWN = {
    scenarios.COMMAND: (lambda: scenarios.NAMES, _scenario),
    compare.COMMAND: (lambda: tuple(WORKS), _of_work),
    workloads.COMMAND: (lambda: tuple(WORKS), _of_work),
    ratelimit.COMMAND: (lambda: tuple(EXPERIMENTS), _rates),
}
