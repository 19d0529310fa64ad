# SPDX-License-Identifier: Apache-2.0
"""Judge the notes that processes of ``shardmw-resharder`` leave."""

from collections.abc import Iterator, Sequence

from shardmw.admin.doctor.findings import Finding, Note
from shardmw.admin.doctor.proxies import CLOCK_SECONDS
from shardmw.reshard.heartbeat import Heartbeat

DAEMON = 'shardmw-resharder'

START = (
    'start it on one machine (systemctl start shardmw-resharder), and look at '
    'its log: nothing else moves late rows to where they are listed'
)


def about_daemons(
    beats: Sequence[Heartbeat], version: str | None
) -> Iterator[Finding | Note]:
    """Yield what is wrong with the daemon, and what it did last.

    How many processes divide the containers is in the newest note. A process
    that takes all containers stands in for all others.

    :param version: the version of shardmw that most proxies have; None if it
                    is not known
    """
    if not beats:
        yield Finding(DAEMON, 'no process has noted a pass', START)
        return
    alive = [each for each in beats if each.is_alive]
    if not any(each.processes == 0 for each in alive):
        yield from _about_missing(beats)
    for each in alive:
        yield from _about_alive(each, version)


def _about_missing(beats: Sequence[Heartbeat]) -> Iterator[Finding]:
    """Yield the processes that should run and do not."""
    newest = max(beats, key=lambda each: each.noted)
    by_number = {each.process: each for each in beats}
    for number in range(max(1, newest.processes)):
        each = by_number.get(number)
        if each is None or each.processes != newest.processes:
            problem = 'has not noted a pass'
        elif each.is_alive:
            continue
        else:
            problem = (
                f'has noted its last pass {each.age:.0f} s ago, on '
                f'{each.host}, with an interval of {each.interval:g} s'
            )
        yield Finding(f'{DAEMON} {number}', problem, START)


def _about_alive(
    each: Heartbeat, version: str | None
) -> Iterator[Finding | Note]:
    """Yield what is wrong with a process that runs, and what it did last."""
    where = f'{DAEMON} {each.process} on {each.host}'
    if each.problem:
        yield Finding(
            where, f'its last pass failed: {each.problem}', 'look at its log'
        )
    if each.ahead > CLOCK_SECONDS:
        yield Finding(
            where,
            f'its clock is {each.ahead:.0f} s ahead of that of this machine, '
            'so this check cannot tell whether it runs',
            'run an NTP daemon on both machines',
        )
    if version not in (None, each.version):
        yield Finding(
            where,
            f'shardmw {each.version}, most proxies have {version}',
            'install the same version on all machines, and restart it',
        )
    yield Note(
        where,
        f'{each.age:.0f} s ago: {each.changes} changes under way, '
        f'{each.settled} containers settled since it started, '
        f'{each.waiting} containers with late rows wait',
    )
