# SPDX-License-Identifier: Apache-2.0
"""A cluster that exists already, and is left as it was."""

import click
import pytest
from click.testing import CliRunner
from shardmw_bench.errors import BenchError, Interrupted
from shardmw_bench.targets.account import Auth
from shardmw_bench.workloads import place
from shardmw_bench.workloads.place import (
    Place,
    place_of,
    place_options,
)
from shardmw_saio import ClusterOptions

PLACE = Place('http://a/auth/v1.0', 'u', 'k')


class Stage:
    """A stage, a site and a screen in one, whose clean-up may fail."""

    containers = ('c',)

    def __init__(self, *failures: BaseException) -> None:
        self.screen = self
        self.warnings: list[str] = []
        self.failures = [*failures]
        self.cleanups = 0

    def run(self, load, label):
        raise NotImplementedError

    def cleanup(self) -> None:
        self.cleanups += 1
        if self.failures:
            raise self.failures.pop(0)

    def warning(self, text: str) -> None:
        self.warnings.append(text)


def use(stage: Stage, *failures: BaseException) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, 'remote_site', lambda *_: stage)
        with PLACE.site(stage, ClusterOptions()):
            for failure in failures:
                raise failure


def test_a_cluster_is_cleaned_up_once():
    stage = Stage()
    use(stage)
    assert (stage.cleanups, stage.warnings) == (1, [])


def test_an_interruption_of_the_measurement_cleans_up():
    stage = Stage()
    with pytest.raises(Interrupted):
        use(stage, Interrupted())
    assert (stage.cleanups, stage.warnings) == (1, [])


def test_an_interruption_does_not_end_the_clean_up():
    stage = Stage(Interrupted())
    with pytest.raises(Interrupted):
        use(stage)
    assert (stage.cleanups, stage.warnings) == (2, [])


def test_a_second_interruption_ends_the_clean_up_and_names_what_is_left():
    stage = Stage(Interrupted(), Interrupted())
    with pytest.raises(Interrupted):
        use(stage)
    assert stage.warnings == ['not cleaned up: left there: c']


def test_a_failure_of_the_clean_up_does_not_hide_that_of_the_measurement():
    stage = Stage(BenchError('no'))
    with pytest.raises(Interrupted):
        use(stage, Interrupted())
    assert stage.warnings == ['not cleaned up: no']


def chosen_auth(*arguments: str, **variables: str) -> Auth:
    """Return the login that these arguments choose."""
    chosen = []

    @click.command()
    @place_options
    @click.pass_context
    def command(context: click.Context, **_: object) -> None:
        chosen.append(place_of(context).auth)

    ran = CliRunner(env=variables).invoke(command, arguments)
    assert ran.exit_code == 0, ran.output
    return chosen[0]


def test_keystone_is_chosen_as_with_python_swiftclient():
    found = chosen_auth(
        *('--os-auth-url', 'http://a/v3', '--os-region-name', 'two'),
        OS_USERNAME='user',
        OS_PASSWORD='key',
        OS_PROJECT_NAME='logs',
        OS_AUTH_URL='http://another',
    )
    options = {'project_name': 'logs', 'region_name': 'two'}
    assert found == Auth('http://a/v3', 'user', 'key', '3', options)


def test_the_environment_alone_chooses_no_cluster():
    assert chosen_auth(OS_AUTH_URL='http://a', OS_USERNAME='user') is None
