# SPDX-License-Identifier: Apache-2.0
"""The inputs that fuzzing has found, without the fuzzer."""

import pytest

from test.fuzz import pending
from test.fuzz.targets import TARGETS, inputs


@pytest.mark.parametrize('target', TARGETS)
def test_inputs_that_reach_all_code_break_no_property(target):
    for data in inputs(target):
        TARGETS[target](data)


def test_the_reader_leaves_only_a_part_of_the_inputs_to_swift(monkeypatch):
    found, snapshot = [], pending._snapshot

    def recorded(*args):
        found.append(snapshot(*args))
        return found[-1]

    monkeypatch.setattr(pending, '_snapshot', recorded)
    for data in inputs('pending'):
        TARGETS['pending'](data)
    assert sum(map(bool, found)) > len(found) / 2
