# SPDX-License-Identifier: Apache-2.0
"""The protocol of changes of layout, explored exhaustively.

Two small models have every step that clients, the mover, replicators and
faults can take. :mod:`test.model.explorer` follows all interleavings:

- :mod:`test.model.rows`: rows move while clients write and list, and while the
  change may be cancelled.
- :mod:`test.model.roots`: a container is deleted, created again and changed
  while replicas of its root are missing, stale or silent.

The models call the pure functions of ``shardmw``: the table of phases, the
records of layouts, the places of rows, the timestamps of rows that move, the
comparison of replicas, and the rules of evidence. The models add the time, the
servers and the faults around them.

``python -m test.model`` explores the protocol, ``python -m test.model BREAK``
prints the shortest wrong history that a broken rule allows.
"""

from test.model.explorer import Exploration, explore
from test.model.roots import EARLIER, RootsModel
from test.model.rows import CHANGES, RowsModel
from test.unit.breaks import broken

#: The models: three changes of layout, and containers that are deleted.
MODELS = (*CHANGES, *EARLIER)

#: The model that finds each break of :mod:`test.unit.breaks`.
BREAKS = {
    'one_tombstone': 'reshard',
    'one_look': 'reshard',
    'skipped_phase': 'reshard',
    'no_wait': 'reshard',
    'no_settling': 'reshard',
    'moved_at_once': 'reshard',
    'quorum_is_enough': 'reshard',
    'tombstones_of_now': 'reshard',
    'offsets_of_clocks': 'convert',
    'one_replica_is_trusted': 'reshard',
    'missing_is_deleted': 'plain',
    'two_fast_answers': 'plain',
    'plain_by_one_replica': 'plain',
}


def explored(model: str, rule: str = '', writes: str = 'PD') -> Exploration:
    """Explore a model.

    :param rule: a rule to break. The functions that the models call are
                 broken as in the simulation; the models leave out those rules
                 that are about time
    :param writes: see :class:`RowsModel`
    """
    with broken(rule):
        if model in EARLIER:
            return explore(RootsModel(EARLIER[model]))
        return explore(RowsModel(model, rule, writes))
