# SPDX-License-Identifier: Apache-2.0
"""How work is measured: each kind of container in turns."""

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


class _Own(NamedTuple):
    """Who has a container.

    :param turn: None for one that does for all rounds
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
        names = _names(work, parameters, site)
        conditions = work.conditions(parameters, names)
        steps = [
            (turn, each, kind)
            for turn in range(parameters.rounds)
            for each in conditions
            for kind in rotated(parameters.kinds, turn)
        ]
        owners = [
            _Own(kind, turn if work.spends else None)
            for turn, _, kind in steps
        ]
        ledger = Ledger(
            stage,
            keep,
            len(steps),
            own_cluster=site.cluster,
            **place.figures(site),
        )
        # so that what can't be made is told before anything is measured
        containers = _make(stage, site, place.container, owners, names)
        filled: set[str] = set()
        for owner, (turn, each, kind) in zip(owners, steps, strict=True):
            container = containers[owner]
            if container not in filled:
                filled.add(container)
                # there are works that need nothing there
                if names is not None:
                    with stage.screen.status(f'filling {container}'):
                        work.put(site, container, kind, parameters, names)
            site.prepare(
                container, work.writes, phase_of(turn, parameters.rounds)
            )
            path = site.container_path(container)
            task = Task(path, kind, parameters, names, each, turn)
            load = site.load(
                work.source(task),
                parameters.clients,
                seconds=parameters.load_seconds,
                count=parameters.count,
            )
            ledger.measure(load, work.name, kind, turn, **each)
    return ledger.figures


def check_done(figures: Mapping) -> None:
    """Tell a container of which nothing was answered from a slow one.

    :raises BenchError: if there is one with which everything failed
    """
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
    """What containers have to hold before.

    :raises BenchError: if they can't
    """
    try:
        return work.names(parameters, site)
    except ValueError as err:
        raise BenchError(f'this cannot be measured: {err}') from err


def container_names(chosen: str, owners: Sequence[_Own]) -> dict[_Own, str]:
    """What to call containers, if somebody chose a name. Pure.

    A single one is called so; of several, each has its kind and round behind
    it, if there are several of these.
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


def _make(
    stage: Stage,
    site: Site,
    chosen: str | None,
    owners: Sequence[_Own],
    names: Names | None,
) -> dict[_Own, str]:
    policy = stage.parameters.policy
    wanted = container_names(chosen, owners) if chosen else {}
    with stage.screen.status('making containers'):
        return {
            owner: site.make(owner.kind, names, policy, wanted.get(owner))
            for owner in dict.fromkeys(owners)
        }
