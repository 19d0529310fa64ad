# SPDX-License-Identifier: Apache-2.0
"""The runs that the chosen variants need, and their results. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from test.conformance.census import Census
from test.conformance.suites import Suite
from test.conformance.variants import Variant, plain_twin


class Job(NamedTuple):
    """A run of a suite on one of the two clusters of a variant."""

    variant: Variant
    suite: Suite
    is_sharded: bool

    @property
    def name(self) -> str:
        side = 'sharded' if self.is_sharded else 'plain'
        return f'{self.variant.name}-{self.suite.name}-{side}'


@dataclass(frozen=True)
class RunResult:
    """The result of a run.

    :param problem: why the report cannot be trusted, '' if it can
    :param junit: the report, as JUnit XML; '' if there is none
    :param requests: the number of requests that each proxy got, by its name
    """

    seconds: float
    problem: str
    junit: str
    census: Census
    requests: Mapping[str, int] = field(default_factory=dict)


def sharded_job(variant: Variant, suite: Suite) -> Job:
    """Return the run of a suite on the variant's sharded cluster."""
    return Job(variant, suite, is_sharded=True)


def plain_job(variant: Variant, suite: Suite) -> Job:
    """Return the run of a suite on the variant's plain cluster.

    Variants that differ only in their shards share this run.
    """
    return Job(plain_twin(variant), suite, is_sharded=False)


def plan(variants: Iterable[Variant], suites: Collection[Suite]) -> list[Job]:
    """Return all runs of suites on variants, each of them once."""
    jobs = [
        job_of(variant, suite)
        for variant in variants
        for suite in suites
        for job_of in (sharded_job, plain_job)
    ]
    return list({job.name: job for job in jobs}.values())
