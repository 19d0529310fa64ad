# SPDX-License-Identifier: Apache-2.0
"""The inputs that fuzzing has found, without the fuzzer."""

import pytest

from test.fuzz.targets import TARGETS, inputs


@pytest.mark.parametrize('target', TARGETS)
def test_inputs_that_reach_all_code_break_no_property(target):
    for data in inputs(target):
        TARGETS[target](data)
