# SPDX-License-Identifier: Apache-2.0
"""How work is measured: each kind of container in turns."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from shardmw.bench.kinds import Kind
from shardmw.bench.names import Names
from shardmw.bench.site import Site
from shardmw.bench.stage import Ledger, Stage
from shardmw.bench.workloads.place import Place
from shardmw.bench.workloads.works import Work

T = TypeVar('T')


class _Step(NamedTuple):
    """One load: in which round, and on what."""

    turn: int
    kind: Kind


def measure(
    stage: Stage,
    keep: Callable[[Mapping[str, object]], None],
    work: Work,
    place: Place,
) -> dict[str, object]:
    """Do the work on each kind of container, round by round."""
    parameters = stage.parameters
    steps = [
        _Step(turn, kind)
        for turn in range(parameters.rounds)
        for kind in rotated(parameters.kinds, turn)
    ]
    ledger = Ledger(stage, keep, runs=len(steps))
    with place.site(stage, parameters.cluster) as site:
        names = work.names(parameters, site)
        # so that what can't be made is told before anything is measured
        containers = _make(stage, site, work, place, steps, names)
        put: set[str] = set()
        for step in steps:
            container = containers[step]
            if container not in put:
                put.add(container)
                with stage.screen.status(f'filling {container}'):
                    work.put(site, container, step.kind, parameters, names)
            path = site.container_path(container)
            load = site.load(
                work.source(path, parameters, names, step.turn),
                parameters.clients,
                seconds=parameters.load_seconds,
                count=parameters.count,
            )
            ledger.measure(
                load,
                work.name,
                step.kind,
                step.turn,
                **work.conditions(parameters, names),
            )
    return ledger.figures


def rotated(some: Sequence[T], turn: int) -> list[T]:
    """All of them, beginning with another one each turn. Pure."""
    first = turn % len(some) if some else 0
    return [*some[first:], *some[:first]]


def container_names(
    prefix: str, steps: Sequence[_Step], spends: bool
) -> dict[_Step, str]:
    """What to call the container of each step. Pure.

    :param spends: whether each needs one of its own
    """
    words = {
        step: (step.kind, step.turn if spends else None) for step in steps
    }
    if len(set(words.values())) < 2:
        return dict.fromkeys(steps, prefix)
    turns = {turn for _, turn in words.values()}
    return {
        step: '-'.join(
            [
                prefix,
                str(kind.shards or kind.layout),
                *([str(turn)] if len(turns) > 1 else []),
            ]
        )
        for step, (kind, turn) in words.items()
    }


def _make(
    stage: Stage,
    site: Site,
    work: Work,
    place: Place,
    steps: Sequence[_Step],
    names: Names | None,
) -> dict[_Step, str]:
    """A container for each step; some share one."""
    policy = stage.parameters.policy
    wanted: dict[_Step, str | object] = {}
    if place.container:
        wanted = container_names(place.container, steps, work.spends)
    made: dict[object, str] = {}
    found = {}
    with stage.screen.status('making containers'):
        for step in steps:
            own = step if work.spends else step.kind
            if own not in made:
                made[own] = site.make(
                    step.kind, names, policy, wanted.get(step)
                )
            found[step] = made[own]
    return found
