# SPDX-License-Identifier: Apache-2.0
"""Where experiments are made: the clients, the screen, and the sites."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from shardmw.bench.clients import Clients
from shardmw.bench.kinds import Kind
from shardmw.bench.load import Load, Outcome
from shardmw.bench.parameters import Parameters
from shardmw.bench.runs import Run
from shardmw.bench.screen import Screen
from shardmw.saio import ClusterOptions


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

    def site(
        self, options: ClusterOptions | None = None
    ) -> AbstractContextManager:
        """A new cluster of the benchmark's own: a ``Site`` for ``with``."""
        raise NotImplementedError

    def run(self, load: Load, label: str) -> Outcome:
        """Run a load to its end, and show how it goes.

        Says so, too, if the clients were its limit.

        :param label: what runs, in a few words
        :raises Interrupted: with the part that was measured
        """
        raise NotImplementedError


class Ledger:
    """The runs of an experiment, kept as they come.

    :param keep: told the figures after each run
    :param rounds: how many there will be, for what is shown
    :param figures: others than ``runs``
    """

    def __init__(
        self,
        stage: Stage,
        keep: Callable[[dict[str, object]], None],
        rounds: int = 1,
        **figures: object,
    ) -> None:
        self.figures: dict[str, object] = {**figures, 'runs': []}

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
        raise NotImplementedError
