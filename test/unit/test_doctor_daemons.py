# SPDX-License-Identifier: Apache-2.0
"""shardmw-admin doctor: what it concludes from the notes of the daemon."""

import dataclasses
import time

import pytest

from shardmw.admin.doctor.daemons import about_daemons
from shardmw.admin.doctor.findings import Finding
from shardmw.reshard.heartbeat import Heartbeat

BEAT = Heartbeat(0, 0, 'host', '1.0', 300, 0, 2, 3, 1, '', 0)
HOUR = 3600


def beat(process: int, processes: int = 0, ago: float = 0, **values):
    return dataclasses.replace(
        BEAT,
        process=process,
        processes=processes,
        noted=time.time() - ago,
        **values,
    )


def findings(*beats: Heartbeat, version: str | None = '1.0') -> list[str]:
    found = about_daemons(beats, version)
    return [str(each) for each in found if isinstance(each, Finding)]


def test_one_process_is_enough():
    assert findings(beat(0)) == []


def test_no_process_is_found():
    (line,) = findings()
    assert line.startswith('shardmw-resharder: no process has noted a pass: ')


def test_a_silent_process_is_found():
    (line,) = findings(beat(0, ago=HOUR))
    assert line.startswith(
        'shardmw-resharder 0: has noted its last pass 3600 s ago, on host, '
        'with an interval of 300 s: start it'
    )


@pytest.mark.parametrize(
    ('beats', 'missing'),
    [
        ([beat(0, 2), beat(1, 2)], []),
        ([beat(0, 2), beat(1, 2, ago=HOUR)], ['1']),
        ([beat(1, 3)], ['0', '2']),
        # Fewer processes divide the containers than before, and more.
        ([beat(0, 1), beat(1, 2, ago=HOUR)], []),
        ([beat(0, 3), beat(1, 2, ago=9), beat(2, 3)], ['1']),
        # One process takes all containers.
        ([beat(0), beat(1, 2, ago=HOUR)], []),
    ],
)
def test_each_of_several_processes_must_run(beats, missing):
    lines = findings(*beats)
    assert [line.split(':')[0].split()[-1] for line in lines] == missing


def test_a_pass_that_failed_is_found():
    (line,) = findings(beat(0, problem='KeyError'))
    assert line == (
        'shardmw-resharder 0 on host: its last pass failed: KeyError: '
        'look at its log'
    )


def test_another_version_is_found_if_that_of_the_proxies_is_known():
    (line,) = findings(beat(0), version='2.0')
    assert 'shardmw 1.0, most proxies have 2.0' in line
    assert findings(beat(0), version=None) == []


def test_what_it_did_last_is_a_note():
    (note,) = about_daemons([beat(0)], '1.0')
    assert str(note) == (
        'shardmw-resharder 0 on host: 0 s ago: 2 changes under way, 3 '
        'containers settled since it started, 1 containers with late rows '
        'wait'
    )


def test_a_clock_that_is_ahead_is_found():
    (line,) = findings(beat(0, ago=-HOUR))
    assert 'its clock is 3600 s ahead of that of this machine' in line
