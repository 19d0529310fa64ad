# SPDX-License-Identifier: Apache-2.0
"""``python -m test.hostile``: play random requests on an embedded Swift."""

import argparse
import itertools
import random
import sys
import tempfile
from collections import ChainMap, Counter
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from shardmw_saio import Cluster, ClusterOptions

from test.hostile.making import Maker
from test.hostile.playing import (
    MOST_PLAYERS,
    SEQUENCE,
    SETTINGS,
    Player,
    failures_in_logs,
)

PROGRESS_SECONDS = 30


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        'python -m test.hostile', description=__doc__
    )
    parser.add_argument(
        '--requests',
        type=int,
        default=100_000,
        help='how many requests to send in all (%(default)s)',
    )
    parser.add_argument(
        '--seed',
        type=int,
        default=random.randrange(1_000_000),
        help='decides which requests are sent (a random one)',
    )
    parser.add_argument(
        '--players',
        type=int,
        choices=range(1, MOST_PLAYERS + 1),
        default=4,
        help='how many clients send them side by side (%(default)s)',
    )
    parser.add_argument('--dir', type=Path, help='the folder of the cluster')
    return parser.parse_args()


def main() -> int:
    options = _options()
    folder = options.dir or Path(tempfile.mkdtemp(prefix='hostile-'))
    print(f'seed {options.seed}, logs in {folder}/log', flush=True)
    with Cluster(folder, ClusterOptions(settings=SETTINGS)) as cluster:
        players = [Player(cluster, n) for n in range(options.players)]
        with ThreadPoolExecutor(options.players) as pool:
            games = [
                pool.submit(_play, each, f'{options.seed} {n}', options)
                for n, each in enumerate(players)
            ]
            while wait(games, PROGRESS_SECONDS).not_done:
                sent = sum(player.sent for player in players)
                print(f'{sent:,} requests', file=sys.stderr)
            found = sum(game.result() for game in games)
        transactions = ChainMap(*(each.transactions for each in players))
        failures = failures_in_logs(folder / 'log', transactions)
    statuses: Counter[int] = Counter()
    for player in players:
        statuses.update(player.statuses)
    print(*failures, sep='\n')
    print(
        f'{statuses.total():,} requests, {found} differences, '
        f'{len(failures)} errors in logs'
    )
    print(*(f'{status}: {n:,}' for status, n in sorted(statuses.items())))
    return int(bool(found or failures))


def _play(player: Player, seed: str, options: argparse.Namespace) -> int:
    """Play until enough requests were sent; return the differences found."""
    maker = Maker(seed)
    found = 0
    while player.sent < options.requests / options.players:
        requests = iter(maker.request, None)
        difference = player.play(itertools.islice(requests, SEQUENCE))
        if difference:
            found += 1
            print(difference, flush=True)
    return found


if __name__ == '__main__':
    sys.exit(main())
