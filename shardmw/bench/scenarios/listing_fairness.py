# SPDX-License-Identifier: Apache-2.0
"""``listing-fairness``: writes while a client lists another container.

The kind of a run of writes is the kind of the container that is listed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from shardmw.bench.kinds import PLAIN, Kind
from shardmw.bench.load.clients import Clients
from shardmw.bench.load.sources import Listings, Uploads
from shardmw.bench.load.stage import Ledger, Stage, phase_of, rotated
from shardmw.bench.names import FlatNames
from shardmw.bench.options import DURATION
from shardmw.bench.parameters import option
from shardmw.bench.plots.plot import BARS, Axis, Plot
from shardmw.bench.results import comparing as c
from shardmw.bench.results.runs import runs_of
from shardmw.bench.scenarios import base, rounds
from shardmw.bench.tables import number

WRITE = 'write meanwhile'
LIST = 'list'

#: The kind of runs in which no container is listed.
NOBODY = Kind('nobody lists')

# Writers with less of the wanted rate are behind.
_ON_TIME_SHARE = 0.95

_p99 = c.latency_of('p99_ms')


@dataclass(frozen=True)
class ListingFairness(base.PacedScenario, base.LoadScenario):
    """Writes by the proxy worker that also serves a client that lists."""

    name = 'listing-fairness'

    shards: tuple[int, ...] = base.shared('shards', (4, 32, 128))
    seconds: float = option(10.0, DURATION, 'How long each load lasts.')
    workers: int = base.shared('workers', 4)
    rate: int = base.shared('rate', 50)
    size: int = base.shared('size', 1)
    rows: int = base.shared('rows', 1_000_000)
    page: tuple[int, ...] = base.shared('page', (10_000, 100))

    @property
    def expected_seconds(self) -> float:
        loads = len(self.page) * (1 + len(self.kinds))
        rows = len(self.kinds) * self.rows
        return self.seconds_of(loads) + rows / base.ROWS_PER_SECOND

    def measure(self, stage: Stage, keep: base.Keep) -> base.Figures:
        """Write while no container is listed, and while each one is."""
        steps = [
            (turn, page, kind)
            for turn in range(self.rounds)
            for page in self.page
            for kind in rotated((NOBODY, *self.kinds), turn)
        ]
        names = FlatNames(self.rows)
        ledger = Ledger(stage, keep, len(steps))
        # the same process serves the writers and the client that lists
        cluster = self.cluster({'DEFAULT.workers': '0'})
        with stage.site(cluster) as site, Clients(1) as lister:
            paths = {}
            for kind in self.kinds:
                container = base.filled(stage, site, kind, names)
                site.prepare(container, False, 0)
                paths[kind] = site.container_path(container)
            for turn, page, kind in steps:
                container = site.make(PLAIN)
                site.prepare(container, True, phase_of(turn, self.rounds))
                writes = site.load(
                    Uploads(site.container_path(container), self.size),
                    self.clients,
                    seconds=self.seconds,
                    pace_seconds=self.pace_seconds,
                )
                if kind == NOBODY:
                    ledger.measure(writes, WRITE, kind, turn, page=page)
                    continue
                source = Listings(paths[kind], names, page)
                pages = site.load(source, clients=1)
                listing = lister.begin(pages)
                ledger.measure(writes, WRITE, kind, turn, page=page)
                outcome = stage.checked(listing.stop())
                ledger.note(pages, outcome, LIST, kind, turn, page=page)
        return ledger.figures

    def shown(self, figures: base.Figures) -> Mapping[str, object]:
        """Return the writes by what was listed meanwhile, and the pages/s."""
        runs = runs_of(figures)
        writes = [run for run in runs if run.work == WRITE]
        listings = [run for run in runs if run.work == LIST]
        wanted = _ON_TIME_SHARE * self.rate

        def of(others: Sequence[c.Row]):
            by_key = {_key(row): row for row in others}
            return lambda row: by_key.get(_key(row))

        return {
            'rows': c.rows_of(writes, NOBODY),
            'to_plain': of(c.rows_of(writes)),
            'listing': of(c.rows_of(listings)),
            'p50': c.latency_of('p50_ms'),
            'p99': _p99,
            'pages_rate': attrgetter('operations_rate'),
            'late': sum(run.rate < wanted for run in writes),
            'loads': len(writes),
            'runs': runs,
        }

    def plots(self, figures: base.Figures) -> list[Plot]:
        """Return the p99 of writes by the container that is listed."""
        writes = [run for run in runs_of(figures) if run.work == WRITE]
        alone = [run for run in writes if run.kind == NOBODY]
        rows = c.rows_of(run for run in writes if run.kind != NOBODY)
        nobody = c.Row(WRITE, NOBODY, {}, alone).median(_p99)
        return rounds.plot_by_kind(
            'p99',
            'Writes while a client lists: 99th percentile',
            rows,
            lambda row: f'{number(row.conditions["page"])} rows a page',
            _p99,
            Axis('p99 (ms)'),
            style=BARS,
            levels={} if nobody is None else {NOBODY.label: nobody},
            x_label='container that is listed',
        )


def _key(row: c.Row) -> tuple[Kind, int]:
    return row.kind, row.conditions['page']
