# SPDX-License-Identifier: Apache-2.0
"""Explore all states of a model, breadth first."""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple, Protocol

State = Hashable


class Model(Protocol):
    """The states that a system can be in, and its steps between them."""

    def initial(self) -> Iterable[State]:
        """Return the states to begin with."""

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield what can happen next, and the state after it."""

    def violation(self, state: State) -> str:
        """Return what is wrong in a state, or ''."""

    def is_over(self, state: State) -> bool:
        """Return True if nothing more has to happen."""


#: For each state, the state and the step that it was first reached by.
Parents = dict[State, tuple[State, str] | None]


class Exploration(NamedTuple):
    """The result of an exploration.

    :param parents: the states that were seen: all, if nothing is wrong
    :param problem: what is wrong, or ''
    :param state: the first state in which it is
    """

    parents: Parents
    problem: str = ''
    state: State = None

    def __str__(self) -> str:
        steps = [step for _, step in self.history(self.state)]
        found = f'{len(self.parents)} states, {self.problem or "all right"}'
        return '\n    '.join([found, *steps])

    def history(self, state: State) -> list[tuple[State, str]]:
        """Return the fewest steps to a state, each after its state."""
        steps = []
        while reached := self.parents.get(state):
            state, _ = reached
            steps.append(reached)
        return steps[::-1]


def explore(model: Model) -> Exploration:
    """Explore all states up to the first one in which something is wrong.

    It is also wrong if the end cannot be reached from a state.
    """
    parents: Parents = dict.fromkeys(model.initial())
    # The states before each state, by any step.
    before: dict[State, list[State]] = {state: [] for state in parents}
    queue = deque(parents)
    while queue:
        state = queue.popleft()
        problem = model.violation(state)
        if problem:
            return Exploration(parents, problem, state)
        for step, following in model.steps(state):
            if following not in parents:
                parents[following], before[following] = (state, step), []
                queue.append(following)
            before[following].append(state)
    stuck = _stuck(model, before)
    if stuck is None:
        return Exploration(parents)
    return Exploration(parents, 'the end cannot be reached', stuck)


def _stuck(model: Model, before: dict[State, list[State]]) -> State | None:
    """Return the first state from which the end cannot be reached."""
    queue = deque(state for state in before if model.is_over(state))
    ends = set(queue)
    while queue:
        for state in before[queue.popleft()]:
            if state not in ends:
                ends.add(state)
                queue.append(state)
    return next((state for state in before if state not in ends), None)
