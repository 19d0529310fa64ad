# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench plan``: how many shards to choose."""

from dataclasses import replace

import click

from shardmw.bench import templates
from shardmw.bench.options import (
    COUNT,
    RATE,
    chosen_parameters,
    parameter_options,
)
from shardmw.bench.planning import (
    NATIVE,
    NATIVE_RATIOS,
    PAGES,
    PLAIN,
    Plan,
    rows_of_fullest,
)
from shardmw.bench.screen import Screen
from shardmw.bench.tables import figure, number

# Fewer shards are mentioned if they list so many times as fast.
_WORTHWHILE_GAIN = 1.5


@click.command()
@click.option(
    '--objects',
    type=COUNT,
    required=True,
    help='Objects to store in the end, such as 10e9.',
)
@click.option(
    '--puts',
    type=RATE,
    required=True,
    help='The highest rate of writes, in writes/s.',
)
@parameter_options(Plan)
def plan(objects: int, puts: float, **chosen: object) -> None:
    """Compute how many shards a container should have.

    \b
    shardmw-bench plan --objects 10e9 --puts 20000

    Cores and disks that are not given are no limit. Nothing is measured.
    """
    advice = chosen_parameters(Plan, chosen)
    advice = replace(advice, objects=objects, puts=puts)
    values = shown(advice)
    screen = Screen()
    screen.heading(
        f'{number(objects)} objects, {figure(puts)} writes/s: '
        f'{recommendation(advice)}'
    )
    for line in templates.lines('plan-reasons', **values):
        screen.line(line)
    for table in templates.tables('plan', **values):
        screen.table(table)
    if warnings := templates.lines('plan-warnings', **values):
        screen.console.print()
    for warning in warnings:
        screen.warning(warning)


COMMANDS = {'plan': plan}


def recommendation(advice: Plan) -> str:
    """Return the recommendation in a few words. Pure."""
    if advice.kind == PLAIN:
        return 'a plain container'
    if advice.kind == NATIVE:
        return "a plain container with Swift's native sharding"
    shards = f'{number(advice.each.shards)} shards'
    if advice.containers == 1:
        return shards
    return f'{number(advice.containers)} containers of {shards} each'


def shown(advice: Plan) -> dict[str, object]:
    """Return what the templates show. Pure."""
    each, rates = advice.each, advice.rows_per_second(None)
    chosen, least = each.outlook(each.shards), each.outlooks[0]
    values = {
        'plan': advice,
        'each': each,
        'chosen': chosen,
        'least': least,
        'pages': PAGES,
        'plain': rates,
        'ones': dict.fromkeys(PAGES, 1),
        'native': {page: rates[page] * NATIVE_RATIOS[page] for page in PAGES},
        'native_ratios': NATIVE_RATIOS,
        'worthwhile_gain': _WORTHWHILE_GAIN,
        'slow_page': each.slow_page,
    }
    if page := each.slow_page:
        rate = chosen.rows_per_second[page]
        values['gain'] = least.rows_per_second[page] / rate
    if each.directories:
        fullest = rows_of_fullest(each.directories, each.shards)
        share = fullest / each.directories
        values['fullest_puts'] = each.puts * share
        values['fullest_objects'] = each.objects * share
    return values
