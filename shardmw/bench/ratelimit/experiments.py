# SPDX-License-Identifier: Apache-2.0
"""The experiments of ``shardmw-bench ratelimit``, and their page. Pure."""

from collections.abc import Callable, Sequence

from shardmw.bench.ratelimit import costs, outage, rates
from shardmw.bench.ratelimit.parameters import Parameters
from shardmw.bench.results.folder import Result
from shardmw.bench.scenarios import Scenario
from shardmw.bench.scenarios.parameters import CLUSTER_SECONDS, LOAD_SECONDS


def _seconds(
    loads: Callable[[Parameters], float],
    each: Callable[[Parameters], float] = lambda parameters: (
        parameters.seconds
    ),
) -> Callable[[Parameters], float]:
    """Return a function of about how long so many loads take."""

    def seconds(parameters: Parameters) -> float:
        one = each(parameters) + LOAD_SECONDS
        return CLUSTER_SECONDS + loads(parameters) * one

    return seconds


def _latency_seconds(parameters: Parameters) -> float:
    # of 5 cases, a write takes 10 ms by one client and 70 ms by one of 16
    return 0.08 * parameters.requests + LOAD_SECONDS


_ALL = (
    Scenario(
        'rates',
        'Compare the admitted writes with the limit.',
        Parameters,
        rates.measure,
        rates.tables,
        seconds=_seconds(
            lambda parameters: (
                (1 + len(parameters.rates)) * len(parameters.shards)
                + 2 * len(parameters.stock_rates)
                + 1
            )
        ),
    ),
    Scenario(
        'seed',
        'Many writers, one container: plain, and of many shards.',
        Parameters,
        costs.measure_seed,
        costs.seed_tables,
        seconds=_seconds(lambda parameters: 4 * parameters.rounds),
    ),
    Scenario(
        'outage',
        'Stop memcached under load, and start it again.',
        Parameters,
        outage.measure,
        outage.tables,
        seconds=_seconds(lambda parameters: 6),
    ),
    Scenario(
        'operations',
        'Count the operations of memcached for a write.',
        Parameters,
        costs.measure_operations,
        costs.operations_tables,
        seconds=_seconds(lambda parameters: 10),
    ),
    Scenario(
        'latency',
        'What a limit costs writes that it does not concern.',
        Parameters,
        costs.measure_latency,
        costs.latency_tables,
        seconds=_seconds(
            lambda parameters: 5 * parameters.pairs, _latency_seconds
        ),
    ),
)

#: All experiments by name.
EXPERIMENTS = {each.name: each for each in _ALL}


def markdown(results: Sequence[Result]) -> str:
    """Return all tables, each origin once if it is the same."""
    parts = []
    told = None
    for result in results:
        origin = _origin(result)
        if origin != told:
            parts.append(origin)
            told = origin
        if not result.complete:
            parts.append(f'**{result.experiment} was interrupted.**')
        parameters = Parameters.from_json(result.parameters)
        tables = EXPERIMENTS[result.experiment].tables
        parts += [
            table.markdown() for table in tables(parameters, result.figures)
        ]
    return '\n\n'.join(parts) + '\n'


def _origin(result: Result) -> str:
    parameters = Parameters.from_json(result.parameters)
    chosen = ', '.join(
        f'`{name}={value}`' for name, value in parameters.settings.items()
    )
    also = f' With {chosen}.' if chosen else ''
    return (
        f'{result.provenance.sentence()} One cluster, with one replica and '
        f'{parameters.proxies} proxies of one process each, and '
        f'{parameters.processes} client processes share it.{also}'
    )
