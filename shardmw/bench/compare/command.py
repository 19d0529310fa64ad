# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench compare``: the command."""

import click

from shardmw.bench.command import InOrder
from shardmw.bench.compare import COMMAND
from shardmw.bench.workloads.command import work_command
from shardmw.bench.workloads.works import WORKS

_NATIVE_RANGES = 8

# Fewer have no interval of 95 %.
_ROUNDS = 6
_ALIASES = {'listing': 'list'}


class _Works(InOrder):
    """Kinds of work, with aliases."""

    def get_command(
        self, ctx: click.Context, cmd_name: str
    ) -> click.Command | None:
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))


@click.group(cls=_Works)
def compare() -> None:
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
        is_own = not (values['auth_url'] or values['storage_url'])
        values['native'] = _NATIVE_RANGES if is_own else 0


for _work in WORKS.values():
    compare.add_command(
        work_command(
            COMMAND,
            _work,
            _with_plain,
            shards=(32,),
            native=None,
            rounds=_ROUNDS,
        )
    )

COMMANDS = {'compare': compare}
