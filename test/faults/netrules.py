# SPDX-License-Identifier: Apache-2.0
"""The hosts of the cells of `net`, and the rules that cut them off. Pure.

A router forwards the packets between all hosts. Its rules are those of
nftables. Packets from and to clients are never dropped.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from shardmw_saio.options import Host

#: The names of all namespaces begin with this.
PREFIX = 'shardmw-faults-'

ROUTER = 'router'
CLIENT = 'client'
PROXIES = ('proxy-1', 'proxy-2')
NODES = ('storage-1', 'storage-2', 'storage-3')
HOSTS = (CLIENT, *PROXIES, *NODES)

#: The host of the mover, and of daemons that run once for all nodes.
ADMIN = PROXIES[0]

#: The first two bytes of all addresses, which exist only in the namespaces.
_NETWORK = '10.213'
_TABLE = 'ip faults'

#: One of so many packets of connections resets its connection.
RESET_ONE_OF = 50

#: The length in bytes of an IPv4 packet that only acknowledges others, with
#: the timestamps that Linux sends.
ACK_LENGTH = 52


class Sides(NamedTuple):
    """Hosts in a random order: rules for one of them take the first."""

    proxies: Sequence[str]
    nodes: Sequence[str]


def namespace_of(host: str) -> str:
    """Return the network namespace of a host, or of the router."""
    return f'{PREFIX}{host}'


def address_of(host: str) -> str:
    """Return the address of a host."""
    return f'{_subnet_of(host)}.2'


def host_of(server: str) -> Host:
    """Return the host of a server, or of a daemon of the whole cluster."""
    kind, _, number = server.rpartition('-')
    name = ADMIN
    if kind in ('proxy', 'memcached'):
        name = f'proxy-{number}'
    elif number.isdecimal():
        name = f'storage-{number}'
    return Host(address_of(name), namespace_of(name))


def links() -> str:
    """Return the commands of ``ip`` that make all namespaces and links."""
    names = map(namespace_of, (ROUTER, *HOSTS))
    lines = [f'netns add {name}' for name in names]
    lines += [
        f'link add {host} netns {namespace_of(ROUTER)} type veth '
        f'peer name eth0 netns {namespace_of(host)}'
        for host in HOSTS
    ]
    return _text(lines)


def addresses(host: str) -> str:
    """Return the commands of ``ip`` that make a link of a host usable."""
    return _text(
        [
            'link set lo up',
            f'addr add {address_of(host)}/24 dev eth0',
            'link set eth0 up',
            f'route add default via {_subnet_of(host)}.1',
        ]
    )


def router_addresses() -> str:
    """Return the commands of ``ip`` that make the router's links usable."""
    return _text(
        line
        for host in HOSTS
        for line in (
            f'addr add {_subnet_of(host)}.1/24 dev {host}',
            f'link set {host} up',
        )
    )


def table(rules: Iterable[str]) -> str:
    """Return the input of ``nft`` that replaces all rules at once."""
    client = address_of(CLIENT)
    return _text(
        [
            no_table(),
            f'table {_TABLE} {{',
            'chain forward {',
            'type filter hook forward priority 0;',
            f'ip saddr {client} accept',
            f'ip daddr {client} accept',
            *rules,
            '}',
            '}',
        ]
    )


def no_table() -> str:
    """Return the input of ``nft`` that removes all rules."""
    return _text([f'table {_TABLE}', f'delete table {_TABLE}'])


def _halved(sides: Sides, mark: int) -> list[str]:
    """Cut a proxy and a node off from all others."""
    apart = _set([sides.proxies[0], sides.nodes[0]])
    return [
        f'ip saddr {apart} ip daddr != {apart} drop',
        f'ip saddr != {apart} ip daddr {apart} drop',
    ]


def _oneway(sides: Sides, mark: int) -> list[str]:
    """Drop the answers of a node to proxies.

    Packets without data pass, so that its servers get requests.
    """
    node, proxies = address_of(sides.nodes[0]), _set(sides.proxies)
    return [
        f'ip saddr {node} ip daddr {proxies} tcp flags & syn == 0 '
        f'meta length > {ACK_LENGTH} drop'
    ]


def _replication(sides: Sides, mark: int) -> list[str]:
    """Cut all nodes off from each other."""
    nodes = _set(sides.nodes)
    return [f'ip saddr {nodes} ip daddr {nodes} drop']


def _one(sides: Sides, mark: int) -> list[str]:
    """Cut the proxies off from all nodes but one."""
    proxies, nodes = _set(sides.proxies), _set(sides.nodes[1:])
    return [
        f'ip saddr {proxies} ip daddr {nodes} drop',
        f'ip saddr {nodes} ip daddr {proxies} drop',
    ]


def _half_open(sides: Sides, mark: int) -> list[str]:
    """Drop all packets of connections that are older than these rules.

    The packets of a connection that the router has not seen begin are invalid.
    """
    return [
        f'ct state new ct mark set {mark}',
        f'ct mark != {mark} drop',
        'ct state invalid drop',
    ]


def _reset(sides: Sides, mark: int) -> list[str]:
    """Reset connections that are established, at random."""
    return [
        'tcp flags & (syn | rst) == 0 '
        f'numgen random mod {RESET_ONE_OF} == 0 reject with tcp reset'
    ]


#: Makes the rules of each fault. No former rules had the mark.
RULES: dict[str, Callable[[Sides, int], list[str]]] = {
    'halved': _halved,
    'oneway': _oneway,
    'replication': _replication,
    'one': _one,
    'halfopen': _half_open,
    'reset': _reset,
}


def _subnet_of(host: str) -> str:
    return f'{_NETWORK}.{HOSTS.index(host) + 1}'


def _set(hosts: Iterable[str]) -> str:
    return f'{{ {", ".join(map(address_of, hosts))} }}'


def _text(lines: Iterable[str]) -> str:
    return ''.join(f'{line}\n' for line in lines)
