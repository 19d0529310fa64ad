# SPDX-License-Identifier: Apache-2.0
"""Measure a work on each kind of container in turns."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import Kind
from shardmw.bench.load.stage import Ledger, Stage
from shardmw.bench.load.turns import phase_of, rotated
from shardmw.bench.names import Names
from shardmw.bench.results.runs import runs_of
from shardmw.bench.results.summary import Summary, errors_text
from shardmw.bench.site import Site
from shardmw.bench.workloads.parameters import WorkParameters
from shardmw.bench.workloads.place import Place
from shardmw.bench.workloads.works import Task, Work

# After a load that wrote more, its container is removed.
_MANY_BYTES = 64 << 20


class _Owner(NamedTuple):
    """What a container is for.

    :param turn: None for one that is used in all rounds
    """

    kind: Kind
    turn: int | None


def measure(
    stage: Stage,
    keep: Callable[[Mapping[str, object]], None],
    work: Work,
    place: Place,
) -> dict[str, object]:
    """Do the work on each kind of container, round by round."""
    parameters = stage.parameters
    with place.site(stage, parameters.cluster) as site:
        ledger = Ledger(
            stage, keep, own_cluster=site.cluster, **place.figures(site)
        )
        measure_work(stage, site, ledger, work, parameters, place.container)
    return ledger.figures


def measure_work(
    stage: Stage,
    site: Site,
    ledger: Ledger,
    work: Work,
    parameters: WorkParameters,
    chosen: str | None = None,
) -> None:
    """Do the work on each kind of container, round by round.

    :param chosen: the name of the container that the user wants
    """
    names = _names(work, parameters, site)
    conditions = work.conditions(parameters, names)
    steps = [
        (turn, each, kind)
        for turn in range(parameters.rounds)
        for each in conditions
        for kind in rotated(parameters.kinds, turn)
    ]
    owners = [
        _Owner(kind, turn if work.spends else None) for turn, _, kind in steps
    ]
    ledger.expect(len(steps))
    # made before anything is measured: some may be refused
    wanted = container_names(chosen, owners) if chosen else {}
    with stage.screen.status('making containers'):
        containers = {
            owner: site.make(
                owner.kind, names, parameters.policy, wanted.get(owner)
            )
            for owner in dict.fromkeys(owners)
        }
    filled: set[str] = set()
    for owner, (turn, each, kind) in zip(owners, steps, strict=True):
        container = containers[owner]
        if container not in filled and names is not None:
            filled.add(container)
            with stage.screen.status(f'filling {container}'):
                work.put(site, container, kind, parameters, names)
        site.prepare(container, work.writes, phase_of(turn, parameters.rounds))
        path = site.container_path(container)
        load = site.load(
            work.source(Task(path, kind, parameters, names, each, turn)),
            parameters.clients,
            seconds=parameters.load_seconds,
            count=parameters.count,
        )
        run = ledger.measure(load, work.name, kind, turn, **each)
        if run.summary.bytes_sent > _MANY_BYTES and work.spends:
            # they would fill the disk
            site.remove(container)


def check_done(figures: Mapping) -> None:
    """Raise BenchError if everything failed with a kind of container."""
    of_kinds: dict[Kind, list[Summary]] = {}
    for run in runs_of(figures):
        of_kinds.setdefault(run.kind, []).append(run.summary)
    for kind, summaries in of_kinds.items():
        failed = sum((Counter(s.errors) for s in summaries), Counter())
        if failed and not any(s.done or s.refused for s in summaries):
            raise BenchError(
                f'{kind.label}: everything failed ({errors_text(failed)}): '
                "the proxy's log may tell why"
            )


def _names(work: Work, parameters: WorkParameters, site: Site) -> Names | None:
    """Return the names of what containers hold before the load.

    :raises BenchError: if they cannot hold it
    """
    try:
        return work.names(parameters, site)
    except ValueError as err:
        raise BenchError(f'this cannot be measured: {err}') from err


def container_names(
    chosen: str, owners: Sequence[_Owner]
) -> dict[_Owner, str]:
    """Return the names of containers if the user chose a name. Pure.

    A single container has that name. Several have their kinds and rounds
    appended, if these differ.
    """
    different = dict.fromkeys(owners)
    kinds = {owner.kind for owner in different}
    turns = {owner.turn for owner in different}
    return {
        owner: '-'.join(
            [
                chosen,
                *([_word(owner.kind)] if len(kinds) > 1 else []),
                *([str(owner.turn)] if len(turns) > 1 else []),
            ]
        )
        for owner in different
    }


def _word(kind: Kind) -> str:
    depth = f'-depth-{kind.depth}' if kind.depth else ''
    return f'{kind.shards or kind.layout}{depth}'
