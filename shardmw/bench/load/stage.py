# SPDX-License-Identifier: Apache-2.0
"""Where experiments are made: the clients, the screen, and the sites."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from shardmw.bench.errors import Interrupted
from shardmw.bench.kinds import Kind
from shardmw.bench.load.clients import Clients
from shardmw.bench.load.definition import Load
from shardmw.bench.load.outcome import Outcome
from shardmw.bench.load.samples import is_admitted
from shardmw.bench.load.sources import Source
from shardmw.bench.parameters import Parameters
from shardmw.bench.results.runs import Run
from shardmw.bench.results.summary import errors_text, summarize
from shardmw.bench.screen import Screen
from shardmw.bench.site import Site, embedded_site, remote_site
from shardmw.bench.tables import figure, number
from shardmw.bench.targets.auth import Auth
from shardmw.bench.targets.usage import (
    Reading,
    read_processor,
    seconds_between,
)
from shardmw.bench.words import conditions_text
from shardmw.saio import Cluster, ClusterOptions


class Stage:
    """What an experiment has at hand.

    :param parameters: of the experiment
    :param clients: the client processes
    :param screen: where it says what it does
    """

    def __init__(
        self, parameters: Parameters, clients: Clients, screen: Screen
    ) -> None:
        self.parameters = parameters
        self.clients = clients
        self.screen = screen

    @contextlib.contextmanager
    def site(self, options: ClusterOptions | None = None) -> Iterator[Site]:
        """A new cluster of the benchmark's own, for a ``with`` block."""
        wanted = options or ClusterOptions()
        with contextlib.ExitStack() as stack:
            with self.screen.status('starting a cluster'):
                site = stack.enter_context(
                    embedded_site(wanted, self.clients, self.run)
                )
            yield site

    @contextlib.contextmanager
    def remote_site(self, auth: Auth, container_prefix: str) -> Iterator[Site]:
        """A cluster that somebody runs, for a ``with`` block.

        It's left to the caller to clean up.
        """
        with remote_site(
            auth, self.clients, container_prefix, self.run
        ) as site:
            yield site

    def run(self, load: Load, label: str = '') -> Outcome:
        """Run a load to its end, and show how it goes.

        Says so, too, if the clients were its limit.

        :param label: what runs, in a few words
        :raises Interrupted: with the part that was measured
        """
        if not self.screen.is_live:
            return self.checked(self.clients.run(load))
        with self.screen.live(label, load.seconds, load.count) as show:
            outcome = self.clients.run(load, on_progress=show)
        return self.checked(outcome)

    def checked(self, outcome: Outcome) -> Outcome:
        """Say it if the clients were what was measured."""
        if outcome.is_client_bound:
            self.screen.warning(
                f'the clients were busy {outcome.busy_share:.0%} of the '
                'time: this measured them, or a machine with other work'
            )
        return outcome


class Ledger:
    """The runs of an experiment, kept as they come.

    :param keep: told the figures after each run
    :param runs: how many there will be, for what is shown
    :param own_cluster: the cluster of the loads, whose processor time is
                        noted; None if it is not the benchmark's own
    :param figures: others than ``runs``
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
        self._cluster = own_cluster
        self._keep = keep
        self._expected = runs
        self._began = 0
        self.figures: dict[str, object] = {**figures, 'runs': []}

    def expect(self, runs: int) -> None:
        """Add runs to the number that is shown as the total."""
        self._expected = (self._expected or 0) + runs

    def use(self, cluster: Cluster) -> None:
        """Note the processor time of another cluster from now on."""
        self._cluster = cluster

    def measure(
        self,
        load: Load,
        work: str,
        kind: Kind,
        turn: int = 0,
        **conditions: object,
    ) -> Run:
        """Run a load, and note what came of it; fields as of ``Run``.

        What came of it until it was interrupted is noted, too.
        """
        self._began += 1
        label = f'{self._place()} {_label(work, kind, conditions)}'
        run = Run(work, kind, turn, conditions, None)
        before = self._processor()
        try:
            outcome = self._stage.run(load, label)
        except Interrupted as broken_off:
            if broken_off.outcome is not None:
                self._note(run, load, broken_off.outcome, label)
            raise
        if before is not None:
            used = seconds_between(before, self._processor())
            run = replace(run, processor_seconds=used)
        return self._note(run, load, outcome, label)

    def note(
        self,
        load: Load,
        outcome: Outcome,
        work: str,
        kind: Kind,
        turn: int = 0,
        **conditions: object,
    ) -> Run:
        """Note what came of a load that ran beside the last one."""
        label = f'meanwhile {_label(work, kind, conditions)}'
        run = Run(work, kind, turn, conditions, None)
        return self._note(run, load, outcome, label)

    def _note(
        self, begun: Run, load: Load, outcome: Outcome, label: str
    ) -> Run:
        run = replace(
            begun,
            summary=summarize(outcome),
            rows_listed=rows_listed(load.source, outcome),
        )
        self.figures['runs'].append(run.as_json())
        self._keep(self.figures)
        self._stage.screen.line(f'{label}: {run_text(run)}')
        return run

    def _processor(self) -> Reading | None:
        if self._cluster is None:
            return None
        return read_processor(self._cluster)

    def _place(self) -> str:
        if not self._expected:
            return f'{self._began}'
        return f'{self._began}/{self._expected}'


def rows_listed(source: Source, outcome: Outcome) -> float:
    """Rows of all pages; of those that came late, a part. Pure."""
    rows_of = getattr(source, 'rows_of', None)
    if rows_of is None:
        return 0
    admitted = is_admitted(outcome.table['status'])
    numbers = outcome.table['number'][admitted].tolist()
    rows = np.fromiter(map(rows_of, numbers), float)
    return float(rows @ outcome.steady_shares[admitted])


def _label(work: str, kind: Kind, conditions: dict[str, object]) -> str:
    words = [work, kind.label, conditions_text(conditions)]
    return ', '.join(filter(None, words))


def run_text(run: Run) -> str:
    """A run in a line. Pure."""
    summary = run.summary
    took = summary.latency
    unit = 'rows/s' if run.rows_listed else 'ops/s'
    parts = [
        f'{number(summary.admitted)} ops',
        f'{figure(run.rate)} {unit}',
        f'p50 {figure(took.p50_ms)} p95 {figure(took.p95_ms)} '
        f'p99 {figure(took.p99_ms)} ms',
        f'{errors_text(summary.errors)} errors',
    ]
    if summary.refused:
        parts.append(f'{number(summary.refused)} refused')
    if run.processor_ms is not None:
        parts.append(f'{figure(run.processor_ms)} ms of processor a request')
    return ', '.join(parts)
