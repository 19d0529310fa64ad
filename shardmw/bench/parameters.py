# SPDX-License-Identifier: Apache-2.0
"""What an experiment is made with, and how the command line tells. Pure.

A frozen dataclass each, whose fields are the options of its command::

    @dataclass(frozen=True)
    class MyParameters(Parameters):
        clients: int = option(16, POSITIVE, 'Clients at once.', '-t')
        sizes: tuple[int, ...] = option((4096,), SIZES, 'Of the objects.')

:mod:`shardmw.bench.command` makes ``-t/--clients`` and ``--sizes`` of them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_OPTION = 'option'

#: Of a container, unless the cluster's settings say otherwise.
MOST_SHARDS = 1024
_MAX_SHARDS = 'shardmw.max_shards'


class Option(NamedTuple):
    """An option of the command line.

    :param kind: what click takes as its type; bool makes ``--name/--no-name``
    :param text: its help; of several sentences, a fragment each
    :param flags: other names, such as ``-t``; with ``--`` in place of its own
    :param multiple: whether it can be given several times; the field is then
                     a tuple, or a mapping, if the type gives pairs
    :param environment: the variable that gives it if nobody does
    """

    kind: object
    text: str
    flags: tuple[str, ...] = ()
    multiple: bool = False
    environment: str | None = None


def option(
    default: object, kind: object, text: str, *flags: str, **also: object
) -> Any:
    """Return a dataclass field that is an option, too.

    :param also: further fields of :class:`Option`
    """
    metadata = {_OPTION: Option(kind, text, flags, **also)}
    if isinstance(default, Mapping):
        return dataclasses.field(
            default_factory=lambda: dict(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


def check_shards(shards: Sequence[int], settings: Mapping[str, str]) -> None:
    """Refuse more shards than a cluster of the benchmark's own takes.

    :param settings: of the cluster
    :raises ValueError: if so
    """
    wanted = max(shards, default=0)
    most = settings.get(_MAX_SHARDS, str(MOST_SHARDS))
    # what is no number, the cluster refuses itself
    if most.isdecimal() and wanted > int(most):
        raise ValueError(
            f'a container has up to {most} shards, and not {wanted}: ask for '
            f'fewer, or raise it with --set {_MAX_SHARDS}={wanted}'
        )


@dataclass(frozen=True)
class Parameters:
    """The base of all parameters: JSON, and the options."""

    def as_json(self) -> dict[str, object]:
        """Return what :meth:`from_json` takes."""
        return dataclasses.asdict(self)

    def check(self) -> None:
        """Refuse what makes no sense.

        Not when they're made: of results that are there, they are as they
        were.

        :raises ValueError: if so, and why
        """

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'Parameters':
        """Return the parameters that :meth:`as_json` gave."""
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
        found = {}
        for each in dataclasses.fields(cls):
            if _OPTION in each.metadata:
                default = each.default
                if default is dataclasses.MISSING:
                    default = each.default_factory()
                found[each.name] = (default, each.metadata[_OPTION])
        return found
