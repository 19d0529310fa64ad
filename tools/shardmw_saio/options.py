# SPDX-License-Identifier: Apache-2.0
"""The options of a cluster, checked once. Pure.

The sections of configuration files that a setting may name are listed in
:mod:`shardmw_saio.config`.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from shardmw_saio.errors import SaioError

#: Options that the data on disk depends on. They are fixed when a cluster is
#: made.
STRUCTURAL_OPTIONS = ('replicas', 'devices', 'policies', 'encryption')

_MINIMUM = {
    'proxies': 1,
    'replicas': 1,
    'devices': 1,
    'policies': 1,
    'workers': 0,
    'port': 0,
}


class Host(NamedTuple):
    """A host of servers and daemons.

    :param address: the address that the servers listen on
    :param namespace: its network namespace, as ``ip netns`` names it; '' for
                      the namespace of the process that starts the cluster
    """

    address: str
    namespace: str = ''


@dataclass(frozen=True)
class ClusterOptions:
    """The options of a cluster.

    :param proxies: the number of proxy servers, each with its own port; all
                    share one memcached
    :param replicas: the number of copies of all data, and of storage nodes.
                     Each node has an account, a container and an object
                     server
    :param devices: the number of devices on all nodes together; None for one
                    per replica
    :param policies: the number of storage policies; the first is the default
    :param workers: the number of worker processes of each server; 0: the
                    server itself answers requests, which suits a small machine
    :param encryption: encrypt objects at rest
    :param daemons: run Swift's daemons in the background. Without them, a
                    daemon runs only when :meth:`Cluster.daemon` is called
    :param port: the port of the first proxy; the other servers get the next
                 ones. 0 picks free ports for all
    :param settings: ``{'section.option': value}`` for the servers'
                     configuration files
    :param hosts: the hosts of servers and of daemons that run once for the
                  whole cluster, by name; all others listen on 127.0.0.1. A
                  single run of a daemon of a server is on the server's host
    """

    proxies: int = 1
    replicas: int = 1
    devices: int | None = None
    policies: int = 1
    workers: int = 0
    encryption: bool = False
    daemons: bool = False
    port: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.devices is None:
            object.__setattr__(self, 'devices', self.replicas)
        settings = MappingProxyType(dict(self.settings))
        object.__setattr__(self, 'settings', settings)
        hosts = {name: Host(*each) for name, each in self.hosts.items()}
        object.__setattr__(self, 'hosts', MappingProxyType(hosts))
        for name, minimum in _MINIMUM.items():
            _check_at_least(name, getattr(self, name), minimum)
        _check_at_least('devices', self.devices, self.replicas)
        for setting in self.settings:
            split_setting(setting)

    def changed(self, **changes: object) -> 'ClusterOptions':
        """Return a copy with some options replaced."""
        return dataclasses.replace(self, **changes)

    def with_settings(
        self, settings: Mapping[str, str | None]
    ) -> 'ClusterOptions':
        """Return a copy with settings added, replaced, or (None) removed."""
        merged = {**self.settings, **settings}
        kept = {k: v for k, v in merged.items() if v is not None}
        return self.changed(settings=kept)

    def as_json(self) -> dict[str, object]:
        """Return the values that :meth:`from_json` takes."""
        fields = dataclasses.fields(self)
        values = {each.name: getattr(self, each.name) for each in fields}
        mappings = {
            'settings': dict(self.settings),
            'hosts': dict(self.hosts),
        }
        return {**values, **mappings}

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> 'ClusterOptions':
        """Return the options whose values :meth:`as_json` returned."""
        return cls(**values)


def split_setting(setting: str) -> tuple[str, str]:
    """Return the section and the option of ``section.option``.

    :raises SaioError: if the setting has another form
    """
    section, dot, option = setting.partition('.')
    if not (section and dot and option):
        raise SaioError(
            f'setting {setting!r} names no option: write section.option, '
            'such as shardmw.default_shards'
        )
    return section, option


def parse_setting(text: str) -> tuple[str, str]:
    """Return the setting and the value of ``section.option=value``.

    :raises SaioError: if the text has another form
    """
    setting, equals, value = text.partition('=')
    if not equals:
        raise SaioError(
            f'setting {text!r} has no value: write section.option=value, '
            'such as shardmw.default_shards=8'
        )
    split_setting(setting)
    if '\n' in value:
        raise SaioError(f'setting {setting!r} has a line break: remove it')
    return setting.strip(), value.strip()


def check_are_set(options: ClusterOptions, settings: Iterable[str]) -> None:
    """Check that some settings are set in a cluster.

    :raises SaioError: for the first one that is not
    """
    for setting in settings:
        if setting not in options.settings:
            present = ', '.join(sorted(options.settings)) or 'none'
            raise SaioError(
                f'setting {setting!r} is not set: the settings are: {present}'
            )


def check_same_structure(
    stored: ClusterOptions, wanted: Mapping[str, object]
) -> None:
    """Check that the data of a cluster fits other options.

    :param stored: the options that the cluster was made with
    :param wanted: the other options by name; some may be missing
    :raises SaioError: if a structural option differs
    """
    for name in STRUCTURAL_OPTIONS:
        was = getattr(stored, name)
        now = wanted.get(name, was)
        if was != now:
            raise SaioError(
                f'{name} is {_shown(was)} and cannot be changed to '
                f'{_shown(now)}: leave the option out, or make a cluster in '
                'another folder'
            )


def _check_at_least(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise SaioError(
            f'{name} is {value}: it must be {minimum} or more'
            + (', one for each replica' if name == 'devices' else '')
        )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return 'on' if value else 'off'
    return str(value)
