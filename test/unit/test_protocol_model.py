# SPDX-License-Identifier: Apache-2.0
"""All states of small models of the protocol, right and broken."""

import pytest

from test.model import BREAKS, MODELS, explored
from test.unit import breaks


@pytest.mark.parametrize('model', MODELS)
def test_no_state_breaks_the_protocol(model):
    found = explored(model)
    assert not found.problem, found
    assert len(found.parents) > 0


@pytest.mark.parametrize('rule', BREAKS)
def test_a_broken_rule_is_found(rule):
    found = explored(BREAKS[rule], rule)
    assert found.problem
    assert found.history(found.state)


def test_all_breaks_of_the_simulation_are_tried():
    assert {*BREAKS} == {*breaks.BREAKS}
