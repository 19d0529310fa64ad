# SPDX-License-Identifier: Apache-2.0
"""Measure a work on each kind of container, round by round."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping

from shardmw_bench.kinds import Kind
from shardmw_bench.load.clients import Clients
from shardmw_bench.load.sources import Load
from shardmw_bench.load.stage import Ledger, Stage, phase_of, rotated
from shardmw_bench.names import Names
from shardmw_bench.site import Site
from shardmw_bench.workloads.place import Place
from shardmw_bench.workloads.works import Work

# A container is removed at once after a load that wrote more.
_MANY_BYTES = 64 << 20

#: The kind and the round of a container; None for all rounds.
Owner = tuple[Kind, int | None]


def measure(
    stage: Stage,
    keep: Callable[[Mapping[str, object]], None],
    place: Place,
) -> dict[str, object]:
    """Measure a work on a cluster, and return the figures."""
    work = stage.parameters
    with place.site(stage, work.cluster) as site:
        ledger = Ledger(stage, keep, own_cluster=site.cluster)
        if not site.is_own:
            found = {'url': site.urls[0], 'swift': site.swift_version}
            ledger.figures['cluster'] = found
        measure_work(stage, site, ledger, work, place.container)
    return ledger.figures


def measure_work(
    stage: Stage,
    site: Site,
    ledger: Ledger,
    work: Work,
    chosen: str | None = None,
) -> None:
    """Measure a work on a site, in containers of a chosen name, if any."""
    names = work.names(site)
    steps = [
        (turn, each, (kind, turn if work.spends else None))
        for turn in range(work.rounds)
        for each in work.conditions(names)
        for kind in rotated(work.kinds, turn)
    ]
    owners = dict.fromkeys(owner for *_, owner in steps)
    ledger.expected_runs += len(steps)
    # made before anything is measured, since some may be refused
    wanted = container_names(chosen, owners) if chosen else {}
    with stage.screen.status('making containers'):
        containers = {
            owner: site.make(owner[0], names, work.policy, wanted.get(owner))
            for owner in owners
        }
    #: the names of the filled containers
    listed: dict[str, Names | None] = {}
    for turn, each, owner in steps:
        kind, container = owner[0], containers[owner]
        if container not in listed:
            with stage.screen.status(f'filling {container}'):
                listed[container] = names and work.fill(
                    site, container, kind, names
                )
        meanwhile = work.meanwhile(site, container, turn=turn, **each)
        phase = None if meanwhile else phase_of(turn, work.rounds)
        site.prepare(container, work.writes, phase)
        path = site.container_path(container)
        load = site.load(
            work.source(path, listed[container], turn=turn, **each),
            work.clients,
            seconds=work.load_seconds,
            count=work.count,
        )
        with _beside(meanwhile):
            run = ledger.measure(load, work.name, kind, turn, **each)
        if run.summary.bytes_sent > _MANY_BYTES and work.spends:
            # to have room on the disk
            site.remove(container)


@contextlib.contextmanager
def _beside(load: Load | None) -> Iterator[None]:
    """Run a load beside the block, if there is one."""
    if load is None:
        yield
        return
    with Clients(1) as clients:
        clients.begin(load)
        yield
        clients.stop()


def container_names(
    chosen: str, owners: Collection[Owner]
) -> dict[Owner, str]:
    """Return the chosen name, with kinds and rounds if several. Pure."""
    if len(owners) == 1:
        return dict.fromkeys(owners, chosen)
    return {
        (kind, turn): f'{chosen}-{kind.word}'
        + ('' if turn is None else f'-{turn}')
        for kind, turn in owners
    }
