# SPDX-License-Identifier: Apache-2.0
"""Types of the command line's options, and options that commands share."""

import re
from collections.abc import Callable
from pathlib import Path

import click

from shardmw.bench.parameters import MOST_SHARDS
from shardmw.bench.units import (
    parse_count,
    parse_counts,
    parse_duration,
    parse_mix,
    parse_rate,
    parse_rates,
    parse_shards,
    parse_size,
    parse_size_mix,
    parse_sizes,
    size_text,
)
from shardmw.saio import SaioError
from shardmw.saio.options import parse_setting

_WORD = re.compile(r'[a-z0-9][a-z0-9-]*')

DEFAULT_OUTPUT = Path('.bench')


def listed(values: object, text: Callable[[object], str] = '{:g}'.format):
    """One value or several, as one would type them."""
    several = values if isinstance(values, tuple) else (values,)
    return ','.join(map(text, several))


class Parsed(click.ParamType):
    """An option's value, as a function reads it.

    :param name: what the help calls it
    :param parse: raises ValueError if it can't be read
    :param typed: the text that gives a value, for defaults
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], object],
        typed: Callable[[object], str] = listed,
    ) -> None:
        self.name = name
        self.typed = typed
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


class Checked(Parsed):
    """Text that a function can read, which is left as it is."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        super().__init__(name, parse, str)

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> object:
        """Try to read it."""
        super().convert(value, param, ctx)
        return value


def _size_list(sizes: object) -> str:
    return listed(sizes, size_text)


def _parse_word(text: str) -> None:
    if text and not _WORD.fullmatch(text):
        raise ValueError(
            f'{text!r} is no word: write lower-case letters, digits and '
            'hyphens'
        )


def _parse_container(text: str) -> None:
    if not text or '/' in text:
        raise ValueError(
            f'{text!r} is no name of a container: write one without slashes'
        )


def counts_to(most: int) -> Parsed:
    """Counts of which none is more than the most."""

    def parse(text: str) -> tuple[int, ...]:
        counts = parse_counts(text)
        if max(counts) > most:
            raise ValueError(f'{max(counts):,} is too many: {most:,} at most')
        return counts

    return Parsed('counts', parse)


# As Swift has it by default.
_LONGEST_PAGE = 10_000

# More than these, and a machine is out of ports, or of memory.
_MOST_CLIENTS = 20_000
_MOST_PROCESSES = 256

POSITIVE = click.IntRange(min=1)
NATURAL = click.IntRange(min=0)
CLIENTS = click.IntRange(1, _MOST_CLIENTS)
CLIENT_COUNTS = counts_to(_MOST_CLIENTS)
PAGE = click.IntRange(1, _LONGEST_PAGE)
PAGES = counts_to(_LONGEST_PAGE)
PROCESSES = click.IntRange(1, _MOST_PROCESSES)
WORKERS = click.IntRange(0, _MOST_PROCESSES)
RANGES = click.IntRange(0, MOST_SHARDS)
CONTAINER = Checked('name', _parse_container)
COUNT = Parsed('count', parse_count, lambda count: f'{count:d}')
COUNTS = Parsed('counts', parse_counts)
DURATION = Parsed('duration', parse_duration)
MIX = Checked('mix', parse_mix)
RATE = Parsed('rate', parse_rate)
RATES = Parsed('rates', parse_rates)
SETTING = Parsed('section.option=value', parse_setting)
SHARDS = Parsed('shards', parse_shards)
SIZE = Parsed('size', parse_size, _size_list)
SIZES = Parsed('sizes', parse_sizes, _size_list)
SIZE_MIX = Checked('size', parse_size_mix)
WORD = Checked('word', _parse_word)


#: Where the context of a command says if it replaces earlier results.
REPLACING = 'shardmw.bench.replacing'


def output_option(command: Callable) -> Callable:
    """Add ``--output``, the folder for results, and ``--replace``."""

    def note(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[REPLACING] = value

    command = click.option(
        '--replace',
        is_flag=True,
        expose_value=False,
        callback=note,
        help='Replace earlier results in the folder. Without it, the names '
        'of further results end with the time.',
    )(command)
    return click.option(
        '--output',
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_OUTPUT,
        show_default=True,
        help='The folder for results.',
    )(command)


def name_option(command: Callable) -> Callable:
    """What tells results of one command apart: ``word``."""
    return click.option(
        '--name',
        'word',
        type=WORD,
        default='',
        help='A word for the file of the result, so that there can be several '
        'of a command in a folder.',
    )(command)


def page_option(command: Callable) -> Callable:
    """A page that has figures: ``page``."""
    return click.option(
        '--page',
        type=click.Path(dir_okay=False, path_type=Path),
        help='A Markdown page, whose figures are replaced.',
    )(command)
