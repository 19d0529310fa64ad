# SPDX-License-Identifier: Apache-2.0
"""The code and the versions that results belong to."""

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

# The modules that decide which tests run. Those that report are left out.
_DECISIVE = (settings, suites, variants)


@dataclass(frozen=True)
class Provenance:
    """The code and the versions that a result belongs to.

    :param code: the digest of shardmw's source and of what decides which
                 tests run
    :param commit: shown to people; ends with -dirty if the tree was changed
    """

    shardmw: str
    code: str
    commit: str
    swift: str
    python: str
    date: str

    def is_same_code(self, other: 'Provenance') -> bool:
        """Return True if both results may be in one table."""
        return self._versions() == other._versions()

    def _versions(self) -> tuple[str, ...]:
        return self.shardmw, self.code, self.swift, self.python


def provenance(project: Path) -> Provenance:
    """Return the provenance of results that are made now.

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
    """Return a digest of the code and of what decides which tests run."""
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
