# SPDX-License-Identifier: Apache-2.0
"""The experiments that motivated this project, by name.

A scenario is a module (or a package) that has

``NAME``, ``SUMMARY``
    what the command line calls it, and a line for its help.
``Parameters``
    a frozen dataclass of :class:`shardmw.bench.parameters.Parameters`, whose
    fields are the options of its command.
``measure(stage, keep) -> figures``
    does it: ``stage`` is a :class:`shardmw.bench.stage.Stage`, whose
    ``parameters`` are the scenario's; figures are a dictionary as JSON has
    it, in which ``runs`` is a list of :meth:`shardmw.bench.runs.Run.as_json`.
    ``keep(figures)`` is called after each step: what was kept last is what a
    run that is broken off has. A :class:`shardmw.bench.stage.Ledger` does so.
``tables(parameters, figures) -> list[Table]``
    pure, and good for part of the figures, too. What others published stands
    beside what was measured.
``plots(parameters, figures) -> list[Plot]``
    likewise.
``PUBLISHED``
    what others published, and where, in a sentence; empty if nobody did.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Protocol

from shardmw.bench.parameters import Parameters
from shardmw.bench.plots.plot import Plot
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table

Figures = dict[str, object]
Keep = Callable[[Figures], None]


class Scenario(Protocol):
    """What the module of a scenario has."""

    NAME: str
    SUMMARY: str
    PUBLISHED: str
    Parameters: type[Parameters]

    def measure(self, stage: Stage, keep: Keep) -> Figures: ...

    def tables(
        self, parameters: Parameters, figures: Mapping
    ) -> list[Table]: ...

    def plots(
        self, parameters: Parameters, figures: Mapping
    ) -> list[Plot]: ...


#: What results are kept as.
COMMAND = 'scenario'

#: In the order of the help, of ``all`` and of the report.
NAMES = (
    'container-sharding',
    'container-growth',
    'object-size',
    'concurrency',
    'log-serving',
    'small-objects',
    'replica-convergence',
    'filter-cost',
    'listing-cost',
    'listing-memory',
    'listing-fairness',
    'reshard',
)


def scenarios() -> dict[str, Scenario]:
    """All scenarios, by name."""
    paths = {name: f'{__name__}.{name.replace("-", "_")}' for name in NAMES}
    # not at the top, for they stand on modules of this package
    return {name: import_module(path) for name, path in paths.items()}
