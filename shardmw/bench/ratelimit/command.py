# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench ratelimit``: the command."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from shardmw.bench import results
from shardmw.bench.clients import Clients
from shardmw.bench.errors import BenchError
from shardmw.bench.load import REFUSAL_POLICIES
from shardmw.bench.options import (
    COUNTS,
    DURATION,
    RATE,
    RATES,
    SETTING,
    SIZE,
    Parsed,
    output_options,
)
from shardmw.bench.page import with_figures
from shardmw.bench.provenance import provenance
from shardmw.bench.ratelimit.parameters import EXPERIMENTS, Parameters
from shardmw.bench.ratelimit.report import MODULES, markdown, tables
from shardmw.bench.ratelimit.stage import Stage
from shardmw.bench.results import Result
from shardmw.bench.screen import Screen
from shardmw.bench.units import parse_choices

COMMAND = 'ratelimit'

_DEFAULTS = Parameters()
_SOME = Parsed('names', lambda text: parse_choices(text, EXPERIMENTS))
_POSITIVE = click.IntRange(min=1)

#: The options that are fields of the parameters: type, and help.
_OPTIONS = {
    'clients': (_POSITIVE, 'Clients that write at once.'),
    'processes': (_POSITIVE, 'Processes that these are spread over.'),
    'proxies': (_POSITIVE, 'Proxies of each cluster.'),
    'seconds': (DURATION, 'Of each load, and each phase of outage.'),
    'size': (SIZE, 'Of the objects.'),
    'max_sleep_seconds': (DURATION, 'A write that waits longer is refused.'),
    'buffer_seconds': (DURATION, 'rate_buffer_seconds of the filters.'),
    'backoff_seconds': (DURATION, 'Pause of a client, if it chooses itself.'),
    'rates': (RATES, 'rates: limits, in writes/s of a backing container.'),
    'shards': (COUNTS, 'rates: shard counts.'),
    'stock_rates': (RATES, "rates: limits of Swift's own filter."),
    'seed_rate': (RATE, 'seed: the limit.'),
    'seed_shards': (_POSITIVE, 'seed: the shard count.'),
    'rounds': (_POSITIVE, 'seed: how often.'),
    'middle_rate': (RATE, 'outage, operations: the limit.'),
    'middle_shards': (_POSITIVE, 'outage, operations, latency: shards.'),
    'pairs': (_POSITIVE, 'latency: how often.'),
    'requests': (_POSITIVE, 'latency: writes of one client, each time.'),
}

_SHORT = {'clients': ['-t'], 'size': ['-b']}


def _parameter_options(command: Callable) -> Callable:
    for name, (kind, text) in reversed(_OPTIONS.items()):
        command = click.option(
            *_SHORT.get(name, ()),
            f'--{name.replace("_", "-")}',
            type=kind,
            default=_typed(getattr(_DEFAULTS, name)),
            show_default=True,
            help=text,
        )(command)
    return command


def _typed(default: object) -> str:
    """A default as one would type it."""
    values = default if isinstance(default, tuple) else (default,)
    return ','.join(f'{value:g}' for value in values)


@click.command()
@click.option(
    '--experiments',
    type=_SOME,
    default=','.join(EXPERIMENTS),
    show_default=True,
    help='Which to do.',
)
@_parameter_options
@click.option(
    '--on-refusal',
    type=click.Choice(REFUSAL_POLICIES),
    default=_DEFAULTS.on_refusal,
    show_default=True,
    help='What a client does whose write was refused: wait as long as the '
    'answer says, wait for a pause of its own, or go on.',
)
@click.option(
    '--set',
    'settings',
    type=SETTING,
    multiple=True,
    help='A setting of all clusters, as for shardmw-saio.',
)
@output_options
def ratelimit(
    experiments: Sequence[str],
    output: Path,
    page: Path | None,
    settings: Sequence[tuple[str, str]],
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
    parameters = Parameters(**chosen, settings=dict(settings))
    screen = Screen()
    _check(output, page)
    origin = provenance()
    if origin.is_machine_busy:
        screen.line(
            f'! the load average is {origin.load_average:.1f}: the figures '
            'will be those of a machine with other work'
        )
    with Clients(parameters.processes) as clients:
        stage = Stage(parameters, clients, screen)
        for experiment in experiments:
            screen.heading(experiment)
            result = Result(
                COMMAND,
                experiment,
                origin,
                parameters.as_json(),
                MODULES[experiment].measure(stage),
            )
            path = results.save(output, result)
            for table in tables(result):
                screen.table(table)
            screen.line(f'kept in {path}')
    _publish(output, page)


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
