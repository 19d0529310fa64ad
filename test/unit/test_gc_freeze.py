# SPDX-License-Identifier: Apache-2.0
"""Objects that Python's garbage collector leaves out."""

import gc
import weakref

import pytest

from shardmw.backend.gc_freeze import leave_out_lasting_objects


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def left_out():
    leave_out_lasting_objects.cache_clear()
    garbage = weakref.ref(Node())
    lasting = Node()
    leave_out_lasting_objects()
    yield garbage, lasting
    gc.unfreeze()


def test_lasting_objects_are_left_out(left_out):
    _, lasting = left_out
    assert gc.get_freeze_count() > 0
    assert not any(each is lasting for each in gc.get_objects())


def test_earlier_garbage_is_collected(left_out):
    garbage, _ = left_out
    assert garbage() is None


def test_later_garbage_is_collected(left_out):
    later = weakref.ref(Node())
    leave_out_lasting_objects()  # does nothing
    gc.collect()
    assert later() is None
