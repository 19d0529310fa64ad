# SPDX-License-Identifier: Apache-2.0
"""Merges in the background, in simulated time."""

import time

import pytest

from shardmw.container_server import background_merges
from shardmw.container_server.background_merges import (
    DELAY_SECONDS,
    MOST_LATE_SECONDS,
    MOST_REST_SECONDS,
    BackgroundMerges,
)
from shardmw.swift.concurrency import sleep
from test.unit.simtime import simulated_time

#: How long a merge takes, and the time between the starts of two merges, in
#: seconds.
WORK_SECONDS = 10
NEXT_SECONDS = WORK_SECONDS + MOST_REST_SECONDS


class Merged:
    """A merge that does nothing for a while.

    :ivar at: the container and the time of each merge
    """

    def __init__(self) -> None:
        self.at: list[tuple[str, int]] = []

    def __call__(self, container: str) -> None:
        self.at.append((container, round(time.monotonic())))
        sleep(WORK_SECONDS)


@pytest.fixture(autouse=True)
def hub():
    with simulated_time('merges') as hub:
        yield hub


@pytest.fixture
def merged():
    return Merged()


@pytest.fixture
def merges(merged):
    return BackgroundMerges(merged)


def test_a_container_is_merged_some_seconds_after_it_was_added(merges, merged):
    began = time.monotonic()
    merges.add('a')
    sleep(DELAY_SECONDS - 0.5)
    assert merged.at == []
    sleep(1)
    assert merged.at == [('a', round(began + DELAY_SECONDS))]


def test_a_container_that_is_added_again_and_again_is_merged_in_time(
    merges, merged
):
    first = time.monotonic() + DELAY_SECONDS
    second = first + NEXT_SECONDS
    merges.add('a')
    for _again in range(DELAY_SECONDS + NEXT_SECONDS):
        merges.add('b')
        sleep(1)
    sleep(1)
    assert merged.at == [('a', round(first)), ('b', round(second))]


def test_containers_are_merged_in_their_order_with_rests(merges, merged):
    began = time.monotonic()
    for container in 'abcb':
        merges.add(container)
    sleep(100)
    first = began + DELAY_SECONDS
    assert merged.at == [
        ('a', round(first)),
        ('b', round(first + NEXT_SECONDS)),
        ('c', round(first + 2 * NEXT_SECONDS)),
    ]


def test_a_container_that_is_added_while_it_is_merged_is_merged_again(
    merges, merged
):
    merges.add('a')
    sleep(DELAY_SECONDS + 1)
    merges.add('a')
    sleep(100)
    assert [container for container, _at in merged.at] == ['a', 'a']


def test_a_container_that_is_added_after_all_were_merged_is_merged(
    merges, merged
):
    for _again in range(2):
        merges.add('a')
        sleep(100)
    assert len(merged.at) == 2


def test_there_is_room_for_some_containers(merges, monkeypatch):
    monkeypatch.setattr(background_merges, 'MOST_CONTAINERS', 2)
    merges.add('a')
    assert merges.has_room('b')
    merges.add('b')
    assert [merges.has_room(each) for each in 'abc'] == [True, True, False]
    sleep(100)
    assert merges.has_room('c')


def test_there_is_no_room_for_containers_that_would_be_merged_late(merges):
    for container in 'ab':
        assert merges.has_room(container)
        merges.add(container)
    sleep(DELAY_SECONDS + MOST_LATE_SECONDS - 0.1)
    assert all(map(merges.has_room, 'bc'))
    sleep(0.2)
    assert not any(map(merges.has_room, 'bc'))
    sleep(100)
    assert all(map(merges.has_room, 'bc'))
