# SPDX-License-Identifier: Apache-2.0
"""The arguments and options that several commands have."""

import math

import click

from shardmw.admin.names import parse_name
from shardmw.core.paths import API_VERSION, Path
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
    """A name such as ACCOUNT/CONTAINER."""

    name = 'name'

    def __init__(self, parts: int) -> None:
        self.parts = parts

    def convert(self, value, param, ctx):
        try:
            return parse_name(value, self.parts)
        except AdminError as err:
            self.fail(str(err), param, ctx)


class ContainerName(Name):
    """The name of a container, ACCOUNT/CONTAINER, which becomes its path."""

    def __init__(self) -> None:
        super().__init__(2)

    def convert(self, value, param, ctx):
        return Path(API_VERSION, *super().convert(value, param, ctx))


ACCOUNT = click.argument('account', type=Name(1), required=False)
CONTAINER = click.argument('container', metavar='A/C', type=ContainerName())
OBJECT = click.argument('name', metavar='A/C/O', type=Name(3))
AS_JSON = click.option('--json', 'as_json', is_flag=True, help='Print JSON.')
