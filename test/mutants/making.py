# SPDX-License-Identifier: Apache-2.0
"""Make the mutants of a module from its text. Pure."""

import difflib
from collections.abc import Collection, Iterator

import libcst
import libcst.matchers as m
from mutmut.mutation.mutators import mutation_operators

_ENUM = m.Name('Enum') | m.Attribute(attr=m.Name('Enum'))

#: What is left as it is: annotations, the values of enums, which mean nothing,
#: and calls that fail in any test if they have other arguments.
UNCHANGED = (
    m.Annotation()
    | m.ClassDef(bases=[m.Arg(_ENUM)])
    | m.Call(func=m.Name('isinstance') | m.Name('len'))
)


class _Changes(libcst.CSTVisitor):
    """Collect the changes of a module: a node, and the one to put there."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[libcst.CSTNode, libcst.CSTNode]] = []

    def on_visit(self, node: libcst.CSTNode) -> bool:
        """Return False to leave a node and those in it as they are."""
        if m.matches(node, UNCHANGED):
            return False
        self.found += [
            (node, other)
            for kind, operator in mutation_operators
            if isinstance(node, kind)
            for other in operator(node)
        ]
        return True


def mutants(text: str, names: Collection[str] | None = None) -> Iterator[str]:
    """Yield the texts of a module's mutants.

    :param names: the functions and classes to change; None for all
    """
    module = libcst.parse_module(text)
    changes = _Changes()
    for node in module.body:
        name = getattr(node, 'name', None)
        if names is None or (name and name.value in names):
            node.visit(changes)
    for node, other in changes.found:
        yield module.deep_replace(node, other).code


def change(text: str, mutant: str) -> str:
    """Return the lines that a mutant changes, before and after, in a line."""
    before, after = text.splitlines(), mutant.splitlines()
    lines = difflib.SequenceMatcher(None, before, after, autojunk=False)
    parts = [
        (before[a:b], after[c:d])
        for tag, a, b, c, d in lines.get_opcodes()
        if tag != 'equal'
    ]
    return '; '.join(f'{_joined(old)} -> {_joined(new)}' for old, new in parts)


def _joined(lines: list[str]) -> str:
    return ' '.join(line.strip() for line in lines)
