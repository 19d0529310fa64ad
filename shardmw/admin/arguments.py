# SPDX-License-Identifier: Apache-2.0
"""The arguments and options that several commands have."""

import math

import click

from shardmw.admin.names import parse_name
from shardmw.core.paths import API_VERSION, Path
from shardmw.core.placement import INTERNAL_PREFIX
from shardmw.reshard.errors import AdminError


class Seconds(click.FloatRange):
    """A finite number of seconds, 0 or more."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value, param, ctx):
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f'{value} is not a number of seconds.', param, ctx)
        return seconds


class Name(click.ParamType):
    """A name such as ACCOUNT/CONTAINER.

    :param parts: how many names it has, 1 to 3
    :param of_clients: True to refuse the accounts of shardmw and Swift, whose
                       rows have no objects at their own paths
    """

    name = 'name'

    def __init__(self, parts: int, of_clients: bool = False) -> None:
        self.parts = parts
        self.of_clients = of_clients

    def convert(self, value, param, ctx):
        try:
            names = parse_name(value, self.parts)
        except AdminError as err:
            self.fail(str(err), param, ctx)
        if self.of_clients and names[0].startswith(INTERNAL_PREFIX):
            self.fail(f'{value}: not in an account of a client', param, ctx)
        return names


class ContainerName(Name):
    """The name of a container, ACCOUNT/CONTAINER, which becomes its path."""

    def __init__(self, of_clients: bool = False) -> None:
        super().__init__(2, of_clients)

    def convert(self, value, param, ctx):
        return Path(API_VERSION, *super().convert(value, param, ctx))


ACCOUNT = click.argument('account', type=Name(1), required=False)
CONTAINER = click.argument('container', metavar='A/C', type=ContainerName())
CLIENTS_CONTAINER = click.argument(
    'container', metavar='A/C', type=ContainerName(of_clients=True)
)
OBJECT = click.argument('name', metavar='A/C/O', type=Name(3))
AS_JSON = click.option('--json', 'as_json', is_flag=True, help='Print JSON.')
