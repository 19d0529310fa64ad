# SPDX-License-Identifier: Apache-2.0
"""Parameters of experiments, which are options of commands, too. Pure.

The fields of a frozen dataclass are the options of its command::

    @dataclass(frozen=True)
    class MyParameters(Parameters):
        clients: int = option(
            16, POSITIVE, 'Concurrent clients.', '-t', '--clients'
        )
        sizes: tuple[int, ...] = option((4096,), SIZES, 'Object sizes.')

:mod:`shardmw.bench.options` makes ``-t/--clients`` and ``--sizes`` of them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_OPTION = 'option'

#: The default maximum of shards of a container.
MOST_SHARDS = 1024
_MAX_SHARDS = 'shardmw.max_shards'


class Option(NamedTuple):
    """An option of the command line.

    :param kind: the click type; bool makes ``--name/--no-name``
    :param text: the help
    :param flags: other flags such as ``-t``; one with ``--`` replaces the
                  flag that is made of the field's name
    :param multiple: True if it can be repeated; the field is then a tuple,
                     or a mapping if the type gives pairs
    :param envvar: environment variables that are its default
    """

    kind: object
    text: str
    flags: tuple[str, ...] = ()
    multiple: bool = False
    envvar: str | Sequence[str] | None = None


def option(
    default: object,
    kind: object,
    text: str,
    *flags: str,
    multiple: bool = False,
    envvar: str | Sequence[str] | None = None,
) -> Any:
    """Return a dataclass field that is an option."""
    metadata = {_OPTION: Option(kind, text, flags, multiple, envvar)}
    if isinstance(default, Mapping):
        return dataclasses.field(
            default_factory=lambda: dict(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


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


@dataclass(frozen=True)
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
    def options(cls) -> dict[str, tuple[object, Option]]:
        """Return ``{field: (default, option)}`` of fields with options."""
        defaults = cls()
        return {
            each.name: (getattr(defaults, each.name), each.metadata[_OPTION])
            for each in dataclasses.fields(cls)
            if _OPTION in each.metadata
        }
