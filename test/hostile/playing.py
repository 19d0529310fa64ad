# SPDX-License-Identifier: Apache-2.0
"""Players of requests on plain and sharded containers with equal contents.

The containers have the same name in two accounts. A sequence of requests
begins with new containers. It ends with the first difference, since the
contents may differ from then on.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shardmw_saio import Cluster
from swift.common.http import is_success
from swift.common.utils import TRUE_VALUES

from shardmw.proxy.listing.container_order import UNORDERED_HEADER
from shardmw.proxy.listings_filter import BUCKET_HEADERS
from test.functional.alike import masked
from test.functional.client import Answer
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARD_DEPTH_HEADER,
    logins,
    unique,
)
from test.hostile.making import NOBODY, OWNER, S3, STORED, STRANGER, Hostile
from test.hostile.wire import CLOSED, Sender, s3_authorization

#: The most requests that are played on the same containers.
SEQUENCE = 200

#: The responses to a client without rights, and to an upload over the quota.
DENIED = (401, 403)
EXCEEDED = 413

OBJECT_COUNT = 'x-container-object-count'

SHARD_COUNT = SHARD_COUNT_HEADER.lower()
SHARD_DEPTH = SHARD_DEPTH_HEADER.lower()
SYNC_TO = 'x-container-sync-to'

#: Once a container has this header, its listings may have another order.
UNORDERED = UNORDERED_HEADER.lower()

#: A proxy accepts longer targets than the servers that it forwards them to.
LONG_TARGET = 4000

#: The accounts of a player, by its number.
PLAIN, SHARDED = 'plain{}', 'shard{}'
MOST_PLAYERS = 8
KEY = 'testing'

#: A cluster for a :class:`Player` has these settings.
SETTINGS = {
    f'tempauth.user_{account.format(number)}_{user}': f'{KEY} {groups}'
    for account in (PLAIN, SHARDED)
    for number in range(MOST_PLAYERS)
    for user, groups in ((OWNER, '.admin'), (STRANGER, ''))
}
# Some requests make a storage server fail. The proxy must not error-limit it.
SETTINGS['proxy-server.error_suppression_interval'] = '0'

_TRANSACTION = re.compile(r'tx[0-9a-f]{21}-[0-9a-f]{10}')

#: Transactions, upload ids of S3, checksums of text with the account's name,
#: and times.
_VARYING = re.compile(
    rf'{_TRANSACTION.pattern}[\w-]*'
    r'|<UploadId>[^<]*|<StringToSign(Bytes)?>[^<]*|<CanonicalRequest[^<]*'
    r'|<SignatureProvided>[^<]*|[0-9a-f]{32}'
    r'|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z?|\d{10}\.\d{5}'
)
#: Headers that HeadBucket shows for sharded buckets only.
_OF_SHARDED_BUCKETS = tuple(map(str.lower, BUCKET_HEADERS))

#: The sums of an account, which container-updaters report.
_ACCOUNT_SUMS = re.compile(rb'"(count|bytes)": \d+|<(count|bytes)>\d+')
_VARYING_BYTES = re.compile(_VARYING.pattern.encode())


@dataclass(frozen=True)
class Difference:
    """A request with different responses from the two containers."""

    request: Hostile
    plain: Answer
    sharded: Answer

    def __str__(self) -> str:
        lines = [self.request.line()]
        for name, answer in (('plain', self.plain), ('sharded', self.sharded)):
            lines.append(
                f'  {name}: {answer.status} {answer.headers}'
                f' {answer.body[:300]!r}'
            )
        return '\n'.join(lines)


class Player:
    """A client that sends requests to a plain and to a sharded container.

    :param number: the number of the player, below MOST_PLAYERS
    :ivar statuses: how often each status came
    :ivar sent: how many requests were sent
    :ivar played: how many requests of the last sequence were played
    :ivar transactions: for each request, the transaction id of the sharded
                        container, and that of the plain container
    """

    def __init__(self, cluster: Cluster, number: int = 0) -> None:
        self._twins = [
            _Twin(cluster, PLAIN.format(number), {}),
            _Twin(cluster, SHARDED.format(number), {SHARD_COUNT_HEADER: '4'}),
        ]
        self.statuses: Counter[int] = Counter()
        self.sent = self.played = 0
        self.transactions: dict[str, str] = {}

    def play(self, requests: Iterable[Hostile]) -> Difference | None:
        """Play a sequence of requests; return the first difference."""
        container = unique('hostile')
        for twin in self._twins:
            twin.make(container)
        is_unordered = False
        # Quotas may use older counts: a denied GET or HEAD, or a page that
        # reads only some shards, updates only those of a plain container.
        is_in_doubt = False
        for self.played, request in enumerate(requests, 1):
            plain, sharded = (
                twin.send(request, container) for twin in self._twins
            )
            self.sent += 2
            self.statuses.update((plain.status, sharded.status))
            self.transactions[_transaction(sharded)] = _transaction(plain)
            answers = zip((plain, sharded), self._twins, strict=True)
            ours, theirs = (_masked(a, twin.account) for a, twin in answers)
            is_change = request.method in ('PUT', 'POST')
            is_unordered |= (
                is_change
                and is_success(sharded.status)
                and any(
                    name.lower() == UNORDERED
                    and value.strip().lower() in TRUE_VALUES
                    for name, value in request.headers
                )
            )
            if sharded.status in DENIED:
                is_in_doubt = True
            elif OBJECT_COUNT in sharded.headers:
                is_in_doubt = is_unordered
            if ours == theirs:
                continue
            if is_in_doubt and EXCEEDED in (plain.status, sharded.status):
                # The contents may differ from now on.
                return None
            has_order = is_unordered and request.method == 'GET'
            if has_order and all(
                map(is_success, (plain.status, sharded.status))
            ):
                return None
            is_error = sharded.status <= CLOSED or sharded.status >= 500
            if is_error or not is_documented(request):
                return Difference(request, plain, sharded)
            # The contents may differ from now on.
            return None
        return None


class _Twin:
    """An account with one of the two containers, and a connection."""

    def __init__(self, cluster: Cluster, account: str, headers: dict) -> None:
        self._url = cluster.proxy_urls[0]
        self.account = account
        self._headers = headers
        login = logins(cluster)
        self._owner = login(f'{account}:{OWNER}')
        self._tokens = {
            OWNER: self._owner.token,
            STRANGER: login(f'{account}:{STRANGER}').token,
            NOBODY: None,
        }
        self._sender = Sender(self._url)

    def make(self, container: str) -> None:
        """Create a container with some objects."""
        answer = self._owner.put(container, headers=self._headers)
        assert answer.status == 201, answer
        for name in STORED:
            answer = self._owner.put(container, name, b'0123456789')
            assert answer.status == 201, answer

    def send(self, request: Hostile, container: str) -> Answer:
        request = request.on(f'AUTH_{self.account}', container)
        if request.who == S3:
            user = f'{self.account}:{OWNER}'
            headers = s3_authorization(request, self._url, user, KEY)
        else:
            token = self._tokens[request.who]
            headers = {'X-Auth-Token': token} if token else {}
        return self._sender.send(request, headers)


def is_documented(request: Hostile) -> bool:
    """Return True if the documentation says that the answers may differ."""
    names = {name.lower() for name, _ in request.headers}
    return (
        # If a request has two errors, the responses may name different ones.
        bool(names & {SHARD_COUNT, SHARD_DEPTH, SYNC_TO})
        or len(request.target) > LONG_TARGET
        or 'allow_unordered' in request.target
    )


def failures_in_logs(
    folder: Path, transactions: Mapping[str, str]
) -> list[str]:
    """Return the errors in logs that only a sharded container caused.

    Some requests make Swift's own filters fail with a plain container, too.

    :param transactions: the transactions of :class:`Player`
    """
    found: dict[str, str] = {}
    logs = [*folder.glob('proxy*.log'), *folder.glob('container-*.log')]
    for log in sorted(logs):
        for line in log.read_text(errors='replace').splitlines():
            if 'Traceback' in line or 'request to shard failed' in line:
                named = _TRANSACTION.search(line)
                found[named[0] if named else line] = line
    plain = set(transactions.values())
    return [
        line
        for transaction, line in found.items()
        if transaction not in plain
        and transactions.get(transaction) not in found
    ]


def _transaction(answer: Answer) -> str:
    found = _TRANSACTION.search(answer.headers.get('x-trans-id', ''))
    return found[0] if found else ''


def _masked(answer: Answer, account: str) -> Answer:
    """Return a response without what differs between any two accounts."""
    answer = masked(answer, account)
    headers = {
        name: '*' if _is_of_account(name) else _VARYING.sub('*', value)
        for name, value in answer.headers.items()
    }
    if 'x-amz-request-id' in headers:
        for name in _OF_SHARDED_BUCKETS:
            headers.pop(name, None)
    body = _VARYING_BYTES.sub(b'*', answer.body)
    if 'x-account-object-count' in headers:
        body = _ACCOUNT_SUMS.sub(b'*', body)
        # The length depends on the digits of the sums.
        headers.pop('content-length', None)
    return Answer(answer.status, headers, body)


def _is_of_account(header: str) -> bool:
    return header.startswith('x-account-') and header.endswith(
        ('-object-count', '-bytes-used')
    )
