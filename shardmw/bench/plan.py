# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench plan``: how many shards to choose."""

from collections.abc import Iterable, Sequence

import click
from rich.text import Text

from shardmw.bench.options import COUNT, RATE
from shardmw.bench.planning import (
    NATIVE_RATIOS,
    PAGES,
    Bounds,
    Costs,
    Needs,
    Outlook,
    Plan,
    Servers,
    make_plan,
)
from shardmw.bench.screen import Screen
from shardmw.bench.tables import Table, figure, number, plain

_BOUNDS = Bounds()
_SERVERS = Servers()
_POSITIVE = click.IntRange(min=1)
SECONDS_OF_HOUR = 3600
_BYTE_STEPS = ('B', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB')

_NOTES = (
    'Writes: what the shards may take at the limit of each, and how much of '
    'it is wanted. Rows a second: one client, page after page, on servers '
    'that have nothing else to do. Both are reckoned from processor time '
    'that was measured on a small machine; disks are left out. '
    'doc/scaling.md says how.',
)


@click.command()
@click.option(
    '--objects',
    type=COUNT,
    required=True,
    help='How many the container is to hold in the end, such as 10e9.',
)
@click.option(
    '--puts',
    type=RATE,
    required=True,
    help='How many writes a second it is to take at the most.',
)
@click.option(
    '--directories',
    type=COUNT,
    help='Over how many directories they are spread: says if sharding by '
    'directory does.',
)
@click.option(
    '--limit',
    type=RATE,
    default=f'{_BOUNDS.puts_per_second:g}',
    show_default=True,
    help='Writes a second that one backing container may take.',
)
@click.option(
    '--rows',
    type=COUNT,
    default=str(_BOUNDS.advised_rows),
    show_default=True,
    help='Objects that one backing container should hold.',
)
@click.option(
    '--max-shards',
    type=_POSITIVE,
    default=_BOUNDS.most_shards,
    show_default=True,
    help="The filter's option max_shards.",
)
@click.option(
    '--fanout',
    type=_POSITIVE,
    default=_SERVERS.fanout,
    show_default=True,
    help="The filter's option fanout_concurrency.",
)
@click.option(
    '--replicas',
    type=_POSITIVE,
    default=_SERVERS.replicas,
    show_default=True,
    help='Of objects and of container databases.',
)
@click.option(
    '--proxy-cores',
    type=_POSITIVE,
    help='Processor cores of all proxies together.',
)
@click.option(
    '--object-cores',
    type=_POSITIVE,
    help='The same of all object servers.',
)
@click.option(
    '--container-cores',
    type=_POSITIVE,
    help='The same of all container servers.',
)
@click.option(
    '--container-disks',
    type=_POSITIVE,
    help='Disks that have container databases.',
)
def plan(
    objects: int,
    puts: float,
    directories: int | None,
    limit: float,
    rows: int,
    max_shards: int,
    **servers: int | None,
) -> None:
    """Reckon how many shards a container should have.

    \b
    shardmw-bench plan --objects 10e9 --puts 20000

    What of the servers is not given does not limit anything.
    """
    bounds = Bounds(
        puts_per_second=limit,
        advised_rows=rows,
        most_rows=max(rows, _BOUNDS.most_rows),
        most_shards=max_shards,
    )
    needs = Needs(objects, puts, directories)
    advice = make_plan(needs, bounds, Costs(), Servers(**servers))
    screen = Screen()
    screen.heading(
        f'{number(objects)} objects, {figure(puts)} writes a second: '
        f'{number(advice.advised)} shards'
    )
    for line in (*_reasons(advice, bounds), *_prospects(advice, needs)):
        screen.line(line)
    screen.table(_shards_table(advice))
    screen.table(_servers_table(advice, Servers(**servers)))
    if advice.warnings:
        screen.console.print()
    for warning in advice.warnings:
        screen.console.print(Text(f'! {warning}', style='yellow'))


COMMANDS = {'plan': plan}


def _reasons(advice: Plan, bounds: Bounds) -> Sequence[str]:
    return (
        f'Writes want {number(advice.for_puts)}: {plain(bounds.headroom)} '
        f'times their rate, at {plain(bounds.puts_per_second)} a second '
        'for each.',
        f'Objects want {number(advice.for_rows)}: '
        f'{number(bounds.advised_rows)} in each.',
        f'Fewer than {number(advice.least)} would not do; a container may '
        f'have {number(bounds.most_shards)}.',
    )


def _prospects(advice: Plan, needs: Needs) -> list[str]:
    (chosen,) = (x for x in advice.outlooks if x.shards == advice.advised)
    page = max(PAGES)
    hours = needs.objects / chosen.rows_per_second[page] / SECONDS_OF_HOUR
    lines = [
        f'A listing of all takes {figure(hours)} hours, in pages of '
        f'{number(page)}, one after another.'
    ]
    if chosen.disks_in_use is not None:
        lines.append(
            f'Its databases lie on {figure(chosen.disks_in_use)} disks.'
        )
    return lines


def _shards_table(advice: Plan) -> Table:
    rates = advice.plain_rows_per_second
    return Table(
        'How many shards',
        (
            *('shards', 'objects in one', 'its database', 'all databases'),
            *('writes /s', 'wanted'),
            *(f'rows/s by {number(page)}' for page in PAGES),
            'of plain',
        ),
        [
            *(_shards_row(each, advice.advised) for each in advice.outlooks),
            _other_row('plain', rates, dict.fromkeys(PAGES, 1.0)),
            _other_row(
                'native',
                {page: rates[page] * NATIVE_RATIOS[page] for page in PAGES},
                NATIVE_RATIOS,
            ),
        ],
        _NOTES,
    )


def _shards_row(each: Outlook, advised: int) -> tuple[str, ...]:
    mark = ' ←' if each.shards == advised else ''
    return (
        f'{number(each.shards)}{mark}',
        figure(each.rows_of_fullest),
        size_text(each.database_bytes),
        size_text(each.all_bytes),
        figure(each.puts_per_second),
        f'{each.used_share:.0%}',
        *(figure(each.rows_per_second[page]) for page in PAGES),
        _ratios(each.ratios[page] for page in PAGES),
    )


def _other_row(name: str, rates: dict, ratios: dict) -> tuple[str, ...]:
    return (
        *(name, *'—————'),
        *(figure(rates[page]) for page in PAGES),
        _ratios(ratios[page] for page in PAGES),
    )


def _ratios(ratios: Iterable[float]) -> str:
    return ' / '.join(f'{ratio:.2g}' for ratio in ratios)


def _servers_table(advice: Plan, servers: Servers) -> Table:
    have = {
        'proxy': servers.proxy_cores,
        'object': servers.object_cores,
        'container': servers.container_cores,
    }
    return Table(
        'Busy cores',
        ('servers', 'by the writes', 'there are'),
        [
            (kind, figure(busy), number(have[kind]))
            for kind, busy in advice.cores.items()
        ],
    )


def size_text(size: float) -> str:
    """Bytes in a unit that fits, such as ``1.8 GB``. Pure."""
    step = 0
    while size >= 1000 and step < len(_BYTE_STEPS) - 1:
        size /= 1000
        step += 1
    return f'{figure(size)} {_BYTE_STEPS[step]}'
