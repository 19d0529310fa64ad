# SPDX-License-Identifier: Apache-2.0
"""The commands ``write``, ``read``, ``head`` and so on, and ``compare``."""

import functools
from collections.abc import Callable
from pathlib import Path

import click

from shardmw_bench import options
from shardmw_bench.command import InOrder, perform
from shardmw_bench.experiments import COMPARE, WORKLOAD
from shardmw_bench.workloads.measuring import measure
from shardmw_bench.workloads.place import place_of, place_options
from shardmw_bench.workloads.works import WORKS, Work

_NATIVE_RANGES = 8
_ALIASES = {'listing': 'list'}


def work_command(
    command: str,
    work: type[Work],
    adjust: Callable[[click.Context], None] = lambda context: None,
    **defaults: object,
) -> click.Command:
    """Return the command of a kind of work.

    :param command: in the names of results
    :param adjust: changes ``context.params`` before they are read
    :param defaults: override the defaults of parameters
    """

    @click.command(work.name, help=work.summary())
    @options.parameter_options(work, **defaults)
    @place_options
    @options.output_option
    @options.name_option
    @click.pass_context
    def run(
        context: click.Context, output: Path, word: str, **_: object
    ) -> None:
        place = place_of(context)
        adjust(context)
        chosen = options.chosen_parameters(work, context.params)
        if place.is_own:
            with options.usage_errors():
                options.check_shards(chosen.shards, chosen.settings)
        on_place = functools.partial(measure, place=place)
        perform(command, [chosen], output, word, on_place)

    return run


class _Works(InOrder):
    def get_command(self, context: click.Context, name: str) -> click.Command:
        return super().get_command(context, _ALIASES.get(name, name))


@click.group('compare', cls=_Works)
def _compare() -> None:
    """Do the same work on plain, natively sharded and sharded containers.

    The containers take turns in each round. Ratios to the plain container
    have a confidence interval. On an existing cluster there is no natively
    sharded container.
    """


def _with_plain(context: click.Context) -> None:
    """Add the plain container, and a native one where possible."""
    values = context.params
    values['shards'] = tuple(dict.fromkeys((0, *values['shards'])))
    if values['native'] is None:
        is_own = place_of(context).is_own
        values['native'] = _NATIVE_RANGES if is_own else 0


COMMANDS = {name: work_command(WORKLOAD, work) for name, work in WORKS.items()}
COMMANDS['compare'] = _compare
# fewer rounds have no interval of 95 %
_DEFAULTS = {'shards': (32,), 'native': None, 'rounds': 6}
for _work in WORKS.values():
    _compare.add_command(
        work_command(COMPARE, _work, _with_plain, **_DEFAULTS)
    )
