# SPDX-License-Identifier: Apache-2.0
"""Parameters of experiments, which are options of commands, too.

The fields of a frozen dataclass are the options of its command::

    @dataclass(frozen=True)
    class MyParameters(Parameters):
        clients: int = option(
            16, POSITIVE, 'Concurrent clients.', '-t', '--clients'
        )
        sizes: tuple[int, ...] = option((4096,), SIZES, 'Object sizes.')

:func:`parameter_options` turns them into ``-t/--clients`` and ``--sizes``.
"""

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from shardmw_saio import SaioError
from shardmw_saio.options import parse_setting

from shardmw_bench import units

DEFAULT_OUTPUT = Path('.bench')

#: The default maximum of shards of a container.
MOST_SHARDS = 1024
_MAX_SHARDS = 'shardmw.max_shards'


def typed(value: object) -> str:
    """Return a value, or a tuple of values, as a user types it."""
    if isinstance(value, tuple):
        return ','.join(map(typed, value))
    return f'{value:g}' if isinstance(value, float) else str(value)


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
        typed: Callable[[object], str] = typed,
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


def several(name: str, kind: click.ParamType) -> Parsed:
    """Return the type of different values, separated by commas.

    :param kind: the type of each value
    """
    text_of = getattr(kind, 'typed', typed)

    def parse(text: str) -> tuple:
        values = tuple(kind.convert(x, None, None) for x in text.split(','))
        if len(set(values)) < len(values):
            raise ValueError(f'{text!r} has a value twice: write each once')
        return values

    return Parsed(name, parse, lambda values: ','.join(map(text_of, values)))


def _checked(name: str, parse: Callable[[str], object]) -> Parsed:
    """Return the type of a text that a function can parse."""
    return Parsed(name, lambda text: parse(text) and text)


def _matching(name: str, pattern: str, what: str) -> Parsed:
    """Return the type of a text that has a pattern."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f'{text!r} is no {what}')
        return text

    return Parsed(name, parse)


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
CONTAINER = _matching(
    'name', '[^/]+', 'name of a container: write one without slashes'
)
COUNT = Parsed('count', units.parse_count)
COUNTS = several('counts', POSITIVE)
DURATION = Parsed('duration', units.parse_duration)
MIX = _checked('mix', units.parse_mix)
RATE = click.FloatRange(min=0, min_open=True)
RATES = several('rates', RATE)
SETTING = Parsed('section.option=value', parse_setting)
SHARDS = several('shards', NATURAL)
SIZE = Parsed('size', units.parse_size, units.size_text)
SIZES = several('sizes', SIZE)
SIZE_MIX = _checked('size', units.parse_size_mix)
WORD = _matching(
    'word',
    '([a-z0-9][a-z0-9-]*)?',
    'word: write lower-case letters, digits and hyphens',
)
FILE = click.Path(dir_okay=False, path_type=Path)


def option(
    default: object, kind: object, text: str, *flags: str, **attributes: Any
) -> Any:
    """Return a dataclass field that is an option.

    :param kind: the click type; bool makes ``--name/--no-name``
    :param text: the help
    :param flags: other flags such as ``-t``; one with ``--`` replaces the
                  flag that is made from the field's name
    :param attributes: of :func:`click.option`; with ``multiple``, the field
                       is a mapping, and the type gives pairs
    """
    options = {'type': kind, 'help': text, 'flags': flags, **attributes}
    return dataclasses.field(
        default=dataclasses.MISSING if default == {} else default,
        default_factory=dict if default == {} else dataclasses.MISSING,
        metadata=options,
    )


@dataclasses.dataclass(frozen=True)
class Parameters:
    """The base class of all parameters."""

    def as_json(self) -> dict[str, object]:
        return dataclasses.asdict(self)

    def check(self) -> None:
        """Raise ValueError if values contradict each other."""

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Parameters':
        """Return the parameters of :meth:`as_json`, without a check."""
        known = {each.name for each in dataclasses.fields(cls)}
        return cls(
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()
                if name in known
            }
        )

    @classmethod
    def options(cls) -> dict[str, Mapping[str, Any]]:
        """Return the arguments of :func:`option`, by field."""
        fields = dataclasses.fields(cls)
        return {each.name: each.metadata for each in fields if each.metadata}

    def texts(self) -> list[tuple[str, str]]:
        """Return ``(name, value)`` as typed, without unset parameters."""
        texts = []
        for name, each in self.options().items():
            value = getattr(self, name)
            if value is None or value is False or value in ('', {}):
                continue
            text_of = getattr(each['type'], 'typed', typed)
            text = 'yes' if value is True else text_of(value)
            texts.append((name.replace('_', '-'), text))
        return texts


def parameter_options(
    parameters: type[Parameters], **defaults: object
) -> Callable[[Callable], Callable]:
    """Return a decorator that adds the options of parameters.

    :param defaults: by name; they override the defaults of the fields
    """
    values = {**vars(parameters()), **defaults}

    def decorate(command: Callable) -> Callable:
        for name, each in reversed(parameters.options().items()):
            command = _option(name, values[name], **each)(command)
        return command

    return decorate


def _option(
    name: str,
    default: object,
    type: object,
    flags: Sequence[str],
    **attributes: object,
) -> Callable[[Callable], Callable]:
    is_flag = type is bool
    if not any(flag.startswith('--') for flag in flags):
        flag = name.replace('_', '-')
        own = f'--{flag}/--no-{flag}' if is_flag else f'--{flag}'
        flags = (*flags, own)
    if default == {}:
        default = None
    elif default is not None and isinstance(type, Parsed):
        # for the help
        default = type.typed(default)
    return click.option(
        *(name, *flags),
        type=None if is_flag else type,
        is_flag=is_flag,
        **({} if attributes.get('required') else {'default': default}),
        show_default=default not in (None, ''),
        show_envvar=isinstance(attributes.get('envvar'), str),
        **attributes,
    )


def chosen_parameters(
    parameters: type[Parameters], values: Mapping[str, object]
) -> Parameters:
    """Return the parameters of parsed options.

    :raises UsageError: if values contradict each other
    """
    chosen = {
        name: dict(values[name]) if each.get('multiple') else values[name]
        for name, each in parameters.options().items()
    }
    found = parameters(**chosen)
    with usage_errors():
        found.check()
    return found


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as err:
        raise click.UsageError(str(err)) from err


def check_shards(shards: Sequence[int], settings: Mapping[str, str]) -> None:
    """Raise ValueError if the temporary cluster refuses so many shards.

    :param settings: of the cluster
    """
    wanted = max(shards, default=0)
    most = settings.get(_MAX_SHARDS, str(MOST_SHARDS))
    # the cluster refuses a setting that is no number
    if most.isdecimal() and wanted > int(most):
        raise ValueError(
            f'{wanted} shards are too many: a container has up to {most}; '
            f'ask for fewer, or raise it with --set {_MAX_SHARDS}={wanted}'
        )


folder_option = click.option(
    '--output',
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_OUTPUT,
    show_default=True,
    help='The folder of the results.',
)

page_option = click.option(
    '--page',
    type=FILE,
    help='A Markdown page whose figures are replaced by the main tables.',
)


def output_option(command: Callable) -> Callable:
    """Add ``--output``, the folder of results, and ``--replace``.

    :func:`shardmw_bench.command.perform` reads ``--replace`` itself.
    """
    replace_option = click.option(
        '--replace',
        is_flag=True,
        help='Replace an earlier result in the folder. Without it, the time '
        'is appended to the name of the new result.',
    )
    return folder_option(replace_option(command))


name_option = click.option(
    '--name',
    'word',
    type=WORD,
    default='',
    help='A word to append to the name of the result, to keep several '
    'results of a command in one folder.',
)
