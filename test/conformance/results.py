# SPDX-License-Identifier: Apache-2.0
"""The results of one version of the code, made now or before."""

from collections.abc import Iterable, Sequence

from test.conformance.errors import ConformanceError
from test.conformance.jobs import Job, RunResult, plain_job, sharded_job
from test.conformance.provenance import Provenance, code_digest
from test.conformance.store import Store
from test.conformance.suites import Suite
from test.conformance.variants import Variant
from test.conformance.verdict import Verdict, judge


class Results:
    """Results that may stand in one table.

    :param store: where they are kept, perhaps beside results of other code
    :param provenance: the code and versions that the results belong to
    """

    def __init__(self, store: Store, provenance: Provenance) -> None:
        self.provenance = provenance
        self._store = store

    def add(self, job: Job, result: RunResult) -> None:
        """Keep the result of a job.

        :raises ConformanceError: if the code was changed during the run
        """
        if code_digest() != self.provenance.code:
            raise ConformanceError(
                'the code was changed while its tests ran: run them again'
            )
        self._store.save(job.name, result, self.provenance)

    def remove(self, job: Job) -> None:
        """Remove the result of a job, whatever code it belongs to."""
        self._store.remove(job.name)

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs without a result, or with a broken one."""
        return [job for job in jobs if not self._is_there(job)]

    def verdicts(
        self, variants: Iterable[Variant], suites: Sequence[Suite]
    ) -> list[Verdict]:
        """Return the verdicts on variants.

        :raises ConformanceError: if the result of a run is missing
        """
        return [self._verdict(variant, suites) for variant in variants]

    def _verdict(self, variant: Variant, suites: Sequence[Suite]) -> Verdict:
        return judge(
            variant.name,
            variant.shards,
            plain={s.name: self._of(plain_job(variant, s)) for s in suites},
            sharded={
                s.name: self._of(sharded_job(variant, s)) for s in suites
            },
        )

    def _of(self, job: Job) -> RunResult:
        result = self._find(job)
        if result is None:
            raise ConformanceError(
                f'this code has no result of {job.name}: run all variants, '
                'or with --resume what is missing'
            )
        return result

    def _is_there(self, job: Job) -> bool:
        result = self._find(job)
        return result is not None and not result.problem

    def _find(self, job: Job) -> RunResult | None:
        found = self._store.load(job.name)
        if found is None:
            return None
        result, provenance = found
        return result if provenance.is_same_code(self.provenance) else None
