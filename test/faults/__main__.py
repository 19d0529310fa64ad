# SPDX-License-Identifier: Apache-2.0
"""``python -m test.faults``"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from test.faults.run import Run

HELP = {
    'seconds': 'how long clients work (%(default)s)',
    'seed': 'decides what clients do and what goes wrong; by default a new '
    'one. Times differ between runs, so a seed repeats the work, not the '
    'history',
    'clients': 'the number of client processes (%(default)s)',
    'names': 'the number of names that they use (%(default)s)',
    'replicas': 'the number of copies of all data (%(default)s); of several, '
    'one server of containers at a time fails, and none of objects: what has '
    'come back serves old objects, as in any Swift',
    'faults': 'what goes wrong: proxy, container, object, mover, cancel, or '
    'none (all)',
    'dir': 'the folder of the cluster, with its logs; it stays',
}
FAULTS = ('proxy', 'container', 'object', 'mover', 'cancel')

SHOWN_VIOLATIONS = 3


def main() -> int:
    options = _options()
    print(f'seed {options.seed}, cluster in {options.dir}', flush=True)
    run = Run(options)
    run.work()
    return _report(run)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser('python -m test.faults', description=HEAD)
    now = int(time.time())
    for name, default in (
        ('seconds', 120),
        ('seed', now),
        ('clients', 6),
        ('names', 8),
        ('replicas', 1),
    ):
        parser.add_argument(
            f'--{name}', type=int, default=default, help=HELP[name]
        )
    parser.add_argument(
        '--faults',
        nargs='*',
        choices=(*FAULTS, 'none'),
        default=FAULTS,
        help=HELP['faults'],
    )
    parser.add_argument('--dir', type=Path, help=HELP['dir'])
    options = parser.parse_args()
    if options.replicas > 1:
        options.faults = [each for each in options.faults if each != 'object']
    options.dir = options.dir or Path(tempfile.mkdtemp(prefix='faults-'))
    return options


HEAD = (
    'Look for histories of a container that no order of its writes explains, '
    'while its layout changes and servers fail. The exit code is 1 if there '
    'is one.'
)


def _report(run: Run) -> int:
    history = run.history
    violations = history.violations()
    writes = [write for each in history.writes.values() for write in each]
    acknowledged = sum(write.is_sure for write in writes)
    counts = ', '.join(f'{n:,} {what}' for what, n in history.counts.items())
    refused = ', '.join(f'{n} {what}' for what, n in history.refused.items())
    print(f'{history.counts.total():,} operations: {counts}')
    print(f'{acknowledged:,} acknowledged writes')
    print(f'{history.refused.total():,} refused requests: {refused or "none"}')
    print(f'{run.changes} changes of layout, {run.faults} faults')
    print(f'{len(violations)} violations')
    for violation in violations[:SHOWN_VIOLATIONS]:
        print(f'\n{history.text(violation)}')
    if violations:
        print(f'\nseed {run.options.seed}, logs in {run.options.dir}/log')
    return bool(violations)


if __name__ == '__main__':
    sys.exit(main())
