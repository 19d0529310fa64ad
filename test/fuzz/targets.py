# SPDX-License-Identifier: Apache-2.0
"""The targets by name, and the inputs that reach all that was reached.

A target is a function of bytes that raises if a property does not hold. Its
corpus is a file with one input a line, in base64.
"""

import base64
from collections.abc import Iterable
from pathlib import Path

from test.fuzz import pages, pending, records, wire

TARGETS = {
    'record': records.record,
    'ranges': records.ranges,
    'reads': wire.reads,
    'answers': wire.answers,
    'params': wire.params,
    'pages': pages.pages,
    'pending': pending.pending,
}

CORPUS = Path(__file__).parent / 'corpus'


def inputs(target: str) -> list[bytes]:
    """Return the inputs of a target's corpus."""
    path = CORPUS / target
    lines = path.read_text().split() if path.exists() else []
    return [base64.b64decode(line) for line in lines]


def keep(target: str, found: Iterable[bytes]) -> None:
    """Replace a target's corpus."""
    lines = [base64.b64encode(each).decode() for each in sorted(found)]
    (CORPUS / target).write_text(''.join(f'{line}\n' for line in lines))
