# SPDX-License-Identifier: Apache-2.0
"""The experiments of ``shardmw-bench ratelimit``, and their page. Pure."""

from collections.abc import Callable, Sequence

from shardmw.bench.ratelimit import costs, outage, rates
from shardmw.bench.ratelimit.limits import Parameters
from shardmw.bench.results.folder import Result
from shardmw.bench.scenarios import Figures, Scenario
from shardmw.bench.scenarios.parameters import CLUSTER_SECONDS, LOAD_SECONDS


def _experiment(
    name: str,
    summary: str,
    measure: Callable,
    tables: Callable,
    loads: Callable[[Parameters], float],
    load_seconds: Callable[[Parameters], float] = lambda p: p.seconds,
) -> Scenario:
    def seconds(parameters: Parameters) -> float:
        each = load_seconds(parameters) + LOAD_SECONDS
        return CLUSTER_SECONDS + loads(parameters) * each

    def plots(_parameters: Parameters, _figures: Figures) -> list:
        return []

    return Scenario(name, summary, Parameters, measure, tables, plots, seconds)


_ALL = (
    _experiment(
        'rates',
        'Compare the admitted writes with the limit.',
        rates.measure,
        rates.tables,
        lambda p: (
            (1 + len(p.rates)) * len(p.shards) + 2 * len(p.stock_rates) + 1
        ),
    ),
    _experiment(
        'seed',
        'Many writers to one container, plain and sharded, with and without '
        'a limit.',
        costs.measure_seed,
        costs.seed_tables,
        lambda p: 4 * p.rounds,
    ),
    _experiment(
        'outage',
        'Stop memcached under load, and start it again.',
        outage.measure,
        outage.tables,
        lambda p: 6,
    ),
    _experiment(
        'operations',
        'Count the memcached operations of a write.',
        costs.measure_operations,
        costs.operations_tables,
        lambda p: 10,
    ),
    _experiment(
        'latency',
        'Latency that limits add to writes to unlimited containers.',
        costs.measure_latency,
        costs.latency_tables,
        lambda p: 5 * p.pairs,
        # of 5 cases, a write takes 10 ms by one client and 70 ms by one of 16
        lambda p: 0.08 * p.requests + LOAD_SECONDS,
    ),
)

#: All experiments by name.
EXPERIMENTS = {each.name: each for each in _ALL}


def markdown(results: Sequence[Result]) -> str:
    """Return all tables; a provenance is repeated only if it differs."""
    parts = []
    told = None
    for result in results:
        parameters = Parameters.from_json(result.parameters)
        origin = _origin(result, parameters)
        if origin != told:
            parts.append(origin)
            told = origin
        if not result.complete:
            parts.append(f'**{result.experiment} was interrupted.**')
        tables = EXPERIMENTS[result.experiment].tables
        parts += [
            table.markdown() for table in tables(parameters, result.figures)
        ]
    return '\n\n'.join(parts) + '\n'


def _origin(result: Result, parameters: Parameters) -> str:
    chosen = ', '.join(
        f'`{name}={value}`' for name, value in parameters.settings.items()
    )
    also = f' With {chosen}.' if chosen else ''
    return (
        f'{result.provenance.sentence()} The cluster has one replica and '
        f'{parameters.proxies} proxies of one process each; '
        f'{parameters.processes} client processes share the machine.{also}'
    )
