# SPDX-License-Identifier: Apache-2.0
"""A cluster of somebody's, which is left as it was found."""

from contextlib import contextmanager

import pytest

from shardmw.bench.errors import BenchError, Interrupted
from shardmw.bench.targets.auth import TokenAuth
from shardmw.bench.workloads.place import Place
from shardmw.saio import ClusterOptions

PLACE = Place(TokenAuth('http://a/v1/AUTH_a', 't'), None, cleanup=True)


class Stage:
    """A stage, a site and a screen in one, whose clean-up fails so."""

    containers = ('c',)

    def __init__(self, *failures: BaseException) -> None:
        self.screen = self
        self.warnings: list[str] = []
        self.failures = [*failures]
        self.cleanups = 0

    @contextmanager
    def remote_site(self, auth, prefix):
        yield self

    def cleanup(self) -> None:
        self.cleanups += 1
        if self.failures:
            raise self.failures.pop(0)

    def warning(self, text: str) -> None:
        self.warnings.append(text)


def use(stage: Stage, *failures: BaseException) -> None:
    with PLACE.site(stage, ClusterOptions()):
        for failure in failures:
            raise failure


def test_it_is_cleaned_up_once():
    stage = Stage()
    use(stage)
    assert (stage.cleanups, stage.warnings) == (1, [])


def test_an_interruption_of_the_measurement_cleans_up():
    stage = Stage()
    with pytest.raises(Interrupted):
        use(stage, Interrupted())
    assert (stage.cleanups, stage.warnings) == (1, [])


def test_an_interruption_of_the_clean_up_does_not_end_it():
    stage = Stage(Interrupted())
    with pytest.raises(Interrupted):
        use(stage)
    assert (stage.cleanups, stage.warnings) == (2, [])


def test_a_second_one_ends_it_and_what_is_left_is_told():
    stage = Stage(Interrupted(), Interrupted())
    with pytest.raises(Interrupted):
        use(stage)
    assert stage.warnings == ['not cleaned up: left there: c']


def test_a_failure_of_the_clean_up_does_not_hide_that_of_the_measurement():
    stage = Stage(BenchError('no'))
    with pytest.raises(Interrupted):
        use(stage, Interrupted())
    assert stage.warnings == ['not cleaned up: no']
