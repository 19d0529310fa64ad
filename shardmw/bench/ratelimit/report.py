# SPDX-License-Identifier: Apache-2.0
"""What is said of the results. Pure."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from shardmw.bench.ratelimit import latency, operations, outage, rates, seed
from shardmw.bench.ratelimit.parameters import EXPERIMENTS, Parameters
from shardmw.bench.results.folder import Result
from shardmw.bench.tables import Table

#: The module of each experiment.
MODULES: Mapping[str, ModuleType] = dict(
    zip(EXPERIMENTS, (rates, seed, outage, operations, latency), strict=True)
)

#: What each one asks, in a line.
SUMMARIES = {
    'rates': 'Is what is admitted what the limit says?',
    'seed': 'Many writers, one container: plain, and of many shards.',
    'outage': 'memcached dies under load, and comes back.',
    'operations': 'What memcached is asked for, for a write.',
    'latency': 'What a limit costs writes that it does not concern.',
}


def tables(result: Result) -> list[Table]:
    """The tables of an experiment."""
    make: Callable = MODULES[result.experiment].tables
    return make(Parameters.from_json(result.parameters), result.figures)


def markdown(results: Sequence[Result]) -> str:
    """All tables, and where they come from: once if that's the same."""
    parts = []
    said = None
    for result in results:
        origin = _origin(result)
        if origin != said:
            parts.append(origin)
            said = origin
        if not result.complete:
            parts.append(f'**{result.experiment} was interrupted.**')
        parts += [table.markdown() for table in tables(result)]
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
