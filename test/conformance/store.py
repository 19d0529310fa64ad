# SPDX-License-Identifier: Apache-2.0
"""The results of runs, kept in files until the same run is repeated."""

import dataclasses
import json
from pathlib import Path

from test.conformance.census import Census
from test.conformance.jobs import RunResult
from test.conformance.provenance import Provenance


class Store:
    """The results of runs, by the name of their job.

    :param folder: has NAME.json and NAME.xml, a JUnit report, for each job
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def remove(self, name: str) -> None:
        """Remove the result of a job, if there is one."""
        for path in self._paths(name):
            path.unlink(missing_ok=True)

    def save(
        self, name: str, result: RunResult, provenance: Provenance
    ) -> None:
        """Keep a result and its provenance."""
        facts = dataclasses.asdict(result)
        facts['provenance'] = dataclasses.asdict(provenance)
        facts_path, junit_path = self._paths(name)
        self._folder.mkdir(parents=True, exist_ok=True)
        junit_path.write_text(facts.pop('junit'))
        facts_path.write_text(json.dumps(facts, indent=2) + '\n')

    def load(self, name: str) -> tuple[RunResult, Provenance] | None:
        """Return the result of a job, or None if none can be read."""
        facts_path, junit_path = self._paths(name)
        try:
            facts = json.loads(facts_path.read_text())
            provenance = Provenance(**facts.pop('provenance'))
            facts['census'] = Census(**facts['census'])
            return RunResult(**facts, junit=junit_path.read_text()), provenance
        except (FileNotFoundError, KeyError, TypeError, ValueError):
            return None

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self._folder / f'{name}.json', self._folder / f'{name}.xml'
