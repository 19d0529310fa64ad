# SPDX-License-Identifier: Apache-2.0
"""``python -m test.soak``: an hour of mixed work.

Clients write, read and list containers of 1 to 512 shards under rate limits,
while one container after the other changes its layout. The memory, files and
threads of the server processes are sampled, and what is on the disks. The exit
code is 1 if any of them has grown, if a response was wrong, if no layout has
changed, if more than 1 % of the requests were refused, or if a log has an
unexplained error.
"""

import argparse
import contextlib
import itertools
import json
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

from shardmw_saio import Cluster, ClusterOptions, processes

from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER
from test.functional.extra_proxy import running_proxy
from test.functional.operating import SETTINGS, Admin, Resharder
from test.soak.clients import ClientProcess, Part
from test.soak.logs import unexplained
from test.soak.probe import PATH
from test.soak.samples import (
    GREEN_THREADS,
    RESIDENT,
    growths,
    look,
    look_at_disks,
)

USER = 'test:tester'
PROXY = 'soak-proxy'
SHARDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)

#: How many containers change their layout, and the shard counts they get.
CHANGING = 4
COUNTS = (4, 32, 7, 1, 0, 12)

#: Daemons that run once a minute, and for how long they keep tombstones.
DAEMONS = (
    'object-updater',
    'container-updater',
    'object-replicator',
    'container-replicator',
    'account-replicator',
)
DAEMON_SECONDS = 60
RECLAIM_SECONDS = 300

CLUSTER_SETTINGS = {
    **SETTINGS,
    **{
        f'{section}.reclaim_age': str(RECLAIM_SECONDS)
        for section in ('object-server', 'shardmw-resharder', *DAEMONS[2:])
    },
    'proxy-server.node_timeout': '10',
    'object-server.node_timeout': '60',
    'object-server.container_update_timeout': '60',
    'memcache.memcache_max_connections': '20',
    'shardmw.client_max_shards': '512',
    'shardmw.max_sleep_time_seconds': '10',
    'shardmw.container_ratelimit_0': '20',
    'shardmw.container_listing_ratelimit_0': '10',
}

#: The largest share of requests that may be refused.
MOST_REFUSED = 0.01

PROGRESS_SECONDS = 30
STATUS_SECONDS = 5


class Changes:
    """Changes of layout, one after the other.

    :ivar count: how many changes have ended
    """

    def __init__(self, admin: Admin, client: Client, chance) -> None:
        self.count = 0
        self._admin = admin
        self._client = client
        self._chance = chance

    def run(self, stop: threading.Event) -> None:
        """Change layouts until the event is set."""
        for number in itertools.cycle(range(CHANGING)):
            if stop.is_set():
                return
            self._change(_name(number), stop)

    def _change(self, container: str, stop: threading.Event) -> None:
        path = f'{self._client.account}/{container}'
        count = str(self._chance.choice(COUNTS))
        options = ('--detach', '--despite-backlog')
        if self._admin('reshard', path, count, *options).returncode:
            # It has this count already, or a server does not answer in time.
            stop.wait(STATUS_SECONDS)
            return
        while self._is_under_way(container):
            if stop.wait(STATUS_SECONDS):
                return
        self.count += 1

    def _is_under_way(self, container: str) -> bool:
        ran = self._admin('status', '--json')
        if ran.returncode:
            return True
        return any(
            each['container'] == container
            and each['account'] == self._client.account
            and each['phase'] != 'done'
            for each in json.loads(ran.stdout)
        )


class Sampler:
    """A sampler of the memory, files and threads of processes.

    :ivar samples: the seconds since the start, the process and its sample
    """

    def __init__(self, cluster: Cluster, url: str) -> None:
        self.samples: list[tuple[float, str, dict[str, float]]] = []
        self._began = time.monotonic()
        self._cluster = cluster
        self._url = url
        self._pids = {
            each.server: each.pid
            for each in processes.find(cluster.path)
            if not each.is_daemon
        }
        for name in (PROXY, 'shardmw-resharder'):
            self._pids[name] = _pid_of(cluster.path / 'etc', name)

    def run(self, stop: threading.Event, every: float) -> None:
        """Sample until the event is set."""
        while not stop.wait(every):
            seconds = time.monotonic() - self._began
            for process, pid in self._pids.items():
                self.samples.append((seconds, process, look(pid)))
            with (
                contextlib.suppress(OSError),
                urlopen(self._url + PATH, timeout=60) as answer,
            ):
                count = {GREEN_THREADS: int(answer.read())}
                self.samples.append((seconds, PROXY, count))

    def run_daemons(self, stop: threading.Event) -> None:
        """Run Swift's daemons until the event is set, and look at the disks.

        Without them, tombstones and updates would stay.
        """
        while not stop.wait(DAEMON_SECONDS):
            for name in DAEMONS:
                self._cluster.daemon(name)
            seconds = time.monotonic() - self._began
            sample = look_at_disks(self._cluster.devices_path)
            self.samples.append((seconds, 'disks', sample))


def _pid_of(folder: Path, name: str) -> int:
    """Return the process whose configuration file begins with a name."""
    (pid,) = (
        int(entry.name)
        for entry in Path('/proc').iterdir()
        if entry.name.isdecimal()
        and f'{folder}/{name}' in _command_of(entry)
        and 'shardmw_saio.launch' in _command_of(entry)
    )
    return pid


def _command_of(entry: Path) -> str:
    with contextlib.suppress(OSError):
        return (entry / 'cmdline').read_bytes().decode().replace('\0', ' ')
    return ''


def _name(number: int) -> str:
    return f'soak{number:02}'


def _add_probe(conf) -> None:
    pipeline = conf['pipeline:main']
    pipeline['pipeline'] = 'soak-probe ' + pipeline['pipeline']
    conf['filter:soak-probe'] = {
        'paste.filter_factory': 'test.soak.probe:filter_factory'
    }


def work(options: argparse.Namespace) -> dict[str, object]:
    """Run the whole soak and return the results."""
    settings = ClusterOptions(settings=CLUSTER_SETTINGS)
    with (
        Cluster(options.dir, settings) as cluster,
        running_proxy(cluster, PROXY, _add_probe) as url,
        Resharder(cluster).running(),
    ):
        client = Client.login(cluster.auth_url, USER, cluster.users[USER])
        shards = _make(client, options.containers)
        sampler = Sampler(cluster, url)
        admin = Admin(cluster)
        chance = random.Random(options.seed)
        changes = Changes(admin, client, chance)
        clients = _start(options, client.on(url), shards)
        with _running(sampler, changes, options.every) as broken:
            _show_progress(options.seconds, clients, changes, sampler, broken)
        found = [each.finish() for each in clients]
    return _results(options, found, changes, sampler, broken)


def _make(client: Client, count: int) -> dict[str, int]:
    """Create the containers; return their shard counts."""
    shards = {
        _name(number): SHARDS[number % len(SHARDS)] for number in range(count)
    }
    for name, number in shards.items():
        headers = {SHARD_COUNT_HEADER: str(number)}
        assert client.put(name, headers=headers).status == 201
    return shards


def _start(options, client: Client, shards) -> list[ClientProcess]:
    count = options.processes
    names = list(shards)
    return [
        ClientProcess(
            Part(
                number,
                client.storage_url,
                client.token,
                options.clients // count,
                options.seed,
                {name: shards[name] for name in names[number::count]},
                frozenset(map(_name, range(CHANGING))),
            )
        )
        for number in range(count)
    ]


@contextlib.contextmanager
def _running(sampler: Sampler, changes: Changes, every) -> Iterator[list[str]]:
    """Run everything besides the clients until the end of the block.

    :returns: the errors that have ended a part of it, so far
    """
    stop = threading.Event()
    broken: list[str] = []

    def run(what: Callable[..., None], *args: object) -> None:
        try:
            what(stop, *args)
        except Exception:
            broken.append(traceback.format_exc())

    threads = [
        threading.Thread(target=run, args=each)
        for each in (
            (sampler.run, every),
            (sampler.run_daemons,),
            (changes.run,),
        )
    ]
    for thread in threads:
        thread.start()
    try:
        yield broken
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _show_progress(seconds, clients, changes, sampler, broken) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not broken:
        time.sleep(min(left, PROGRESS_SECONDS))
        done = sum(each.done.value for each in clients)
        resident = [
            sample[RESIDENT]
            for _, process, sample in sampler.samples
            if process == PROXY and RESIDENT in sample
        ]
        print(
            f'{max(0, end - time.monotonic()):5.0f} s left: {done:,} '
            f'operations, {changes.count} changes of layout, proxy '
            f'{resident[-1] / 1e6 if resident else 0:.0f} MB',
            flush=True,
        )


def _results(options, found, changes, sampler, broken) -> dict[str, object]:
    errors: Counter[str] = Counter()
    for log in sorted((options.dir / 'log').glob('*.log')):
        with log.open(errors='replace') as lines:
            errors += unexplained(lines)
    rows = growths(sampler.samples, options.warm_up)
    return {
        'seed': options.seed,
        'seconds': options.seconds,
        'operations': dict(
            sum((Counter(f['counts']) for f in found), Counter())
        ),
        'refused': dict(
            sum((Counter(f['refused']) for f in found), Counter())
        ),
        'wrong': [text for each in found for text in each['wrong']],
        'changes': changes.count,
        'broken': broken,
        'errors': dict(errors),
        'growths': [{**row._asdict(), 'flat': row.is_flat} for row in rows],
        'samples': sampler.samples,
    }


def _report(results: dict[str, object]) -> bool:
    """Print the verdict; return True if all is well."""
    operations = sum(results['operations'].values())
    print(f'{operations:,} operations, {results["changes"]} changes of layout')
    refused = sum(results['refused'].values())
    print(f'refused: {results["refused"]}')
    for row in results['growths']:
        mark = '' if row['flat'] else '  GROWS'
        print(
            f'{row["process"]:>20} {row["what"]:>15}: {row["first"]:,.0f} '
            f'-> {row["last"]:,.0f}, at most {row["most"]:,.0f}{mark}'
        )
    print(f'{len(results["wrong"])} wrong answers')
    for text in results['wrong'][:3]:
        print(text)
    print(f'{len(results["errors"])} kinds of errors without an explanation')
    for text, count in results['errors'].items():
        print(f'{count:6} {text[:200]}')
    print(*results['broken'], sep='\n')
    is_flat = all(row['flat'] for row in results['growths'])
    is_bad = any(results[each] for each in ('wrong', 'errors', 'broken'))
    has_worked = results['changes'] and refused <= MOST_REFUSED * operations
    return bool(is_flat and has_worked and not is_bad)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        'python -m test.soak', description=__doc__
    )
    for name, default, text in (
        ('seconds', 3600, 'how long clients work'),
        ('warm-up', 600, 'seconds that do not count'),
        ('every', 5, 'seconds between two samples'),
        ('clients', 64, 'clients at once'),
        ('processes', 4, 'the processes of the clients'),
        ('containers', 20, 'containers'),
        ('seed', int(time.time()), 'decides what clients do'),
    ):
        parser.add_argument(
            f'--{name}',
            type=int,
            default=default,
            help=f'{text} (%(default)s)',
        )
    parser.add_argument('--dir', type=Path, help='the folder of the cluster')
    parser.add_argument('--out', type=Path, help='the file of the results')
    options = parser.parse_args()
    options.dir = options.dir or Path(tempfile.mkdtemp(prefix='soak-'))
    options.out = options.out or options.dir / 'soak.json'
    return options


def main() -> int:
    # SIGTERM must end the cluster, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = _options()
    print(f'seed {options.seed}, cluster in {options.dir}', flush=True)
    results = work(options)
    options.out.write_text(json.dumps(results))
    is_well = _report(results)
    print(f'{"passed" if is_well else "FAILED"}: {options.out}')
    return int(not is_well)


if __name__ == '__main__':
    sys.exit(main())
