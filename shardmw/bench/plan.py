# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench plan``: how many shards to choose."""

from collections.abc import Callable, Iterable, Iterator

import click
from rich.text import Text

from shardmw.bench.options import COUNT, POSITIVE, RATE
from shardmw.bench.planning import (
    NATIVE,
    NATIVE_RATIOS,
    PAGES,
    PLAIN,
    SHARDED,
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
_HOUR = 3600
_DIRECTORIES = (
    'Directories that the objects are spread over, to see if there are enough '
    'to shard by directory.'
)
_LIMIT = 'Writes/s that one shard may take: container_ratelimit_SIZE.'
_BYTE_STEPS = ('B', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB')

_NOTES = (
    '*Objects in one*: in the shard that gets most by chance. *Writes/s*: '
    'what all shards together may take, at --limit each; *wanted*: the share '
    'of it that --puts is. *Rows/s by 10,000*: the rate at which one client '
    'lists, in pages of that size, on servers without other work; *of '
    'plain*: the ratio to a plain container, for each page size. *Native*: '
    "Swift's own container sharding. All of it is computed from processor "
    'time that was measured on a small machine, without disks; '
    'doc/scaling.md explains the formulas.',
)


def _options(*options: tuple) -> Callable[[Callable], Callable]:
    """Return a decorator that adds options; a default of ... is required."""

    def decorate(command: Callable) -> Callable:
        for name, kind, default, text in reversed(options):
            shown = {}
            if default not in (None, ...):
                shown = {'default': default, 'show_default': True}
            command = click.option(
                f'--{name}',
                type=kind,
                required=default is ...,
                help=text,
                **shown,
            )(command)
        return command

    return decorate


@click.command()
@_options(
    ('objects', COUNT, ..., 'Objects to store in the end, such as 10e9.'),
    ('puts', RATE, ..., 'The highest rate of writes, in writes/s.'),
    ('directories', COUNT, None, _DIRECTORIES),
    ('limit', RATE, plain(_BOUNDS.puts_per_second), _LIMIT),
    ('rows', COUNT, str(_BOUNDS.advised_rows), 'Objects of each shard.'),
    ('max-shards', POSITIVE, _BOUNDS.most_shards, 'The option max_shards.'),
    ('fanout', POSITIVE, _SERVERS.fanout, 'The option fanout_concurrency.'),
    ('replicas', POSITIVE, _SERVERS.replicas, 'Replicas of all data.'),
    ('proxy-cores', POSITIVE, None, 'Processor cores of all proxies.'),
    ('object-cores', POSITIVE, None, 'Cores of all object servers.'),
    ('container-cores', POSITIVE, None, 'Cores of all container servers.'),
    ('container-disks', POSITIVE, None, 'Disks with container databases.'),
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
    """Compute how many shards a container should have.

    \b
    shardmw-bench plan --objects 10e9 --puts 20000

    Cores and disks that are not given are no limit. Nothing is measured.
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
        f'{number(objects)} objects, {figure(puts)} writes/s: '
        f'{recommendation(advice)}'
    )
    for line in _reasons(advice, bounds):
        screen.line(line)
    screen.table(_shards_table(advice))
    screen.table(_servers_table(advice, Servers(**servers)))
    if advice.warnings:
        screen.console.print()
    for warning in advice.warnings:
        screen.console.print(Text(f'! {warning}', style='yellow'))


COMMANDS = {'plan': plan}


def recommendation(advice: Plan) -> str:
    """Return the recommendation in a few words. Pure."""
    if advice.kind == PLAIN:
        return 'a plain container'
    if advice.kind == NATIVE:
        return "a plain container with Swift's native sharding"
    shards = f'{number(advice.shards)} shards'
    if advice.containers == 1:
        return shards
    return f'{number(advice.containers)} containers of {shards} each'


def _reasons(advice: Plan, bounds: Bounds) -> Iterator[str]:
    """Yield sentences that explain the recommendation."""
    rate = plain(bounds.puts_per_second)
    if advice.kind == PLAIN:
        yield (
            f'One container takes {rate} writes/s (--limit) and holds '
            f'{number(bounds.advised_rows)} objects (--rows).'
        )
        return
    if advice.kind == NATIVE:
        yield (
            f'One container takes {rate} writes/s (--limit). Native sharding '
            'splits its database as it grows, and its listings cost about '
            'what those of a plain container cost.'
        )
        return
    if advice.containers > 1:
        yield (
            f'One container may have {number(bounds.most_shards)} shards '
            '(--max-shards), which are too few: the application has to '
            f'spread the objects over {number(advice.containers)} '
            'containers. All figures below are those of one of them.'
        )
    yield (
        f'Its writes need {number(advice.for_puts)} shards: '
        f'{figure(advice.needs.puts_per_second)} writes/s, times a headroom '
        f'of {plain(bounds.headroom)} for peaks and growth, at {rate} for '
        'each shard (--limit).'
    )
    yield (
        f'Its objects need {number(advice.for_rows)} shards: '
        f'{number(advice.needs.objects)} objects, at '
        f'{number(bounds.advised_rows)} for each shard (--rows).'
    )
    yield (
        'Recommended is the next power of two, up to --max-shards. At least '
        f'{number(advice.least)} are necessary: without headroom, and with '
        f'{number(bounds.most_rows)} objects for each shard.'
    )
    page = max(PAGES)
    hours = advice.needs.objects / advice.chosen.rows_per_second[page] / _HOUR
    yield (
        f'A listing of the whole container takes {figure(hours)} hours, in '
        f'pages of {number(page)}, one after another.'
    )
    if advice.chosen.disks_in_use is not None:
        disks = figure(advice.chosen.disks_in_use)
        yield f'Its databases lie on {disks} disks.'


def _shards_table(advice: Plan) -> Table:
    rates = advice.plain_rows_per_second
    return Table(
        'How many shards',
        (
            *('shards', 'objects in one', 'its database', 'all databases'),
            *('writes/s', 'wanted'),
            *(f'rows/s by {number(page)}' for page in PAGES),
            'of plain',
        ),
        [
            *(_shards_row(each, advice) for each in advice.outlooks),
            _other_row(PLAIN, rates, dict.fromkeys(PAGES, 1.0)),
            _other_row(
                NATIVE,
                {page: rates[page] * NATIVE_RATIOS[page] for page in PAGES},
                NATIVE_RATIOS,
            ),
        ],
        _NOTES,
    )


def _shards_row(each: Outlook, advice: Plan) -> tuple[str, ...]:
    is_chosen = advice.kind == SHARDED and each.shards == advice.shards
    mark = ' ←' if is_chosen else ''
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
    return Table(
        'Cores that all writes keep busy',
        ('servers', 'busy', 'available'),
        [
            (kind, figure(busy), number(servers.cores[kind]))
            for kind, busy in advice.cores.items()
        ],
    )


def size_text(size: float) -> str:
    """Return bytes in a unit that fits, such as ``1.8 GB``. Pure."""
    step = 0
    while size >= 1000 and step < len(_BYTE_STEPS) - 1:
        size /= 1000
        step += 1
    return f'{figure(size)} {_BYTE_STEPS[step]}'
