# SPDX-License-Identifier: Apache-2.0
"""Types of the command line's options, and options that commands share."""

from collections.abc import Callable
from pathlib import Path

import click

from shardmw.bench.units import (
    parse_counts,
    parse_duration,
    parse_rate,
    parse_rates,
    parse_size,
)
from shardmw.saio import SaioError
from shardmw.saio.options import parse_setting

DEFAULT_OUTPUT = Path('.bench')


class Parsed(click.ParamType):
    """An option's value, as a function reads it.

    :param name: what the help calls it
    :param parse: raises ValueError if it can't be read
    """

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> object:
        """Read it, unless it's a default that needs no reading."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, SaioError) as err:
            self.fail(str(err), param, ctx)


SIZE = Parsed('size', parse_size)
DURATION = Parsed('duration', parse_duration)
COUNTS = Parsed('counts', parse_counts)
RATES = Parsed('rates', parse_rates)
RATE = Parsed('rate', parse_rate)
SETTING = Parsed('section.option=value', parse_setting)


def output_options(command: Callable) -> Callable:
    """Where results go: ``output`` and ``page``."""
    command = click.option(
        '--page',
        type=click.Path(dir_okay=False, path_type=Path),
        help='A Markdown page, whose figures are replaced.',
    )(command)
    return click.option(
        '--output',
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_OUTPUT,
        show_default=True,
        help='The folder for results.',
    )(command)
