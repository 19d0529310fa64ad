# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m test.conformance``."""

import fcntl
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from shardmw_saio import SaioError

from test.conformance.errors import ConformanceError
from test.conformance.jobs import Job, plan
from test.conformance.provenance import provenance
from test.conformance.report import (
    details,
    page,
    summary,
    table_lines,
    table_rows,
)
from test.conformance.results import Results
from test.conformance.running import Run
from test.conformance.schedule import run_all
from test.conformance.screen import Screen
from test.conformance.sources import swift_tests
from test.conformance.store import Store
from test.conformance.suites import SUITES
from test.conformance.variants import VARIANTS
from test.conformance.verdict import Verdict

PROJECT = Path(__file__).resolve().parents[2]
CACHE = PROJECT / '.conformance'
PAGE = PROJECT / 'doc' / 'conformance.md'

# The shell adds this to the signal's number for the exit code.
_ENDED_BY_SIGNAL = 128

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    '--variants',
    'variant_names',
    metavar='NAMES',
    default=' '.join(VARIANTS),
    show_default=True,
    help='What to try.',
)
@click.option(
    '--suites',
    'suite_names',
    metavar='NAMES',
    default=' '.join(SUITES),
    show_default=True,
    help='Which of the tests.',
)
@click.option(
    '--at-once',
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help='Clusters to run at a time. Two keep a core busy.',
)
@click.option(
    '--resume', is_flag=True, help='Keep the results that this code has.'
)
@click.option(
    '--page',
    'writes_page',
    is_flag=True,
    help='Write doc/conformance.md, of the results of all variants.',
)
def main(
    variant_names: str,
    suite_names: str,
    at_once: int,
    resume: bool,
    writes_page: bool,
) -> None:
    """Run Swift's functional tests, plain and with all containers sharded.

    The exit code is 1 if a test is worse on a sharded cluster than on a plain
    one. The results of all runs are kept in .conformance/results.
    """
    # a signal must take the clusters down, too
    for number in _ENDING_SIGNALS:
        signal.signal(number, _exit_by_signal)
    variants = _chosen('variant', variant_names, VARIANTS)
    suites = _chosen('suite', suite_names, SUITES)
    screen = Screen()
    try:
        with _alone():
            results = Results(Store(CACHE / 'results'), provenance(PROJECT))
            jobs = plan(variants, suites)
            if resume:
                jobs = results.missing(jobs)
            _run(jobs, at_once, results, screen)
            if writes_page:
                _write_page(results)
            verdicts = results.verdicts(variants, suites)
    except (ConformanceError, SaioError, OSError) as err:
        raise click.ClickException(' '.join(str(err).split())) from err
    _report(verdicts, screen)
    sys.exit(any(each.failures for each in verdicts))


def _chosen(what: str, names: str, known: Mapping[str, Any]) -> list[Any]:
    unknown = [name for name in names.split() if name not in known]
    if unknown or not names.split():
        raise click.UsageError(
            f'no {what} is called {" ".join(unknown)!r}: take some of '
            + ' '.join(known)
        )
    return [known[name] for name in names.split()]


@contextmanager
def _alone() -> Iterator[None]:
    """Refuse to run twice at the same time: runs use the same folders."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / 'lock').open('a') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConformanceError(
                f'another run is under way in {CACHE}: wait for it'
            ) from None
        yield


def _run(
    jobs: Sequence[Job], at_once: int, results: Results, screen: Screen
) -> None:
    tests = swift_tests(CACHE)
    for job in jobs:
        results.remove(job)

    def run_of(job: Job) -> Run:
        return Run(job, tests, CACHE / 'runs' / job.name)

    running = run_all(jobs, run_of, at_once, screen)
    with screen, closing(running):
        for job, result in running:
            results.add(job, result)


def _write_page(results: Results) -> None:
    verdicts = results.verdicts(VARIANTS.values(), SUITES.values())
    PAGE.write_text(page(verdicts, results.provenance), encoding='utf-8')


def _report(verdicts: Sequence[Verdict], screen: Screen) -> None:
    for verdict in verdicts:
        screen.line('')
        for line in details(verdict):
            screen.line(f'{verdict.variant}: {line}')
    screen.line('')
    for line in table_lines(table_rows(verdicts)):
        screen.line(line)
    screen.line('')
    click.echo(summary(verdicts))


def _exit_by_signal(number: int, frame: FrameType | None) -> NoReturn:
    # a second signal must not keep the clusters from being taken down
    for each in _ENDING_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(_ENDED_BY_SIGNAL + number)


if __name__ == '__main__':
    main()
