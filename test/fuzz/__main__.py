# SPDX-License-Identifier: Apache-2.0
"""``python -m test.fuzz TARGET``: look for inputs that break a property."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from test.fuzz.targets import TARGETS, inputs, keep

#: Where a run stores inputs that reach something new, and those that fail.
FOLDER = Path('.fuzz')

#: Databases in memory, if the system has such a folder, spare the disk.
MEMORY = Path('/dev/shm')

#: After this time, in seconds, an input counts as one that never ends.
LONGEST_SECONDS = 120

MOST_MEMORY_MB = 2048

#: The longest input in bytes: enough for a record with all its fields.
LONGEST_INPUT = 512


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        'python -m test.fuzz', description=__doc__
    )
    parser.add_argument(
        'targets',
        metavar='TARGET',
        nargs='*',
        default=[*TARGETS],
        help=f'what to fuzz: {", ".join(TARGETS)} (all, in turn)',
    )
    parser.add_argument(
        '--seconds',
        type=int,
        default=60,
        help='for how long to fuzz each target (%(default)s)',
    )
    options = parser.parse_args()
    unknown = {*options.targets} - TARGETS.keys()
    if unknown:
        parser.error(f'unknown targets: {", ".join(sorted(unknown))}')
    if options.seconds < 1:
        parser.error(f'--seconds {options.seconds}: must be at least 1')
    return options


def main() -> int:
    options = _options()
    failed = [t for t in options.targets if not _fuzz(t, options.seconds)]
    if failed:
        print(f'failed: {", ".join(failed)}; the inputs are in {FOLDER}')
    return int(bool(failed))


def _fuzz(target: str, seconds: int) -> bool:
    """Fuzz a target and renew its corpus; return True if no input failed."""
    corpus = FOLDER / target
    _write(corpus, inputs(target))
    status = _libfuzzer(
        target,
        f'-max_total_time={seconds}',
        f'-artifact_prefix={FOLDER}/{target}-',
        '-print_final_stats=1',
        # Short inputs have few drawn values, so do not begin with them.
        '-len_control=0',
        f'-max_len={LONGEST_INPUT}',
        str(corpus),
    )
    with tempfile.TemporaryDirectory() as least:
        if _libfuzzer(target, '-set_cover_merge=1', least, str(corpus)) == 0:
            keep(target, _read(Path(least)))
    return status == 0


def _libfuzzer(target: str, *arguments: str) -> int:
    """Run libFuzzer and return its exit status."""
    with tempfile.TemporaryDirectory(
        dir=MEMORY if MEMORY.is_dir() else None
    ) as folder:
        return subprocess.call(
            [
                *(sys.executable, '-m', 'test.fuzz.libfuzzer', target),
                f'-timeout={LONGEST_SECONDS}',
                f'-rss_limit_mb={MOST_MEMORY_MB}',
                *arguments,
            ],
            env={**os.environ, 'TMPDIR': folder},
        )


def _write(folder: Path, found: Iterable[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for each in found:
        (folder / sha256(each).hexdigest()).write_bytes(each)


def _read(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]


if __name__ == '__main__':
    sys.exit(main())
