# SPDX-License-Identifier: Apache-2.0
"""Runs the loads of experiments, and records and shows them."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from shardmw_saio import Cluster, ClusterOptions

from shardmw_bench import templates
from shardmw_bench.errors import Interrupted
from shardmw_bench.kinds import Kind
from shardmw_bench.load.clients import Clients
from shardmw_bench.load.outcome import Outcome, is_admitted
from shardmw_bench.load.sources import Load, Source
from shardmw_bench.options import Parameters
from shardmw_bench.results.runs import Run
from shardmw_bench.results.summary import summarize
from shardmw_bench.screen import Screen
from shardmw_bench.site import Site, embedded_site
from shardmw_bench.targets.usage import read_processor, seconds_between
from shardmw_bench.templates import conditions_text

T = TypeVar('T')


class Stage:
    """The parameters, the clients and the screen of an experiment."""

    def __init__(
        self, parameters: Parameters, clients: Clients, screen: Screen
    ) -> None:
        self.parameters = parameters
        self.clients = clients
        self.screen = screen

    @contextlib.contextmanager
    def site(self, options: ClusterOptions | None = None) -> Iterator[Site]:
        """Start a temporary cluster for a ``with`` block."""
        with contextlib.ExitStack() as stack:
            with self.screen.status('starting a cluster'):
                site = embedded_site(options or ClusterOptions(), self.run)
                found = stack.enter_context(site)
            yield found

    def run(self, load: Load, label: str = '') -> Outcome:
        """Run a load to its end, and show its progress.

        :raises Interrupted: with the part that was measured
        """
        if not self.screen.is_live:
            return self.checked(self.clients.run(load))
        with self.screen.live(label, load.seconds, load.count) as show:
            outcome = self.clients.run(load, on_progress=show)
        return self.checked(outcome)

    def checked(self, outcome: Outcome) -> Outcome:
        """Return an outcome; print a warning if the clients limited it."""
        if outcome.is_client_bound:
            self.screen.warning(
                f'the clients were busy {outcome.busy_share:.0%} of the '
                'time: this measured the clients, or a busy machine'
            )
        return outcome


class Ledger:
    """The runs of an experiment, which are kept one by one.

    :param keep: called with all figures after each run
    :param runs: the number of runs, if known, to show the progress
    :param own_cluster: a temporary cluster, whose processor time is measured
    :param figures: other figures than ``runs``
    """

    def __init__(
        self,
        stage: Stage,
        keep: Callable[[dict[str, object]], None],
        runs: int | None = None,
        own_cluster: Cluster | None = None,
        **figures: object,
    ) -> None:
        self._stage = stage
        self._keep = keep
        self._began = 0
        self.cluster = own_cluster
        self.expected_runs = runs or 0
        self.figures: dict[str, object] = {**figures, 'runs': []}

    def measure(
        self,
        load: Load,
        work: str,
        kind: Kind,
        turn: int = 0,
        **conditions: object,
    ) -> Run:
        """Run a load, and record its run; the fields are those of ``Run``.

        An interrupted load is recorded, too.
        """
        self._began += 1
        total = f'/{self.expected_runs}' if self.expected_runs else ''
        run = Run(work, kind, turn, conditions, None)
        label = f'{self._began}{total} {_label(run)}'
        before = self.cluster and read_processor(self.cluster)
        try:
            outcome = self._stage.run(load, label)
        except Interrupted as interrupted:
            if interrupted.outcome is not None:
                self._record(run, load, interrupted.outcome, label)
            raise
        if before is not None:
            used = seconds_between(before, read_processor(self.cluster))
            run = replace(run, processor_seconds=used)
        return self._record(run, load, outcome, label)

    def note(
        self,
        load: Load,
        outcome: Outcome,
        work: str,
        kind: Kind,
        turn: int = 0,
        **conditions: object,
    ) -> Run:
        """Record a load that ran beside the last one."""
        run = Run(work, kind, turn, conditions, None)
        return self._record(run, load, outcome, f'meanwhile {_label(run)}')

    def _record(
        self, run: Run, load: Load, outcome: Outcome, label: str
    ) -> Run:
        listed = _rows_listed(load.source, outcome)
        run = replace(run, summary=summarize(outcome), rows_listed=listed)
        self.figures['runs'].append(run.as_json())
        self._keep(self.figures)
        self._stage.screen.line(f'{label}: {run_text(run)}')
        return run


def _rows_listed(source: Source, outcome: Outcome) -> float:
    rows_of = getattr(source, 'rows_of', None)
    if rows_of is None:
        return 0
    admitted = is_admitted(outcome.table['status'])
    numbers = outcome.table['number'][admitted].tolist()
    rows = np.fromiter(map(rows_of, numbers), float)
    return float(rows @ outcome.steady_shares[admitted])


def _label(run: Run) -> str:
    words = run.work, run.kind.label, conditions_text(run.conditions)
    return ', '.join(filter(None, words))


def run_text(run: Run) -> str:
    return templates.line('run', run=run)


def rotated(some: Sequence[T], turn: int) -> list[T]:
    """Return all items; each round begins with a different one.

    Without rotation, the last item would always find the fullest disks.
    """
    first = turn % len(some) if some else 0
    return [*some[first:], *some[:first]]


def phase_of(turn: int, rounds: int) -> float:
    """Return the place of a round among all, between 0 and 1."""
    return (turn + 0.5) / rounds
