# SPDX-License-Identifier: Apache-2.0
"""The updates of containers that object servers have yet to deliver.

If a container server does not take an update, the object server stores it in
its folder ``async_pending``, and the object-updater delivers it later. If the
update is a deletion, and the object's row moves before it is delivered, the
row stays listed. Swift's ``swift-recon-cron`` counts the pending updates of
all containers on each node, and the filter ``recon`` of the object server
reports the last count.
"""

import json
import time

from swift.common import bufferedhttp
from swift.common.exceptions import ConnectionTimeout
from swift.common.http import HTTP_OK
from swift.common.storage_policy import POLICIES
from swift.common.utils import StreamingPile
from swift.proxy.server import Application

from shardmw.swift.concurrency import Timeout

PATH = '/recon/async'

#: A count older than this is stale. Usually, there is a new one every five
#: minutes.
STALE_SECONDS = 900

#: How many servers to ask at once, and how many to name.
CONCURRENCY = 32
NAMED = 3

NO_RECON = 'has no filter recon'
NO_COUNT = 'has no count of them: does swift-recon-cron run there?'


def backlog_text(app: Application) -> str:
    """Ask all object servers whether they have updates to deliver.

    :returns: a text that names the servers that have, or may have, pending
              updates; '' if there are none
    """
    questions = [(app, ip, port) for ip, port in _servers(app)]
    with StreamingPile(CONCURRENCY) as pile:
        answers = pile.asyncstarmap(_ask, questions)
        problems = sorted(each for each in answers if each)
    if not problems:
        return ''
    more = len(problems) - NAMED
    named = [*problems[:NAMED], *([f'{more} more'] if more > 0 else [])]
    return (
        'object servers may have updates of containers to deliver: '
        + '; '.join(named)
    )


def problem_of(status: int, body: bytes, now: float) -> str:
    """Return the problem that a server's answer shows, or ''. Pure.

    :param now: in seconds since 1970
    """
    if status != HTTP_OK:
        return f'{NO_RECON}: it answers {status}'
    try:
        values = json.loads(body)
        count = int(values['async_pending'])
        age = now - values['async_pending_last']
    except (LookupError, TypeError, ValueError):
        return NO_COUNT
    if age > STALE_SECONDS:
        return f'has counted them {age / 60:,.0f} min ago'
    return f'has {count:,}' if count else ''


def _servers(app: Application) -> set[tuple[str, int]]:
    """Return the addresses of the object servers of all policies."""
    return {
        (device['ip'], device['port'])
        for policy in POLICIES
        for device in app.get_object_ring(int(policy)).devs
        if device
    }


def _ask(app: Application, ip: str, port: int) -> str:
    """Return a server's address and problem, '' if it has no problem."""
    try:
        with ConnectionTimeout(app.conn_timeout):
            http = bufferedhttp.http_connect_raw(ip, port, 'GET', PATH)
        try:
            with Timeout(app.node_timeout):
                answer = http.getresponse()
                body = answer.read()
        finally:
            http.close()
        problem = problem_of(answer.status, body, time.time())
    except (Exception, Timeout):
        problem = 'does not answer'
    return f'{ip}:{port} {problem}' if problem else ''
