# SPDX-License-Identifier: Apache-2.0
"""Types of options, and options that several commands have."""

import re
from collections.abc import Callable
from pathlib import Path

import click

from shardmw.bench import units
from shardmw.bench.parameters import MOST_SHARDS
from shardmw.saio import SaioError
from shardmw.saio.options import parse_setting

_WORD = re.compile(r'[a-z0-9][a-z0-9-]*')

DEFAULT_OUTPUT = Path('.bench')

#: The key in ``click.Context.meta`` of the flag ``--replace``.
REPLACING = 'shardmw.bench.replacing'


def listed(values: object, text: Callable[[object], str] = '{:g}'.format):
    """Return one value or a tuple of values as a user types them."""
    several = values if isinstance(values, tuple) else (values,)
    return ','.join(map(text, several))


class Parsed(click.ParamType):
    """The type of an option that a function parses.

    :param name: for the help
    :param parse: raises ValueError for bad text
    :param typed: returns the text of a value, for the default in the help
    :param keeps_text: True to check the text only, and to keep it
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], object],
        typed: Callable[[object], str] = listed,
        keeps_text: bool = False,
    ) -> None:
        self.name = name
        self.typed = typed
        self._parse = parse
        self._keeps_text = keeps_text

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> object:
        """Return the value of a text; a default may be a value already."""
        if not isinstance(value, str):
            return value
        try:
            parsed = self._parse(value)
        except (ValueError, SaioError) as err:
            self.fail(str(err), param, ctx)
        return value if self._keeps_text else parsed


def _checked(name: str, parse: Callable[[str], object]) -> Parsed:
    return Parsed(name, parse, str, keeps_text=True)


def _size_list(sizes: object) -> str:
    return listed(sizes, units.size_text)


def _check_word(text: str) -> None:
    if text and not _WORD.fullmatch(text):
        raise ValueError(
            f'{text!r} is no word: write lower-case letters, digits and '
            'hyphens'
        )


def _check_container(text: str) -> None:
    if not text or '/' in text:
        raise ValueError(
            f'{text!r} is no name of a container: write one without slashes'
        )


def _counts_to(most: int) -> Parsed:
    """Return the type of a list of counts up to a maximum."""

    def parse(text: str) -> tuple[int, ...]:
        counts = units.parse_counts(text)
        if max(counts) > most:
            raise ValueError(f'{max(counts):,} is too many: {most:,} at most')
        return counts

    return Parsed('counts', parse)


# Swift's default.
_LONGEST_PAGE = 10_000

# More would use up the ports or the memory of a machine.
_MOST_CLIENTS = 20_000
_MOST_PROCESSES = 256

POSITIVE = click.IntRange(min=1)
NATURAL = click.IntRange(min=0)
CLIENTS = click.IntRange(1, _MOST_CLIENTS)
CLIENT_COUNTS = _counts_to(_MOST_CLIENTS)
PAGE = click.IntRange(1, _LONGEST_PAGE)
PAGES = _counts_to(_LONGEST_PAGE)
PROCESSES = click.IntRange(1, _MOST_PROCESSES)
WORKERS = click.IntRange(0, _MOST_PROCESSES)
RANGES = click.IntRange(0, MOST_SHARDS)
CONTAINER = _checked('name', _check_container)
COUNT = Parsed('count', units.parse_count, str)
COUNTS = Parsed('counts', units.parse_counts)
DURATION = Parsed('duration', units.parse_duration)
MIX = _checked('mix', units.parse_mix)
RATE = Parsed('rate', units.parse_rate)
RATES = Parsed('rates', units.parse_rates)
SETTING = Parsed('section.option=value', parse_setting)
SHARDS = Parsed('shards', units.parse_shards)
SIZE = Parsed('size', units.parse_size, _size_list)
SIZES = Parsed('sizes', units.parse_sizes, _size_list)
SIZE_MIX = _checked('size', units.parse_size_mix)
_FILE = click.Path(dir_okay=False, path_type=Path)

folder_option = click.option(
    '--output',
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_OUTPUT,
    show_default=True,
    help='The folder of the results.',
)


def output_option(command: Callable) -> Callable:
    """Add ``--output``, the folder of results, and ``--replace``."""

    def note(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[REPLACING] = value

    replace_option = click.option(
        '--replace',
        is_flag=True,
        expose_value=False,
        callback=note,
        help='Replace an earlier result in the folder. Without it, the time '
        'is appended to the name of the new result.',
    )
    return folder_option(replace_option(command))


name_option = click.option(
    '--name',
    'word',
    type=_checked('word', _check_word),
    default='',
    help='A word to append to the name of the result, to keep several '
    'results of a command in one folder.',
)

page_option = click.option(
    '--page',
    type=_FILE,
    help='A Markdown page whose figures are replaced by the main tables.',
)

html_option = click.option(
    '--html',
    type=_FILE,
    help='The HTML page to write.  [default: report.html in the folder]',
)
