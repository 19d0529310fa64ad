# SPDX-License-Identifier: Apache-2.0
"""All experiments, and the description of a result of any command. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jinja2 import TemplateError

from shardmw_bench.errors import BenchError
from shardmw_bench.plots.plot import Plot
from shardmw_bench.ratelimit import experiments as ratelimits
from shardmw_bench.results.folder import Result
from shardmw_bench.scenarios import loads
from shardmw_bench.scenarios.base import Scenario
from shardmw_bench.scenarios.container_growth import ContainerGrowth
from shardmw_bench.scenarios.filter_cost import FilterCost
from shardmw_bench.scenarios.listings import (
    ListingCost,
    ListingFairness,
    ListingMemory,
)
from shardmw_bench.scenarios.replica_convergence import ReplicaConvergence
from shardmw_bench.scenarios.reshard import Reshard
from shardmw_bench.tables import Table, number
from shardmw_bench.workloads import report as works
from shardmw_bench.workloads.works import WORKS

#: The commands in the names of results.
SCENARIO, COMPARE = 'scenario', 'compare'
WORKLOAD, RATELIMIT = 'workload', 'ratelimit'

#: The scenarios by name, in the order of the help, of ``all`` and of the
#: report.
SCENARIOS: dict[str, type[Scenario]] = {
    each.name: each
    for each in (
        *(loads.ContainerSharding, ContainerGrowth, loads.ObjectSize),
        *(loads.Concurrency, loads.LogServing, loads.SmallObjects),
        *(ReplicaConvergence, FilterCost, ListingCost, ListingMemory),
        *(ListingFairness, Reshard),
    )
}

#: The experiments of ``shardmw-bench ratelimit``.
RATELIMITS: dict[str, type[Scenario]] = {
    each.name: each
    for each in (
        *(ratelimits.Rates, ratelimits.Seed, ratelimits.Outage),
        *(ratelimits.Operations, ratelimits.Latency),
    )
}

# The experiments of each command, in the order of a report.
_KNOWN = {
    SCENARIO: SCENARIOS,
    COMPARE: WORKS,
    WORKLOAD: WORKS,
    RATELIMIT: RATELIMITS,
}


_INCOMPLETE = (
    'This was interrupted: it has what was measured until then, and not all '
    'that was to be measured.'
)


@dataclass(frozen=True)
class Section:
    """A result as text, tables and plots: a section of the report.

    :param published: figures that others published
    :param parameters: ``(name, value)``
    :param plots: with names that no other result has
    :param brief: the tables of a page for operators
    """

    result: Result
    summary: str
    published: str
    parameters: list[tuple[str, str]]
    tables: list[Table]
    plots: list[Plot]
    brief: list[Table]

    @property
    def anchor(self) -> str:
        return self.result.words

    @property
    def title(self) -> str:
        text = title(self.result).replace('-', ' ')
        return text[:1].upper() + text[1:]

    @property
    def warnings(self) -> list[str]:
        """Return what makes the figures doubtful."""
        origin = self.result.provenance
        found = [] if self.result.complete else [_INCOMPLETE]
        if origin.is_machine_busy:
            found.append(
                'The machine was busy: other processes used '
                f'{number(origin.busy_cores, 1)} of {origin.cores} cores when '
                'this began.'
            )
        return found


def sections(results: Iterable[Result]) -> list[Section]:
    """Return the sections of results, complete or not, in order.

    :raises BenchError: if a result lacks something that this version needs
    """
    return [*map(describe, in_order(results))]


def in_order(results: Iterable[Result]) -> list[Result]:
    places = [
        (command, experiment)
        for command, experiments in _KNOWN.items()
        for experiment in experiments
    ]

    def place(result: Result) -> tuple[int, str, str]:
        kind = (result.command, result.experiment)
        known = places.index(kind) if kind in places else len(places)
        return known, result.name, result.time

    return sorted(results, key=place)


def describe(result: Result) -> Section:
    """Return the section of a result.

    :raises BenchError: if this version knows no such command or experiment,
                        or if the result lacks something that it needs
    """
    experiment = _KNOWN.get(result.command, {}).get(result.experiment)
    if experiment is None:
        raise BenchError(
            f'this version does not know the result {result.command} '
            f'{result.experiment}: remove it'
        )
    try:
        return _section(result, experiment)
    except (
        *(ArithmeticError, AttributeError, LookupError),
        *(TypeError, ValueError, TemplateError),
    ) as err:
        raise BenchError(
            f'{result.words}.json is damaged, or of another version '
            f'({type(err).__name__}: {err}): measure it again, or remove it'
        ) from err


def _section(result: Result, experiment: type[Scenario]) -> Section:
    figures = result.figures
    parameters = experiment.from_json(result.parameters)
    tables = parameters.tables(figures)
    brief = {RATELIMIT: tables, WORKLOAD: tables[:2]}
    brief[SCENARIO] = tables[: experiment.main_tables]
    if result.command == COMPARE:
        brief[COMPARE] = works.tables(figures, is_brief=True)
    plots = parameters.plots(figures)
    return Section(
        result,
        experiment.summary(),
        experiment.published,
        parameters.texts(),
        tables,
        [replace(p, name=f'{result.words}--{p.name}') for p in plots],
        brief[result.command],
    )


def title(result: Result) -> str:
    is_alone = result.command in (SCENARIO, WORKLOAD)
    command = '' if is_alone else f'{result.command} '
    also = ', '.join(filter(None, (result.name, result.time)))
    return f'{command}{result.experiment}' + (f' ({also})' if also else '')
