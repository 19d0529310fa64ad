# SPDX-License-Identifier: Apache-2.0
"""``python -m test.faults.histories``: a second opinion on kept histories.

``python -m test.faults --histories DIR`` keeps them. A checker in Go, based on
Porcupine, reads them: see ``porcupine/main.go``.
"""

import argparse
import gzip
import json
import subprocess
import sys
from pathlib import Path

from test.history import History, Read, Write

CHECKER = Path(__file__).with_name('porcupine')

#: Stands for infinity, which JSON does not have, in seconds.
NEVER = 1e9


def keep(history: History, path: Path) -> None:
    """Write a history into a gzipped file, a line of JSON an operation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writes = [each for some in history.writes.values() for each in some]
    lines = [*map(_line_of_write, writes), *map(_line_of_read, history.reads)]
    with gzip.open(path, 'wt') as file:
        file.writelines(f'{json.dumps(line)}\n' for line in lines)


def _line_of_write(write: Write) -> dict:
    stored = write.ended if write.stored is None else write.stored
    return {
        'write': write.method,
        'name': write.name,
        'by': write.by,
        'began': write.began,
        'ended': min(write.ended, NEVER),
        'listed': min(write.known, NEVER),
        'stored': min(stored, NEVER),
        'sure': write.is_sure,
        'value': write.value,
        'meta': write.meta,
    }


def _line_of_read(read: Read) -> dict:
    return {
        'read': read.what,
        'by': read.by,
        'began': read.began,
        'ended': read.ended,
        'listing': read.is_listing,
        'shown': {
            name: shown and [shown.value, shown.meta]
            for name, shown in read.shown.items()
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        'python -m test.faults.histories', description=HEAD
    )
    parser.add_argument('folder', type=Path, help='the folder of histories')
    folder = parser.parse_args().folder.resolve()
    files = sorted(folder.glob('*.jsonl.gz'))
    if not files:
        sys.exit(f'{folder} has no *.jsonl.gz, which --histories keeps')
    command = ['go', 'run', '.', *map(str, files)]
    return subprocess.run(command, cwd=CHECKER, check=False).returncode


HEAD = (
    'Check kept histories with Porcupine, a linearizability checker in Go. If '
    'one is wrong, the shortest part of it that shows this is printed, and '
    'drawn in an HTML file beside the history. The exit code is then 1.'
)

if __name__ == '__main__':
    sys.exit(main())
