# SPDX-License-Identifier: Apache-2.0
"""``python -m test.hostile``: play random requests on an embedded Swift."""

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from shardmw.saio import Cluster, ClusterOptions
from test.hostile.making import Maker
from test.hostile.playing import (
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
    parser.add_argument('--dir', type=Path, help='the folder of the cluster')
    return parser.parse_args()


def main() -> int:
    options = _options()
    folder = options.dir or Path(tempfile.mkdtemp(prefix='hostile-'))
    print(f'seed {options.seed}, logs in {folder}/log', flush=True)
    maker = Maker(options.seed)
    found = []
    statuses: Counter[int] = Counter()
    told = time.monotonic()
    with Cluster(folder, ClusterOptions(settings=SETTINGS)) as cluster:
        player = Player(cluster, statuses)
        while player.sent < options.requests:
            requests = iter(maker.request, None)
            difference = player.play(itertools.islice(requests, SEQUENCE))
            if difference:
                found.append(difference)
                print(difference, flush=True)
            if time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                print(f'{player.sent:,} requests', file=sys.stderr)
        failures = failures_in_logs(folder / 'log', player.transactions)
    print(*failures, sep='\n')
    print(
        f'{player.sent:,} requests, {len(found)} differences, '
        f'{len(failures)} errors in logs'
    )
    print(*(f'{status}: {n:,}' for status, n in sorted(statuses.items())))
    return int(bool(found or failures))


if __name__ == '__main__':
    sys.exit(main())
