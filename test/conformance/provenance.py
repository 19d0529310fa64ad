# SPDX-License-Identifier: Apache-2.0
"""What results are results of: the code, and the versions."""

import hashlib
import platform
import subprocess
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import shardmw
from test.conformance import settings, suites, variants
from test.conformance.sources import swift_version

_UNKNOWN = 'unknown'

# Besides shardmw, what decides what is run; not how it's reported.
_DECISIVE = (settings, suites, variants)


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from.

    :param code: a digest of shardmw's source and of what decides what is run
    :param commit: for people; with -dirty if the tree differed from it
    """

    shardmw: str
    code: str
    commit: str
    swift: str
    python: str
    date: str

    def is_same_code(self, other: 'Provenance') -> bool:
        """Whether results may stand in one table."""
        return self._versions() == other._versions()

    def _versions(self) -> tuple[str, ...]:
        return self.shardmw, self.code, self.swift, self.python


def provenance(project: Path) -> Provenance:
    """Of results that are made now.

    :param project: the root of the tree
    """
    return Provenance(
        shardmw=shardmw.__version__,
        code=code_digest(),
        commit=_commit(project),
        swift=swift_version(),
        python=platform.python_version(),
        date=datetime.now(timezone.utc).date().isoformat(),
    )


def code_digest() -> str:
    """What changes when the code does, or when other tests are run."""
    package = Path(shardmw.__file__).parent
    own = [Path(module.__file__) for module in _DECISIVE]
    digest = hashlib.sha256()
    for path in [*sorted(package.rglob('*.py')), *own]:
        digest.update(path.name.encode() + b'\0' + path.read_bytes() + b'\0')
    return digest.hexdigest()[:16]


def _commit(project: Path) -> str:
    try:
        git = subprocess.run(
            ['git', 'describe', '--always', '--dirty'],
            cwd=project,
            capture_output=True,
            text=True,
        )
    except OSError:
        return _UNKNOWN
    return git.stdout.strip() or _UNKNOWN
