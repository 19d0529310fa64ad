# SPDX-License-Identifier: Apache-2.0
"""Small changes of the rules, each of which the unit tests have to notice.

``python -m test.mutants`` runs the tests of each module of :data:`MODULES`
with each mutant: the module with one small change, such as ``<=`` for ``<``.
If the tests pass, the mutant has survived. ``survivors.txt`` lists the mutants
that may survive, with the reasons.

The changes are those of mutmut. The program ``mutmut`` itself leaves out
tables, constants and decorated functions, which are half of the rules here.
"""

from typing import NamedTuple


class Module(NamedTuple):
    """A module to change.

    :param tests: the tests to run, as arguments of pytest
    :param names: the functions and classes to change; None for all of it
    """

    tests: tuple[str, ...]
    names: tuple[str, ...] | None = None


MODULES = {
    'core/batch': Module(('test_backend_batch.py',)),
    'core/bounded': Module(('test_bounded.py',)),
    'core/evidence': Module(('test_evidence.py',)),
    'core/gcra': Module(('test_ratelimit_gcra.py',)),
    'core/layout': Module(('test_record.py',)),
    'core/listing_page': Module(('test_listing_merge.py',)),
    'core/listing_params': Module(('test_listing_params.py',)),
    'core/listing_rows': Module(('test_listing_rows.py',)),
    'core/paths': Module(('test_paths.py',)),
    'core/phases': Module(('test_phases.py',)),
    'core/placement': Module(('test_placement.py',)),
    'core/unordered_page': Module(('test_listing_unordered.py',)),
    # The rules of proof: what an answer says, and what all answers prove.
    'backend/nodes': Module(
        ('test_backend_nodes.py::TestReplicaOf',), ('replica_of', '_seconds')
    ),
    'backend/roots': Module(
        ('test_layout_roots.py', '-k', 'not ReadRoot and not ContentsOf'),
        ('RootState', 'state_of', '_without_record'),
    ),
}
