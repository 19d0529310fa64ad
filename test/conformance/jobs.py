# SPDX-License-Identifier: Apache-2.0
"""Which runs a choice of variants takes, and what a run gives. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from test.conformance.census import Census
from test.conformance.suites import Suite
from test.conformance.variants import Variant, plain_twin


class Job(NamedTuple):
    """A suite on one of a variant's clusters."""

    variant: Variant
    suite: Suite
    is_sharded: bool

    @property
    def name(self) -> str:
        side = 'sharded' if self.is_sharded else 'plain'
        return f'{self.variant.name}-{self.suite.name}-{side}'


@dataclass(frozen=True)
class RunResult:
    """What a run gave.

    :param problem: why the report is not to be trusted, '' if it is
    :param junit: the report, as JUnit XML; '' if there is none
    :param requests: how many each proxy has had, by its name
    """

    seconds: float
    problem: str
    junit: str
    census: Census
    requests: Mapping[str, int] = field(default_factory=dict)


def sharded_job(variant: Variant, suite: Suite) -> Job:
    """The run of a suite on the variant's sharded cluster."""
    return Job(variant, suite, is_sharded=True)


def plain_job(variant: Variant, suite: Suite) -> Job:
    """The run of a suite on a plain cluster that is like the variant's.

    Variants that differ in their shards only have it in common.
    """
    return Job(plain_twin(variant), suite, is_sharded=False)


def plan(variants: Iterable[Variant], suites: Collection[Suite]) -> list[Job]:
    """All runs that suites on variants take, each once."""
    jobs = [
        job_of(variant, suite)
        for variant in variants
        for suite in suites
        for job_of in (sharded_job, plain_job)
    ]
    return list({job.name: job for job in jobs}.values())
