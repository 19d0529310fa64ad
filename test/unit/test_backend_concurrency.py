# SPDX-License-Identifier: Apache-2.0
import os
import threading
from unittest import mock

import pytest
from eventlet import sleep, spawn

from shardmw.backend import concurrency
from shardmw.backend.concurrency import run_in_thread


@pytest.fixture(autouse=True)
def descriptors():
    """Each test closes the files that it opens."""
    before = set(os.listdir('/proc/self/fd'))
    yield
    assert set(os.listdir('/proc/self/fd')) <= before


@pytest.fixture(scope='module', autouse=True)
def hub():
    """Eventlet's hub has opened its own files."""
    sleep()


def test_green_threads_have_turns_while_a_native_thread_works():
    has_had_turn = threading.Event()
    seen = []
    spawn(has_had_turn.set)
    run_in_thread(lambda: seen.append(has_had_turn.wait(10)))
    assert seen == [True]


def test_what_the_function_raises_is_raised():
    def fail() -> None:
        raise ValueError('wrong')

    with pytest.raises(ValueError, match='wrong'):
        run_in_thread(fail)


def test_a_system_that_starts_no_threads_costs_no_descriptors():
    class Refused:
        def __init__(self, **_options) -> None:
            pass

        start = mock.Mock(side_effect=RuntimeError("can't start new thread"))

    with (
        mock.patch.object(concurrency, '_Thread', Refused),
        pytest.raises(RuntimeError, match='start new thread'),
    ):
        run_in_thread(lambda: None)
