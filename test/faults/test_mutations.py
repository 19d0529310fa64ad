# SPDX-License-Identifier: Apache-2.0
"""Unit tests that find the mutations that no cell has found."""

import pytest

from test.faults.mutations import MUTATIONS, copy, passes

MISSED = [name for name, mutation in MUTATIONS.items() if mutation.test]


@pytest.mark.parametrize('name', MISSED)
def test_a_mutation_that_cells_miss_is_found_by_a_unit_test(name):
    mutation = MUTATIONS[name]
    with copy(None) as folder:
        assert passes(mutation.test, folder)
    with copy(mutation) as folder:
        assert not passes(mutation.test, folder)
