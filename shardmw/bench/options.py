# SPDX-License-Identifier: Apache-2.0
"""Types of options, and options that several commands have."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from shardmw.bench import units
from shardmw.bench.parameters import MOST_SHARDS, Option, Parameters
from shardmw.saio import SaioError
from shardmw.saio.options import parse_setting

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
        """Return the value of a text; a default may be a value already."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, SaioError) as err:
            self.fail(str(err), param, ctx)


def several(
    name: str,
    kind: click.ParamType,
    typed: Callable[[object], str] = '{:g}'.format,
) -> Parsed:
    """Return the type of different values with commas between.

    :param kind: of each value
    :param typed: returns the text of a value
    """

    def parse(text: str) -> tuple:
        values = tuple(kind.convert(x, None, None) for x in text.split(','))
        if len(set(values)) < len(values):
            raise ValueError(f'{text!r} has a value twice: write each once')
        return values

    return Parsed(name, parse, lambda values: listed(values, typed))


def _checked(name: str, parse: Callable[[str], object]) -> Parsed:
    """Return the type of a text that a function can parse."""
    return Parsed(name, lambda text: parse(text) and text, str)


def _word(text: str) -> str:
    if not re.fullmatch(r'([a-z0-9][a-z0-9-]*)?', text):
        raise ValueError(
            f'{text!r} is no word: write lower-case letters, digits and '
            'hyphens'
        )
    return text


def _container(text: str) -> str:
    if not text or '/' in text:
        raise ValueError(
            f'{text!r} is no name of a container: write one without slashes'
        )
    return text


# More would use up the ports or the memory of a machine.
_MOST_CLIENTS = 20_000
_MOST_PROCESSES = 256

POSITIVE = click.IntRange(min=1)
NATURAL = click.IntRange(min=0)
CLIENTS = click.IntRange(1, _MOST_CLIENTS)
CLIENT_COUNTS = several('counts', CLIENTS)
# Swift's default is 10,000.
PAGE = click.IntRange(1, 10_000)
PAGES = several('counts', PAGE)
PROCESSES = click.IntRange(1, _MOST_PROCESSES)
WORKERS = click.IntRange(0, _MOST_PROCESSES)
RANGES = click.IntRange(0, MOST_SHARDS)
CONTAINER = Parsed('name', _container)
COUNT = Parsed('count', units.parse_count, str)
COUNTS = several('counts', POSITIVE)
DURATION = Parsed('duration', units.parse_duration)
MIX = _checked('mix', units.parse_mix)
RATE = click.FloatRange(min=0, min_open=True)
RATES = several('rates', RATE)
SETTING = Parsed('section.option=value', parse_setting)
SHARDS = several('shards', NATURAL)
SIZE = Parsed('size', units.parse_size, units.size_text)
SIZES = several('sizes', SIZE, units.size_text)
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
    type=Parsed('word', _word),
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


def parameter_options(
    parameters: type[Parameters], **defaults: object
) -> Callable[[Callable], Callable]:
    """Return a decorator that adds the options of parameters.

    :param defaults: by name; they override the defaults of the fields
    """

    def decorate(command: Callable) -> Callable:
        options = parameters.options()
        for name, (default, option) in reversed(options.items()):
            default = defaults.get(name, default)
            command = _option(name, default, option)(command)
        return command

    return decorate


def chosen_parameters(
    parameters: type[Parameters], values: Mapping[str, object]
) -> Parameters:
    """Return the parameters of parsed options.

    :raises UsageError: if values contradict each other
    """
    chosen = {}
    for name, (default, _) in parameters.options().items():
        if name in values:
            value = values[name]
            chosen[name] = dict(value) if isinstance(default, dict) else value
    found = parameters(**chosen)
    with usage_errors():
        found.check()
    return found


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a ValueError into a UsageError."""
    try:
        yield
    except ValueError as err:
        raise click.UsageError(str(err)) from err


def _option(
    name: str, default: object, option: Option
) -> Callable[[Callable], Callable]:
    is_flag = option.kind is bool
    flags = option.flags
    if not any(flag.startswith('--') for flag in flags):
        flag = name.replace('_', '-')
        own = f'--{flag}/--no-{flag}' if is_flag else f'--{flag}'
        flags = (*flags, own)
    if option.multiple:
        default = None
    elif default is not None and isinstance(option.kind, Parsed):
        # for the help
        default = option.kind.typed(default)
    return click.option(
        *(name, *flags),
        type=None if is_flag else option.kind,
        is_flag=is_flag,
        default=default,
        show_default=default not in (None, ''),
        multiple=option.multiple,
        envvar=option.envvar,
        show_envvar=isinstance(option.envvar, str),
        help=option.text,
    )
