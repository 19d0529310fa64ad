# SPDX-License-Identifier: Apache-2.0
"""The faults of cells."""

import random
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from swift.account.backend import AccountBroker
from swift.container.backend import ContainerBroker

from test.faults import netrules, network
from test.faults.edge import put_fault
from test.faults.matrix import CLOCK_SECONDS, NET, POWER, STORAGE, Cell
from test.faults.netrules import Sides
from test.faults.plan import Pair
from test.faults.rings import RELOAD_SECONDS, REPLICAS
from test.faults.site import KINDS, NODES, Site

BROKERS = {'accounts': AccountBroker, 'containers': ContainerBroker}

#: The share of writes to a disk that are durable before they are synced: in
#: some cells none.
DURABLE_SHARES = (0, 0.1)

#: How long nodes have no power.
OFF_SECONDS = 1

#: How long a server that is restarted in a loop runs each time.
UP_SECONDS = 1

#: How often the rules of a network are renewed while it fails. Each time, they
#: break connections that have begun since.
TIMES = 3


def prepare(site: Site, cell: Cell | Pair, chance: random.Random) -> None:
    """Prepare a clean cluster for a cell."""
    for fault in cell.faults:
        if fault.what in POWER:
            site.use_disks(chance.choice(DURABLE_SHARES))
        if fault.what == 'ring':
            site.rings.begin(1 if fault.how == 'grown' else REPLICAS)
            time.sleep(RELOAD_SECONDS)


def fail(
    site: Site, cell: Cell | Pair, chance: random.Random, seconds: float
) -> None:
    """Cause the faults of a cell for some seconds.

    Two faults hit different servers: they choose nodes from both ends.
    """
    nodes = chance.sample(NODES, len(NODES))
    with ThreadPoolExecutor() as pool:
        running = [
            pool.submit(_fail, site, own, chance, *span)
            for own, span in zip(
                (nodes, nodes[::-1]), cell.spans(seconds), strict=False
            )
        ]
    for each in running:
        each.result()


def _fail(
    site: Site,
    nodes: list[int],
    chance: random.Random,
    cell: Cell,
    delay: float,
    seconds: float,
) -> None:
    time.sleep(delay)
    if cell.what in STORAGE:
        kind, count = STORAGE[cell.what]
        servers = [f'{kind}-{node}' for node in nodes[:count]]
    elif cell.what in POWER:
        off = nodes[: POWER[cell.what]]
        servers = [f'{kind}-{node}' for node in off for kind in KINDS]
    elif cell.what == 'device':
        servers = [f'{kind}-{nodes[0]}' for kind in KINDS]
    elif cell.what == NET:
        hosts = (*netrules.PROXIES, *netrules.NODES)
        servers = chance.sample(hosts, len(hosts))
    else:
        servers = {
            'proxy': ['proxy-2'],
            'memcached': ['memcached-1'],
            'memcacheds': ['memcached-1', 'memcached-2'],
            'ring': [],
            'mover': [],
        }[cell.what]
    HOW[cell.how](site, servers, seconds)


def _killed(site: Site, servers: list[str], seconds: float) -> None:
    for server in servers:
        site.kill(server)
    time.sleep(seconds)
    for server in servers:
        site.start(server)


def _powerless(site: Site, servers: list[str], seconds: float) -> None:
    """Cut the power of nodes for a moment, however long cells last."""
    nodes = sorted({int(server[-1]) for server in servers})
    site.cut_power(nodes)
    time.sleep(OFF_SECONDS)
    site.restore_power(nodes)


def _stopped(site: Site, servers: list[str], seconds: float) -> None:
    for server in servers:
        site.signal(server, signal.SIGSTOP)
    time.sleep(seconds)
    for server in servers:
        site.signal(server, signal.SIGCONT)


def _looping(site: Site, servers: list[str], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        _killed(site, servers, 0)
        time.sleep(UP_SECONDS)


def _at_edge(**fault: object) -> Callable:
    def failing(site: Site, servers: list[str], seconds: float) -> None:
        for server in servers:
            put_fault(site.cluster.path, server, fault)
        time.sleep(seconds)
        for server in servers:
            put_fault(site.cluster.path, server, {})

    return failing


def _cut(site: Site, servers: list[str], seconds: float) -> None:
    # Another fault may hit proxy-2.
    pids = [str(pid) for pid in site.pids('proxy-1')]
    _at_edge(cut=pids)(site, servers, seconds)


def _gone(site: Site, servers: list[str], seconds: float) -> None:
    """Take a device away: its servers answer 507."""
    device = _device_of(site, servers)
    away = device.with_name('away')
    with site.daemons_stopped():
        device.rename(away)
        device.touch()  # so that no server creates the folder again
    time.sleep(seconds)
    with site.daemons_stopped():
        device.unlink()
        away.rename(device)


def _old(site: Site, servers: list[str], seconds: float) -> None:
    """Restore the data of the beginning after half of the time.

    The databases get new ids. With their former ids, Swift's replicators would
    not send rows again that they have sent before.
    """
    device = _device_of(site, servers)
    folders = [f'{server.partition("-")[0]}s' for server in servers]
    copies = site.path / f'copies-{servers[0]}'
    for server in servers:
        site.signal(server, signal.SIGSTOP)
    with site.daemons_stopped():
        for folder in folders:
            _copy(device / folder, copies / folder)
    for server in servers:
        site.signal(server, signal.SIGCONT)
    time.sleep(seconds / 2)
    for server in servers:
        site.kill(server)
    with site.daemons_stopped():
        for folder in folders:
            shutil.rmtree(device / folder, ignore_errors=True)
            _copy(copies / folder, device / folder)
            shutil.rmtree(copies / folder, ignore_errors=True)
        for folder in folders:
            _give_new_ids(device / folder)
    for server in servers:
        site.start(server)
    time.sleep(seconds / 2)


def _new(site: Site, servers: list[str], seconds: float) -> None:
    """Remove the data of a device, which replicators restore later."""
    device = _device_of(site, servers)
    lost = site.path / f'lost-{device.name}'
    with site.daemons_stopped('replicator'):
        device.rename(lost)
        device.mkdir()
        shutil.rmtree(lost)
        time.sleep(seconds)


def _moved(site: Site, servers: list[str], seconds: float) -> None:
    """Move partitions in the rings; replicators move the data later."""
    with site.daemons_stopped('replicator'):
        site.rings.move()
        time.sleep(RELOAD_SECONDS + seconds)


def _grown(site: Site, servers: list[str], seconds: float) -> None:
    """Add replicas to partitions; replicators create them later."""
    with site.daemons_stopped('replicator'):
        site.rings.grow()
        time.sleep(RELOAD_SECONDS + seconds)


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copytree(source, target)


def _give_new_ids(folder: Path) -> None:
    broker_of = BROKERS.get(folder.name)
    for path in folder.glob('*/*/*/*.db') if broker_of else ():
        broker = broker_of(str(path))
        broker.newid(broker.get_info()['id'])


def _device_of(site: Site, servers: list[str]) -> Path:
    return site.devices()[int(servers[0][-1]) - 1]


def _in_network(how: str) -> Callable:
    def failing(site: Site, servers: list[str], seconds: float) -> None:
        sides = Sides(
            [each for each in servers if each in netrules.PROXIES],
            [each for each in servers if each in netrules.NODES],
        )
        for _ in range(TIMES):
            network.fail(how, sides)
            time.sleep(seconds / TIMES)
        network.heal()

    return failing


def _nothing(site: Site, servers: list[str], seconds: float) -> None:
    """Cause no fault here: :mod:`test.faults.changes` cancels changes."""
    time.sleep(seconds)


HOW = {
    'killed': _killed,
    'stopped': _stopped,
    'slow': _at_edge(slow=True),
    'full': _at_edge(full=True),
    'clock': _at_edge(clock=CLOCK_SECONDS),
    'loop': _looping,
    'cut': _cut,
    'gone': _gone,
    'old': _old,
    'new': _new,
    'moved': _moved,
    'grown': _grown,
    'cancelled': _nothing,
    'power': _powerless,
    **{how: _in_network(how) for how in netrules.RULES},
}
