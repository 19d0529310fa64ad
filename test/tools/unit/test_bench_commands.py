# SPDX-License-Identifier: Apache-2.0
"""The command line, except for what measures something."""

import contextlib
import errno
import re
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner
from shardmw_bench import command
from shardmw_bench.cli import main
from shardmw_bench.errors import BenchError, Interrupted, failure_text
from shardmw_bench.experiments import RATELIMITS, SCENARIOS
from shardmw_bench.kinds import PLAIN, native, sharded
from shardmw_bench.options import (
    COUNTS,
    SETTING,
    SIZES,
    Parameters,
    chosen_parameters,
    option,
    parameter_options,
)
from shardmw_bench.results import provenance
from shardmw_bench.results.folder import load_all
from shardmw_bench.workloads.measuring import container_names
from shardmw_bench.workloads.works import (
    WORKS,
    List,
    Read,
    Work,
    Write,
)
from shardmw_saio import SaioError

from test.tools.unit.test_bench_runs import run_of


@pytest.fixture
def run():
    """Return a function that runs a command with arguments."""

    def run(*arguments: str, **variables: str):
        return CliRunner(env=variables).invoke(main, arguments)

    return run


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('write', '-b', 'big'), "'big' is no size"),
        (('write', '--shards', '1,x'), "'x' is not a valid integer"),
        (('write', '--shards', '2,2'), "'2,2' has a value twice"),
        (('mixed', '--mix', 'write'), "'write' is no mix"),
        (('write', '-t', '0'), '0 is not in the range'),
        (('write', '-A', 'http://a/auth/v1.0'), '--auth-url needs --user'),
        (('write', '-A', ''), 'the URL of the cluster is empty'),
        (('write', '--no-cleanup'), '--no-cleanup is for a cluster of yours'),
        (
            ('write', '-A', 'http://a', '--os-storage-url', 'http://a'),
            'two ways to a cluster',
        ),
        (
            ('write', '--os-storage-url', 'http://a/v1/AUTH_a'),
            '--os-storage-url needs --os-auth-token',
        ),
        (
            ('list', '-A', 'http://a', '-U', 'a', '-K', 'b', '--proxies', '2'),
            '--proxies is for the temporary cluster',
        ),
        (
            ('list', '-A', 'http://a', '-U', 'a', '-K', 'b', '--set', 'a.b=c'),
            '--set is for the temporary cluster',
        ),
        (('list', '--name', 'My list'), "'My list' is no word"),
        (('write', '--container', 'a/b'), "'a/b' is no name of a container"),
        (('write', '-K', 'testing'), '--key is for a cluster of yours'),
        (('compare', 'fly'), "No such command 'fly'"),
        (('list', '--depths', '0,17'), '17 is not in the range 0<=x<=16'),
        (
            ('list', '--unordered', '--delimiter', '/'),
            'leave --delimiter or --unordered out',
        ),
        (
            ('compare', 'listing', '--unordered', '--delimiter', '/'),
            'leave --delimiter or --unordered out',
        ),
        (('scenario', 'object-size', '-b', '4X'), "'4X' is no size"),
        (('write', '--processes', '5000'), '5000 is not in the range'),
        (('write', '-t', '100000'), '100000 is not in the range'),
        (('write', '--native', '5000'), '5000 is not in the range'),
        (('write', '--shards', '0,5000'), '--set shardmw.max_shards=5000'),
        (('write', '-t', '50', '--count', '30'), '50 clients have nothing'),
        (('delete', '-t', '50', '--objects', '9'), 'raise --objects'),
        (
            ('scenario', 'concurrency', '-t', '1,1000000'),
            'is not in the range',
        ),
        (
            ('scenario', 'log-serving', '--shards', '5000'),
            '--set shardmw.max_shards=5000',
        ),
    ],
)
def test_bad_input_is_reported(run, arguments, message):
    ran = run(*arguments)
    assert ran.exit_code == 2
    assert message in ran.output


@pytest.mark.parametrize(
    ('failure', 'code'),
    [
        (BenchError('it was so'), 1),
        (OSError(errno.ENOSPC, 'No space left', '/tmp/a'), 1),
        (sqlite3.OperationalError('database or disk is full'), 1),
        (Interrupted(15), 128 + 15),
        (Interrupted(), 128 + 2),
        (KeyboardInterrupt(), 128 + 2),
    ],
)
def test_the_exit_code_depends_on_what_ends_a_command(
    run, failure, code, monkeypatch
):
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr('shardmw_bench.workloads.command.perform', fail)
    monkeypatch.setattr('shardmw_bench.results.folder.make', lambda path: None)
    assert run('write').exit_code == code


@pytest.mark.parametrize(
    ('failure', 'text'),
    [
        (OSError(errno.ENOSPC, 'No space', '/tmp/a'), '/tmp/a: No space'),
        (OSError(errno.ENOSPC, 'No space'), 'No space'),
        (PermissionError('not yours'), 'not yours'),
        (TimeoutError(), 'TimeoutError'),
        (SaioError('it is not up'), 'it is not up'),
        (sqlite3.OperationalError('full'), 'a database failed: full'),
        (BrokenPipeError(), None),
        (KeyError('a'), None),
    ],
)
def test_failures_that_users_can_fix_are_reported_in_one_line(failure, text):
    assert failure_text(failure) == text


def test_the_help_has_all_commands(run):
    ran = run('--help')
    assert ran.exit_code == 0
    listed = ran.output.partition('Commands:')[2].partition('\n\n')[0]
    assert re.findall(r'^  (\S+)', listed, re.MULTILINE) == [
        *WORKS,
        *('compare', 'scenario', 'ratelimit', 'report', 'plan'),
    ]


def test_commands_are_imported_when_they_are_needed():
    asked = "import sys, shardmw_bench.cli; print('swift' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, '-c', asked], capture_output=True, text=True
    )
    assert ran.stdout == 'False\n'


@pytest.mark.parametrize('ignored', [True, False])
def test_a_closed_terminal_does_not_end_a_command_under_nohup(
    run, ignored, monkeypatch
):
    handled = []
    was = signal.SIG_IGN if ignored else signal.SIG_DFL
    monkeypatch.setattr(signal, 'getsignal', lambda number: was)
    monkeypatch.setattr(
        signal, 'signal', lambda number, _: handled.append(number)
    )
    run('report', '--output', '/nowhere')
    assert {signal.SIGINT, signal.SIGTERM} <= {*handled}
    assert (signal.SIGHUP in handled) != ignored


def test_scenarios_have_all_that_commands_and_reports_need():
    for scenario in (*SCENARIOS.values(), *RATELIMITS.values()):
        assert scenario.summary().endswith('.')
        default = scenario.default()
        assert scenario.from_json(default.as_json()) == default
        assert 1 <= default.minutes <= 60


@pytest.mark.parametrize('name', SCENARIOS)
def test_scenarios_have_help_on_options_and_defaults(run, name):
    ran = run('scenario', name, '--help')
    assert ran.exit_code == 0
    for field in SCENARIOS[name].options():
        if field != 'settings':
            assert f'--{field.replace("_", "-")}' in ran.output


@pytest.mark.parametrize(
    ('seconds', 'text'),
    [
        (0.5, 'about 5 s'),
        (61, 'about 60 s'),
        (100, 'about 2 minutes'),
        (7000, 'about 1.9 hours'),
    ],
)
def test_a_duration_is_rounded(seconds, text):
    assert command.about_text(seconds) == text


@dataclass(frozen=True)
class Some(Parameters):
    counts: tuple[int, ...] = option((1, 2), COUNTS, 'Some.', '-c', '--counts')
    sizes: tuple[int, ...] = option((4096, 5), SIZES, 'Sizes.')
    is_so: bool = option(True, bool, 'Whether.')
    settings: dict = option({}, SETTING, 'Of it.', '--set', multiple=True)


class TestParameters:
    @pytest.fixture
    def chosen(self):
        """Return a function that gives the choice for what was typed."""
        found = []

        @click.command()
        @parameter_options(Some, sizes=(7,))
        def command(**values: object) -> None:
            found.append(chosen_parameters(Some, values))

        def chosen(*arguments: str) -> Some:
            ran = CliRunner().invoke(command, arguments)
            assert ran.exit_code == 0, ran.output
            return found[-1]

        return chosen

    def test_defaults_are_those_of_the_fields_or_the_command(self, chosen):
        assert chosen() == Some(sizes=(7,))

    def test_options_are_fields(self, chosen):
        assert chosen('-c', '3', '--sizes', '4K,1', '--no-is-so') == Some(
            (3,), (4096, 1), False
        )

    def test_settings_are_a_mapping(self, chosen):
        assert chosen('--set', 'a.b=1', '--set', 'a.c=2').settings == {
            'a.b': '1',
            'a.c': '2',
        }

    def test_json_gives_them_back(self):
        some = Some((3,), (1,), False, {'a.b': '1'})
        assert Some.from_json(some.as_json() | {'unknown': 1}) == some


class TestPerforming:
    @pytest.fixture(autouse=True)
    def _machine_is_not_looked_at(self, monkeypatch):
        monkeypatch.setattr(provenance, '_LOOK_SECONDS', 0.01)

    @pytest.fixture
    def perform_failing(self, tmp_path, monkeypatch):
        """Return a function that runs an experiment that fails.

        The experiment first keeps figures, if there are any.
        """
        monkeypatch.setattr(command, 'Clients', contextlib.nullcontext)

        def perform_failing(failure: BaseException, *kept: dict) -> None:
            def measure(stage, keep) -> dict:
                for figures in kept:
                    keep(figures)
                raise failure

            with pytest.raises(type(failure)):
                command.perform(
                    *('workload', [Write()], tmp_path), measure=measure
                )

        return perform_failing

    @pytest.mark.parametrize('failure', [BenchError('away'), Interrupted()])
    def test_keeps_the_result_of_an_interrupted_run(
        self, perform_failing, tmp_path, failure, capsys
    ):
        runs = [run_of(0.5).as_json(), run_of(1.0).as_json()]
        perform_failing(failure, {'runs': runs[:1]}, {'runs': runs})
        (result,) = load_all(tmp_path)
        assert result.figures == {'runs': runs}
        assert not result.complete
        assert (tmp_path / 'workload-write.csv').exists()
        assert 'interrupted: ' in capsys.readouterr().out

    def test_shows_a_result_that_cannot_be_kept(
        self, perform_failing, tmp_path, capsys
    ):
        in_the_way = tmp_path / 'workload-write.json'
        in_the_way.mkdir()
        runs = [run_of(0.5).as_json()]
        perform_failing(BenchError('away'), {'runs': runs})
        assert 'p99 ms' in capsys.readouterr().out
        assert list(tmp_path.iterdir()) == [in_the_way]

    def test_goes_on_after_an_experiment_that_fails(
        self, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setattr(command, 'Clients', contextlib.nullcontext)

        def fail(work, stage, keep) -> dict:
            raise OSError(errno.ENOSPC, 'No space left', '/tmp/a')

        def measure(work, stage, keep) -> dict:
            return {'runs': [run_of(0.5).as_json()]}

        monkeypatch.setattr(Read, 'measure', fail)
        monkeypatch.setattr(Write, 'measure', measure)
        with pytest.raises(BenchError, match='failed, see above: read'):
            command.perform('workload', [Read(), Write()], tmp_path)
        (result,) = load_all(tmp_path)
        assert result.experiment == 'write'
        assert 'read failed: /tmp/a: No space left' in capsys.readouterr().out

    def test_says_at_the_start_how_long_it_took_the_last_time(
        self, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setattr(command, 'Clients', contextlib.nullcontext)
        figures = {'runs': [run_of(0.5).as_json()]}

        def perform(**parameters) -> str:
            work = Write(seconds=1.0, **parameters)
            command.perform(
                *('workload', [work], tmp_path, ''),
                lambda stage, keep: figures,
            )
            return capsys.readouterr().out

        assert 'takes about 20 s\n' in perform()
        assert 'took 0:00:00 the last time\n' in perform()
        assert 'takes about 20 s\n' in perform(clients=3)

    def test_keeps_no_result_of_a_run_that_has_not_begun(
        self, perform_failing, tmp_path
    ):
        perform_failing(BenchError('away'))
        assert load_all(tmp_path) == []

    def test_names_a_cluster_that_was_given_by_url(
        self, perform_failing, tmp_path
    ):
        cluster = {'url': 'https://swift', 'swift': '2.35.0'}
        figures = {'cluster': cluster, 'runs': []}
        perform_failing(Interrupted(), figures)
        (result,) = load_all(tmp_path)
        said = result.provenance.sentence()
        assert 'on https://swift, which is Swift 2.35.0, with' in said


class TestKinds:
    def test_zero_shards_are_a_plain_container(self):
        parameters = Work(shards=(8, 0), native=4)
        assert parameters.kinds == [PLAIN, native(4), sharded(8)]

    def test_are_sharded_at_each_depth(self):
        parameters = List(shards=(8, 0), native=4, depths=(0, 1))
        labels = [kind.label for kind in parameters.kinds]
        assert labels == [
            'plain',
            'native, 4 ranges',
            'N = 8',
            'N = 8, depth 1',
        ]

    def test_a_limit_is_a_setting_of_the_cluster(self):
        settings = Work(limit=20.0).cluster.settings
        assert dict(settings) == {'shardmw.container_ratelimit_0': '20'}

    def test_a_count_alone_ends_loads(self):
        assert Write().load_seconds == 10
        assert Write(count=5).load_seconds is None
        assert Write(count=5, seconds=2.0).load_seconds == 2
        assert List(seconds=2.0).load_seconds == 2


class TestContainerNames:
    def test_a_single_container_has_the_chosen_name(self):
        own = PLAIN, None
        assert container_names('logs', [own]) == {own: 'logs'}

    def test_several_containers_have_their_kind_and_round_appended(self):
        owners = [(k, n) for k in (PLAIN, sharded(8)) for n in (0, 1)]
        names = container_names('logs', owners)
        assert [*names.values()] == [
            *('logs-plain-0', 'logs-plain-1', 'logs-8-0', 'logs-8-1')
        ]
