# SPDX-License-Identifier: Apache-2.0
"""Find out the state of servers."""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from shardmw_saio.probes import answers
from shardmw_saio.processes import Process, is_paused
from shardmw_saio.topology import Server

RUNNING = 'running'
DOWN = 'down'
PAUSED = 'paused'
ORPHANED = 'orphaned'
NOT_ANSWERING = 'not answering'


class ServerStatus(NamedTuple):
    """The state of a server.

    :param server: the server
    :param state: ``running``, ``down``, ``paused``, ``not answering``, or
                  ``orphaned`` if only workers are left
    :param pid: the id of its main process, None without one
    """

    server: Server
    state: str
    pid: int | None


def statuses(
    servers: Collection[Server], found: Sequence[Process]
) -> list[ServerStatus]:
    """Return the states of servers, which are asked concurrently."""
    with ThreadPoolExecutor(len(servers)) as pool:
        return list(pool.map(lambda each: status(each, found), servers))


def status(server: Server, found: Sequence[Process]) -> ServerStatus:
    """Return the state of a server.

    :param server: the server
    :param found: the processes of its cluster
    """
    own = [each for each in found if each.server == server.name]
    mains = [each for each in own if each.is_main]
    if not own:
        return ServerStatus(server, DOWN, None)
    if not mains:
        return ServerStatus(server, ORPHANED, None)
    pid = mains[0].pid
    if any(map(is_paused, own)):
        return ServerStatus(server, PAUSED, pid)
    if not answers(server):
        return ServerStatus(server, NOT_ANSWERING, pid)
    return ServerStatus(server, RUNNING, pid)
