# SPDX-License-Identifier: Apache-2.0
"""The experiments that motivated this project, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

from shardmw.bench.parameters import Parameters
from shardmw.bench.plots.plot import Plot
from shardmw.bench.tables import Table

Figures = Mapping[str, object]
Keep = Callable[[Figures], None]

#: The command that results are kept as.
COMMAND = 'scenario'


@dataclass(frozen=True)
class Scenario:
    """An experiment that the command line offers.

    :param summary: one line of help
    :param parameters: their fields are the options of the command
    :param measure: ``measure(stage, keep) -> figures``: a dictionary for
                    JSON, in which ``runs`` is a list of ``Run.as_json``. It
                    calls ``keep(figures)`` after each step, for the case that
                    it is interrupted
    :param tables: ``tables(parameters, figures) -> list[Table]``; accepts
                   the figures of an interrupted run
    :param plots: ``plots(parameters, figures) -> list[Plot]``; likewise
    :param seconds: ``seconds(parameters)``: about how long it takes
    :param published: a sentence on figures that others published
    :param defaults: parameters that differ from those of their class
    """

    name: str
    summary: str
    parameters: type[Parameters]
    measure: Callable[..., Figures]
    tables: Callable[..., list[Table]]
    plots: Callable[..., list[Plot]]
    seconds: Callable[..., float]
    published: str = ''
    defaults: Mapping[str, object] = field(default_factory=dict)

    def default_parameters(self) -> Parameters:
        """Return the parameters of a command without options."""
        return replace(self.parameters(), **self.defaults)


_MODULES = (
    *('loads', 'container_growth', 'replica_convergence', 'filter_cost'),
    *('listing_cost', 'listing_memory', 'listing_fairness', 'reshard'),
)

#: In the order of the help, of ``all`` and of the report.
NAMES = (
    *('container-sharding', 'container-growth', 'object-size'),
    *('concurrency', 'log-serving', 'small-objects', 'replica-convergence'),
    *('filter-cost', 'listing-cost', 'listing-memory', 'listing-fairness'),
    'reshard',
)


def scenarios() -> dict[str, Scenario]:
    """Return all scenarios by name."""
    # not imported at the top: the modules import this one
    modules = (import_module(f'{__name__}.{name}') for name in _MODULES)
    found = {
        each.name: each for module in modules for each in module.SCENARIOS
    }
    return {name: found[name] for name in NAMES}
