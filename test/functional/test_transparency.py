# SPDX-License-Identifier: Apache-2.0
"""A client can't tell a sharded container from a plain one.

The same random requests are played on a plain and on a sharded container, and
every answer must be the same: status, headers and body.

A run is short and always the same. For a long one with new requests, say how
many sequences of requests to play for each number of shards::

    SHARDMW_TRANSPARENCY_EXAMPLES=1000 pytest test/functional -k transparency
"""

import os
import string
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from test.functional.alike import masked, twin_names
from test.functional.client import Client
from test.functional.conftest import SHARD_COUNT_HEADER

EXAMPLES = os.environ.get('SHARDMW_TRANSPARENCY_EXAMPLES')


def settings_for(examples: int) -> settings:
    """Return settings for a short run or for a long one with new requests.

    :param examples: how many sequences of requests the short run plays
    """
    return settings(
        max_examples=int(EXAMPLES or examples),
        stateful_step_count=40,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


# Names that are each other's prefixes, subdirs and neighbours.
NEIGHBOURS = (
    'a', 'a/', 'a/b', 'a/b/', 'a/b/c', 'a/b/c/d', 'a/c', 'a//', 'a//b',
    'a0', 'a/b0', 'ab', 'ab/c', 'a.', 'a ', 'A', 'b', 'b/', 'b/b/', 'b//b//c',
    '/', '//', '/a', '//a', '0', '.', '..', '.a', '../a', 'a/.', 'a/..',
)  # fmt: skip
ODD_NAMES = (
    ' ', ' a', '%', '%2F', '%00', 'a%2Fb', '+', 'a+b', '&', '?', '#', ';',
    '=', '"', "'", '<', '>', '<a>&amp;', '\\', '~', '\x01', '\t', '\n', '\r',
    'a\nb', '\x1f', '\x7f', '\x80', '\x85', '\xa0', 'é', 'e\u0301', 'ß', 'ÿ',
    '☃', '☃/a', 'a/☃', 'a☃', '\u2028', '\ud7ff', '\ue000', '\ufeff', '\ufffd',
    '\uffff', '😀', '😀/a', 'a😀', '\U0010fffe', '\U0010ffff',
)  # fmt: skip
LONG_NAMES = (
    'x' * 1022, 'x' * 1023, 'x' * 1024, 'x' * 1025, 'a/' + 'x' * 1022,
    'é' * 511, 'é' * 512, 'é' * 513, '😀' * 256, 'a' + '☃' * 341,
    'x' * 1023 + '/', '/' * 1024,
)  # fmt: skip

alphabet = st.sampled_from([*string.ascii_lowercase[:3], *'0/-', '//', '☃'])
short_names = st.one_of(
    st.sampled_from(NEIGHBOURS),
    st.sampled_from(NEIGHBOURS),
    st.sampled_from(NEIGHBOURS),
    st.sampled_from(ODD_NAMES),
    st.lists(alphabet, min_size=1, max_size=6).map(''.join),
    st.text(min_size=1, max_size=8).filter(lambda text: '\x00' not in text),
)
# By number, to keep the text form of the strategy short.
long_names = st.sampled_from(range(len(LONG_NAMES))).map(
    lambda i: LONG_NAMES[i]
)
names = short_names | long_names
bodies = st.sampled_from([0, 1, 3, 100, 70_000]).map(bytes)

#: A prefix or delimiter that ends in one of these breaks a container server:
#: it has no next character. The proxy then avoids that server for a while.
WITHOUT_NEXT = ('%ED%9F%BF', '%F4%8F%BF%BF')

#: Quoted values for one parameter of a listing.
fragments = st.one_of(
    names.map(quote).filter(lambda text: not text.endswith(WITHOUT_NEXT)),
    st.sampled_from(
        ['', '/', '//', 'a/', 'a0', 'ab', '%ff', '%C3', '%00', '%00a', 'a%00']
    ),
    st.sampled_from(NEIGHBOURS).map(lambda name: quote(name[:-1])),
)
delimiters = st.one_of(
    st.sampled_from(['/', '/', '/', '//', 'b/', 'b', '/b', '-', '0', '']),
    st.sampled_from(['%E2%98%83', '%F0%9F%98%80', '%C3%A9', '%ff', '%00']),
    fragments,
)
limits = st.sampled_from(
    ['0', '1', '2', '3', '5', '10000', '10001', 'x', '', '-1', '1.5', '%D9%A3']
)


def some_of(options: dict[str, st.SearchStrategy], most: int):
    """Return a strategy of dicts with few keys, so most requests succeed."""
    pairs = [
        st.tuples(st.just(key), values) for key, values in options.items()
    ]
    return st.lists(st.one_of(pairs), max_size=most).map(dict)


listing_params = some_of(
    {
        'limit': limits,
        'marker': fragments,
        'end_marker': fragments,
        'prefix': fragments,
        'delimiter': delimiters,
        'reverse': st.sampled_from(['true', 'on', '1', 'false', 'x', '']),
        'format': st.sampled_from(
            ['json', 'json', 'xml', 'plain', 'JSON', 'other', '', '%ff']
        ),
    },
    most=5,
)
accepts = st.one_of(
    st.just({}),
    st.sampled_from(
        [
            'application/json', 'application/xml', 'text/xml', 'text/plain',
            '*/*', 'text/*;q=0.5, application/json', 'image/png', 'x', '',
        ]
    ).map(lambda accept: {'Accept': accept}),
)  # fmt: skip
listing_headers = st.one_of(
    st.just({}),
    st.sampled_from(
        [
            {'X-Newest': 'true'},
            {'Range': 'bytes=0-9'},
            {'If-None-Match': '*'},
            {'If-Match': 'x'},
            {'If-Modified-Since': 'Fri, 01 Jan 2100 00:00:00 GMT'},
            {'If-Unmodified-Since': 'Sat, 01 Jan 2000 00:00:00 GMT'},
            {'Origin': 'http://here.example.com'},
            {'Origin': 'http://elsewhere.example.com'},
        ]
    ),
)

upload_headers = some_of(
    {
        'Content-Type': st.sampled_from(
            [
                'text/plain', 'application/directory', 'a/b; charset=x',
                'text/plain; swift_bytes=9', '',
            ]
        ),
        'X-Object-Meta-Colour': st.sampled_from(['red', '', 'x' * 256]),
        'X-Object-Meta-Long': st.sampled_from(['x' * 257, 'x' * 300]),
        'X-Object-Meta-Snow': st.sampled_from(['\xe2\x98\x83', '\xff']),
        'X-Object-Sysmeta-Mine': st.just('x'),
        'Content-Encoding': st.just('gzip'),
        'Content-Disposition': st.just('attachment'),
        'Etag': st.sampled_from(
            ['d41d8cd98f00b204e9800998ecf8427e', 'wrong', '']
        ),
        'If-None-Match': st.sampled_from(['*', '*', 'x']),
        'X-Delete-At': st.sampled_from(['4000000000', '1', 'x']),
        'X-Delete-After': st.sampled_from(['100000', '0', '-1', 'x']),
        'X-Fresh-Metadata': st.just('true'),
    },
    most=2,
)  # fmt: skip
read_headers = some_of(
    {
        'Range': st.sampled_from(
            ['bytes=0-1', 'bytes=-2', 'bytes=50-', 'bytes=0-0,2-2', 'x']
        ),
        'If-Match': st.sampled_from(
            ['*', '"d41d8cd98f00b204e9800998ecf8427e"', 'x']
        ),
        'If-None-Match': st.sampled_from(
            ['*', '"d41d8cd98f00b204e9800998ecf8427e"', 'x']
        ),
        'If-Modified-Since': st.sampled_from(
            [
                'Sat, 01 Jan 2000 00:00:00 GMT',
                'Fri, 01 Jan 2100 00:00:00 GMT',
                'x',
            ]
        ),
        'If-Unmodified-Since': st.sampled_from(
            ['Sat, 01 Jan 2000 00:00:00 GMT', 'Fri, 01 Jan 2100 00:00:00 GMT']
        ),
        'X-Newest': st.just('true'),
        'Origin': st.just('http://here.example.com'),
    },
    most=2,
)
container_headers = some_of(
    {
        'X-Container-Meta-Colour': st.sampled_from(['red', '', 'x' * 257]),
        'X-Container-Meta-Snow': st.sampled_from(['\xe2\x98\x83', '\xff']),
        'X-Remove-Container-Meta-Colour': st.just('x'),
        'X-Container-Meta-Access-Control-Allow-Origin': st.sampled_from(
            ['http://here.example.com', '*', '']
        ),
        'X-Container-Meta-Access-Control-Expose-Headers': st.just('X-Mine'),
        'X-Container-Meta-Quota-Count': st.sampled_from(['x', '100000', '']),
        'X-Container-Meta-Web-Listings': st.sampled_from(['true', '']),
        'X-Container-Sysmeta-Shardmw-Layout': st.just('x'),
        'X-Container-Read': st.sampled_from(
            ['.r:*,.rlistings', 'other:user', '.x:y', '']
        ),
        'X-Container-Write': st.sampled_from(['other:user', '.r:*', '']),
        'X-Storage-Policy': st.sampled_from(
            ['Policy-0', 'Policy-1', 'no-such', '']
        ),
        'X-Versions-Enabled': st.just('x'),
        'X-Container-Sync-Key': st.sampled_from(['key', '']),
        'X-Container-Sync-To': st.sampled_from(
            ['http://127.0.0.1/v1/a/c', '//no/such/realm/c', '']
        ),
        'X-Remove-Container-Sync-To': st.just('x'),
        'Content-Type': st.just('text/plain'),
    },
    most=2,
)


#: Headers of quotas, and of what is used of them.
USED = {
    'X-Container-Meta-Quota-Count': 'x-container-object-count',
    'X-Container-Meta-Quota-Bytes': 'x-container-bytes-used',
}


class OnBoth(RuleBasedStateMachine):
    """Plays every request on a plain and on a sharded container.

    :param client: the client that sends the requests
    :param shards: the shard count of the sharded container
    :param longest_name: in characters; longer names are not sent
    """

    def __init__(
        self, client: Client, shards: int, longest_name: int = 2000
    ) -> None:
        super().__init__()
        self.client = client
        self.shards = shards
        self.longest_name = longest_name
        self.plain, self.sharded = twin_names()
        #: All names that were ever sent, whether they exist or not.
        self.sent: set[str] = set()

    def teardown(self) -> None:
        for container in (self.plain, self.sharded):
            for name in self.sent:
                self.client.delete(container, name)
            self.client.delete(container)

    def play(
        self,
        method: str,
        name: str | None = None,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        query: str = '',
        sharded_headers: dict[str, str] | None = None,
    ) -> None:
        """Send a request to both; their answers must be equal.

        ``{container}`` in a header's value stands for the container's name.
        """
        if name and len(name) > self.longest_name:
            return
        answers = []
        for container, more in (
            (self.plain, {}),
            (self.sharded, sharded_headers or {}),
        ):
            path = self.client.path(container, name)
            answer = self.client.raw(
                method,
                f'{path}?{query}' if query else path,
                headers={
                    key: value.replace('{container}', container)
                    for key, value in {**(headers or {}), **more}.items()
                },
                body=body,
            )
            answers.append(masked(answer, container))
        assert answers[1] == answers[0]

    # The container

    @initialize(first=st.lists(names, max_size=12))
    def create(self, first: list[str]) -> None:
        self.create_or_change({})
        for name in first:
            self.upload(name, b'', {})

    @rule(headers=container_headers)
    def create_or_change(self, headers: dict) -> None:
        count = {SHARD_COUNT_HEADER: str(self.shards)} if self.shards else {}
        self.play('PUT', headers=headers, sharded_headers=count)

    @rule(headers=container_headers)
    def change_container(self, headers: dict) -> None:
        self.play('POST', headers=headers)

    @rule()
    def delete_container(self) -> None:
        self.play('DELETE')

    @rule(headers=accepts | listing_headers)
    def head_container(self, headers: dict) -> None:
        self.play('HEAD', headers=headers)

    @rule(
        path=st.sampled_from([None, 'a', 'a/b']),
        origin=st.sampled_from(['http://here.example.com', 'http://x', None]),
        method=st.sampled_from(['GET', 'PUT', 'x', None]),
    )
    def ask_for_options(self, path, origin, method) -> None:
        headers = {
            'Origin': origin,
            'Access-Control-Request-Method': method,
        }
        given = {key: value for key, value in headers.items() if value}
        self.play('OPTIONS', path, headers=given)

    @rule(
        method=st.sampled_from(['PATCH', 'REPLICATE', 'UPDATE', 'COPY', 'x'])
    )
    def use_another_method(self, method: str) -> None:
        self.play(method)
        self.play(method, 'a')

    # Listings

    @rule()
    def list_all(self) -> None:
        self.play('GET', query='format=json')
        self.play('HEAD')

    @rule(
        params=listing_params,
        headers=listing_headers,
        accept=accepts,
        slash=st.booleans(),
    )
    def list_by_prefix(self, params, headers, accept, slash) -> None:
        self.play(
            'GET',
            '' if slash else None,
            {**headers, **accept},
            query=query_string(params),
        )

    @rule(limit=st.integers(1, 4), delimiter=delimiters, reverse=st.booleans())
    def list_page_by_page(self, limit, delimiter, reverse) -> None:
        marker = ''
        pages = 0
        while pages < 100:
            params = {
                'limit': limit,
                'delimiter': delimiter,
                'reverse': 'yes' if reverse else 'no',
                'marker': quote(marker),
            }
            self.play('GET', query=query_string(params) + '&format=json')
            page = self.client.get(
                self.plain, query=query_string(params) + '&format=json'
            )
            if page.status != 200 or not page.names():
                break
            marker = page.names()[-1]
            pages += 1

    # Swift's own listing by path overlooks an object that is named just past
    # a pseudo-directory (``a0`` next to ``a/b``), and backwards one that is
    # named like it (``a/``), unless they lie in different databases: so no
    # such name exists while a path is listed.

    @precondition(lambda self: not overlooked(self.sent, '0'))
    @rule(params=listing_params, path=fragments, accept=accepts)
    def list_by_path(self, params, path, accept) -> None:
        params = {**params, 'path': path, 'reverse': 'no'}
        self.play('GET', headers=accept, query=query_string(params))

    @precondition(lambda self: not overlooked(self.sent, '/'))
    @rule(params=listing_params, path=fragments, accept=accepts)
    def list_by_path_backwards(self, params, path, accept) -> None:
        params = {**params, 'path': path, 'reverse': 'yes'}
        self.play('GET', headers=accept, query=query_string(params))

    # Objects

    @rule(name=names, body=bodies, headers=upload_headers)
    def upload(self, name: str, body: bytes, headers: dict) -> None:
        self.sent.add(name)
        self.play('PUT', name, headers, body)

    @rule(name=names, other=short_names)
    def link(self, name: str, other: str) -> None:
        headers = {'X-Symlink-Target': '{container}/' + quote(other)}
        self.sent.add(name)
        self.play('PUT', name, headers, b'')

    @rule(name=names, prefix=st.sampled_from(NEIGHBOURS))
    def join(self, name: str, prefix: str) -> None:
        headers = {'X-Object-Manifest': '{container}/' + quote(prefix)}
        self.sent.add(name)
        self.play('PUT', name, headers, b'')

    @rule(
        name=names,
        method=st.sampled_from(['GET', 'HEAD']),
        headers=read_headers,
        query=st.sampled_from(
            ['', '', 'multipart-manifest=get', 'symlink=get', 'x=y']
        ),
    )
    def read(self, name, method, headers, query) -> None:
        self.play(method, name, headers, query=query)

    @rule(name=names, headers=upload_headers)
    def change(self, name: str, headers: dict) -> None:
        self.play('POST', name, headers)

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.play('DELETE', name)

    @rule(name=names, other=names, headers=upload_headers)
    def copy(self, name: str, other: str, headers: dict) -> None:
        if len(other) > self.longest_name:
            return
        destination = {'Destination': '{container}/' + quote(other)}
        self.sent.add(other)
        self.play('COPY', name, {**headers, **destination})

    @rule(name=st.sampled_from(['%00', 'a%00b', '%00a%00b', '%ff', 'a/%C3']))
    def use_a_name_that_swift_refuses(self, name: str) -> None:
        for method in ('PUT', 'GET', 'HEAD', 'POST', 'DELETE', 'COPY'):
            answers = [
                masked(
                    self.client.raw(
                        method,
                        f'{self.client.path(container)}/{name}',
                        headers={'Destination': f'{container}/x'},
                    ),
                    container,
                )
                for container in (self.plain, self.sharded)
            ]
            assert answers[1] == answers[0]


class WithQuotas(OnBoth):
    """Plays the same on containers whose quotas are nearly used up."""

    @rule(
        quota=st.sampled_from(list(USED)), room=st.sampled_from([-1, 0, 1, 2])
    )
    def leave_little_room(self, quota: str, room: int) -> None:
        used = self.client.head(self.plain).headers.get(USED[quota], '0')
        self.play('POST', headers={quota: str(max(0, int(used) + room))})

    @rule(name=short_names, look=st.sampled_from(['HEAD', 'GET']))
    def make_room(self, name: str, look: str) -> None:
        self.play('DELETE', name)
        self.play(look)

    @rule(name=short_names, look=st.sampled_from(['HEAD', 'GET']))
    def use_room(self, name: str, look: str) -> None:
        self.upload(name, b'x', {})
        self.play(look)


def query_string(params: dict[str, object]) -> str:
    return '&'.join(f'{name}={value}' for name, value in params.items())


def overlooked(names: set[str], end: str) -> set[str]:
    """Return the names that are another name's directory with this end."""
    directories = {
        name[:i]
        for name in names
        for i, letter in enumerate(name[:-1])
        if letter == '/'
    }
    return names & {directory + end for directory in directories}


@pytest.mark.parametrize(('shards', 'examples'), [(1, 4), (4, 9), (32, 4)])
def test_a_sharded_container_answers_like_a_plain_one(
    client, shards, examples
):
    run_state_machine_as_test(
        lambda: OnBoth(client, shards), settings=settings_for(examples)
    )


def test_quotas_that_are_nearly_used_up_are_enforced_alike(client):
    run_state_machine_as_test(
        lambda: WithQuotas(client, 4), settings=settings_for(8)
    )
