# SPDX-License-Identifier: Apache-2.0
"""List the servers and devices of a cluster. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from shardmw_saio.errors import SaioError
from shardmw_saio.options import ClusterOptions, Host

HOST = '127.0.0.1'
LOCAL = Host(HOST)
MEMCACHED = 'memcached'
DAEMONS = 'daemons'
PROXY_KIND = 'proxy-server'
STORAGE_KINDS = ('account-server', 'container-server', 'object-server')

_HIGHEST_PORT = 65535


class Server(NamedTuple):
    """A server: a process and its workers, if it has any."""

    name: str
    kind: str
    node: int
    port: int
    host: Host = LOCAL

    @property
    def address(self) -> str:
        return f'{self.host.address}:{self.port}'

    @property
    def url(self) -> str:
        return f'http://{self.address}'


class Device(NamedTuple):
    """A folder in which a storage node stores data."""

    id: int
    node: int
    name: str


def server_names(options: ClusterOptions) -> list[str]:
    """Return the names of all servers, in the order of their ports."""
    names = [f'proxy-{i + 1}' for i in range(options.proxies)]
    names.append(MEMCACHED)
    for node in _nodes(options):
        names += [f'{role}-{node}' for role in _ROLES]
    if options.daemons:
        names.append(DAEMONS)
    return names


def servers(
    options: ClusterOptions, ports: Mapping[str, int]
) -> dict[str, Server]:
    """Return all servers by name."""
    return {
        name: Server(
            name,
            _kind_of(name),
            _node_of(name),
            ports[name],
            options.hosts.get(name, LOCAL),
        )
        for name in server_names(options)
    }


def consecutive_ports(options: ClusterOptions) -> dict[str, int]:
    """Return the ports of a cluster whose first port is given.

    :raises SaioError: if there are too few ports after the first one
    """
    names = server_names(options)
    highest_first = _HIGHEST_PORT - len(names) + 1
    if options.port > highest_first:
        raise SaioError(
            f'port is {options.port}: it must be {highest_first} or less, '
            f'so that {len(names)} servers have ports of their own'
        )
    return {name: options.port + i for i, name in enumerate(names)}


def devices(options: ClusterOptions) -> list[Device]:
    """Return all devices, assigned to the storage nodes in turn."""
    return [
        Device(i, i % options.replicas + 1, f'sdb{i + 1}')
        for i in range(options.devices)
    ]


def ring_devices(
    options: ClusterOptions, all_servers: Mapping[str, Server]
) -> dict[str, list[dict[str, object]]]:
    """Return the devices of each ring, as Swift's ring builder takes them."""
    kinds = {
        'account': 'account-server',
        'container': 'container-server',
        'object': 'object-server',
    }
    for index in range(1, options.policies):
        kinds[f'object-{index}'] = 'object-server'
    found = {(each.kind, each.node): each for each in all_servers.values()}
    return {
        ring: [
            {
                'id': device.id,
                'region': 1,
                'zone': device.node,
                'weight': 1.0,
                'ip': found[kind, device.node].host.address,
                'port': found[kind, device.node].port,
                'device': device.name,
            }
            for device in devices(options)
        ]
        for ring, kind in kinds.items()
    }


#: Servers that a cluster has only once. Their names are their kinds.
_SINGLE = (MEMCACHED, DAEMONS)

_ROLES = tuple(kind.removesuffix('-server') for kind in STORAGE_KINDS)


def _nodes(options: ClusterOptions) -> range:
    return range(1, options.replicas + 1)


def _kind_of(name: str) -> str:
    if name in _SINGLE:
        return name
    return name.rpartition('-')[0] + '-server'


def _node_of(name: str) -> int:
    return 1 if name in _SINGLE else int(name.rpartition('-')[2])
