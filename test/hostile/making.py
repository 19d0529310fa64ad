# SPDX-License-Identifier: Apache-2.0
"""Random requests, most of them wrong in one or two places. Pure.

CONTAINER and ACCOUNT in a request are replaced by the names of the plain or of
the sharded container and of its account, which have the same length.
"""

import json
import random
from dataclasses import asdict, dataclass, replace
from urllib.parse import quote_from_bytes

CONTAINER = 'CONTAINER'
ACCOUNT = 'ACCOUNT'

#: How a request is authorized.
OWNER, STRANGER, NOBODY, S3 = 'owner', 'stranger', 'nobody', 's3'


@dataclass(frozen=True)
class Hostile:
    """A request. Each character of text, U+0000 to U+00FF, is a byte.

    :param target: the path and the query
    :param headers: pairs of name and value
    :param who: the user whose authorization is added
    :param sent: how many bytes of the body are sent before the client closes
                 its side of the connection; None to send all and not close it
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ''
    who: str = OWNER
    sent: int | None = None

    def line(self) -> str:
        """Return the request as a line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, line: str) -> 'Hostile':
        """Return the request from a line of JSON."""
        fields = json.loads(line)
        headers = tuple(map(tuple, fields.pop('headers')))
        return cls(headers=headers, **fields)

    def on(self, account: str, container: str) -> 'Hostile':
        """Return the request for one of the two containers."""

        def placed(text: str) -> str:
            return text.replace(CONTAINER, container).replace(ACCOUNT, account)

        headers = tuple((name, placed(text)) for name, text in self.headers)
        return replace(
            self,
            target=placed(self.target),
            headers=headers,
            body=placed(self.body),
        )


#: The objects of every container when a sequence of requests begins.
STORED = ('a', 'a/b', 'a/b/c', 'a/c', 'b', 'b//c', 'ä/☃', 'z', '0')

METHODS = ('GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'COPY', 'OPTIONS')
ODD_METHODS = (
    *('get', 'Put', 'PATCH', 'TRACE', 'CONNECT', 'LINK', 'PROPFIND', 'MOVE'),
    *(
        'REPLICATE',
        'SSYNC',
        'UPDATE',
        'PRIVATE',
        '__class__',
        '_GET',
        'x' * 99,
    ),
    *('GETorHEAD', 'base_request', 'PUT\t', 'GÉT', '*', 'handle'),
)

NAMES = (
    *STORED,
    *('', '/', '//', '.', '..', '../', '../../x', 'a/', 'a/../b', './a', ' '),
    *('%', '%zz', '\x00', '\x00a\x00', 'a\x00b', '\r\n', 'a\nb', '\x7f', '\\'),
    *('\udced\udca0\udc80', '\udcff\udcfe'),
    *('é', 'e\u0301', '\U0010ffff', '\ufffe', '\ufeff', '\u202e', '\u0085'),
    *(
        '?',
        '#',
        ';',
        '&',
        '=',
        '+',
        '"',
        "'",
        '<script>',
        '{}',
        '%s%n',
        '$(x)',
    ),
    *('x' * 1023, 'x' * 1024, 'x' * 1025, '☃' * 341, '☃' * 342, '/' * 1024),
    *(
        'a/' * 512,
        'x' * 5000,
        '.shards_shardmw_',
        'shardmw-layout',
        '.r:*',
        'null',
    ),
)
CONTAINERS = (
    *(
        '',
        '.',
        '..',
        '%00',
        '\x00',
        'x' * 255,
        'x' * 256,
        'x' * 257,
        'ä' * 129,
    ),
    *(f'{CONTAINER}.0', f'{CONTAINER}+segments', f'.{CONTAINER}', '\udcff'),
    *(f'\x00versions\x00{CONTAINER}', '.file_segment_store', 'a b', '☃'),
    *(f'{CONTAINER}.660d75d8db00a.0', f'{CONTAINER}/', f'/{CONTAINER}', '?'),
)
ACCOUNTS = (
    *(
        f'.shards_shardmw_{ACCOUNT}',
        '.shards_shardmw_',
        '.expiring_objects',
        'AUTH_',
        '.',
    ),
    *('AUTH_other', '', '\x00', 'x' * 300, f'{ACCOUNT}\x00', '☃', '\udcff'),
    *(
        f'%2Eshards_shardmw_{ACCOUNT}',
        f'.SHARDS_SHARDMW_{ACCOUNT}',
        f'{ACCOUNT}/',
        '..',
    ),
)
VERSIONS = ('v1', 'v1', 'v1', 'v1.0', 'v2', 'V1', '', '/v1', 'v1/', 'v1;x')
OTHER_PATHS = (
    *('/', '//', '/info', '/info?x', '/healthcheck', '/auth/v1.0', '*', ''),
    *('/crossdomain.xml', '/v1', '/v1/', 'http://127.0.0.1/v1/', '/endpoints'),
    *(f'//v1/{ACCOUNT}/{CONTAINER}', f'/v1//{ACCOUNT}/{CONTAINER}', '/%2F'),
    *(f'/v1/{ACCOUNT}//{CONTAINER}', f'/v1/{ACCOUNT}/./{CONTAINER}', '/..'),
    *(f'/v1/{ACCOUNT}%2F{CONTAINER}', f'/v1%2F{ACCOUNT}/{CONTAINER}', '/v1?'),
)

NUMBERS = (
    *(
        '0',
        '1',
        '2',
        '3',
        '7',
        '10000',
        '10001',
        '-1',
        '-0',
        '+1',
        '1.5',
        '1e3',
    ),
    *('', ' ', 'x', '0x10', '9' * 30, '٣', '1_000', ' 2 ', 'nan', 'inf'),
    *('2147483648', '18446744073709551616', '00000003', '1,2', 'True', '\x00'),
)
QUOTAS = ('0', '10000', '-1', '1.5', 'x', '', '9' * 30, 'nan', '\x00')
#: The stored objects, ten bytes each, nearly use up some of these quotas.
NARROW_QUOTAS = {
    'X-Container-Meta-Quota-Count': ('8', '9', '10', '11', '12', '', ''),
    'X-Container-Meta-Quota-Bytes': ('80', '90', '91', '100', '120', '', ''),
}
WORDS = (
    '',
    'true',
    'false',
    'yes',
    'on',
    '0',
    '1',
    'TRUE',
    'x',
    '\udcff',
    'None',
)
FORMATS = (
    'json',
    'xml',
    'plain',
    '',
    'JSON',
    'x',
    '\udcff',
    'json\x00',
    'txt',
)
TYPES = (
    *('application/json', 'text/plain', 'text/xml', 'application/xml', '*/*'),
    *(
        '',
        ';',
        '/',
        'text/html;q=x',
        'a/b;c="',
        'x' * 999,
        '\udcff',
        'text/plain;',
    ),
    *('application/json;q=0', 'text/*;q=0.3, application/json;q=2', ',,,'),
    *('application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'),
    *('application/directory', 'a/b;swift_bytes=9', 'a/b;swift_bytes=x'),
)
TIMES = (
    *('0', '1', '-1', 'x', '', '1e9', '9' * 12, '1400000000', '1400000000.5'),
    *(
        '4000000000',
        'inf',
        'nan',
        '1400000000.00000_0000000000000001',
        '\udcff',
    ),
    *('Thu, 01 Jan 1970 00:00:00 GMT', 'Sun, 99 Foo 2026', '٣'),
)
RANGES = (
    *(
        'bytes=0-1',
        'bytes=-1',
        'bytes=9-',
        'bytes=1-0',
        'bytes=',
        'bytes=0-0,2-2',
    ),
    *(
        'bytes=x',
        'bytes=-',
        'bytes=' + ','.join(['0-1'] * 99),
        'lines=0-1',
        '',
    ),
    *(
        'bytes=99999999999999999999-',
        'bytes=0--1',
        'bytes=0-1,',
        'bytes=\udcff',
    ),
)

# name of a parameter: values
LISTING_PARAMETERS = {
    'limit': NUMBERS,
    'marker': NAMES,
    'end_marker': NAMES,
    'prefix': NAMES,
    'delimiter': ('/', '//', 'b', '', '\x00', '\udcff', '☃', '/' * 300, 'a/'),
    'path': NAMES,
    'format': FORMATS,
    'reverse': WORDS,
    'allow_unordered': ('', 'x', 'false', '\udcff'),
    'states': ('listing', 'updating', '', 'x'),
    'includes': NAMES,
    'versions': WORDS,
    'version_marker': (*TIMES, 'null'),
    'symlinks': WORDS,
}
OBJECT_PARAMETERS = {
    'multipart-manifest': ('put', 'get', 'delete', '', 'x', 'PUT'),
    'symlink': ('get', '', 'x'),
    'version-id': (*TIMES, 'null'),
    'format': ('raw', *FORMATS),
    'part-number': NUMBERS,
    'heartbeat': WORDS,
    'async': WORDS,
    'temp_url_sig': ('', 'x', 'a' * 40, 'sha1:x', '\udcff'),
    'temp_url_expires': TIMES,
    'temp_url_prefix': NAMES,
    'inline': WORDS,
    'filename': NAMES,
}
ACCOUNT_PARAMETERS = {
    'bulk-delete': WORDS,
    'extract-archive': ('tar', 'tar.gz', 'tar.bz2', '', 'zip', '\udcff'),
}
S3_PARAMETERS = {
    'list-type': ('2', '1', '3', 'x', ''),
    'max-keys': NUMBERS,
    'marker': NAMES,
    'start-after': NAMES,
    'continuation-token': ('x', '', 'YQ==', 'YQ', '\udcff', 'AAAA'),
    'prefix': NAMES,
    'delimiter': ('/', '', 'b', '\x00'),
    'encoding-type': ('url', 'x', ''),
    'fetch-owner': WORDS,
    'uploads': ('',),
    'uploadId': ('', 'x', '\x00', 'x' * 2000, 'WA'),
    'partNumber': NUMBERS,
    'versioning': ('',),
    'versions': ('',),
    'versionId': (*TIMES, 'null'),
    'key-marker': NAMES,
    'upload-id-marker': ('x', '', '\x00'),
    'acl': ('',),
    'location': ('',),
    'delete': ('',),
    'logging': ('',),
    'tagging': ('',),
    'cors': ('',),
    'object-lock': ('',),
    'lifecycle': ('',),
    'policy': ('',),
}

PATHS_IN_HEADERS = (
    *(f'{CONTAINER}/{name}' for name in ('a', 'new', '', 'ä', '%00', '..')),
    *(
        f'/{CONTAINER}/a',
        f'{CONTAINER}',
        '',
        '/',
        'x',
        f'.shards_shardmw_{ACCOUNT}/x',
    ),
    *(
        f'{CONTAINER}%2Fa',
        f'/{CONTAINER}/%zz',
        '\udcff',
        f'{CONTAINER}/\udcff',
    ),
    *(
        f'{CONTAINER}?x',
        f'{CONTAINER}/a?x=y',
        'missing/a',
        '%00versions%00x/a',
    ),
)
OTHER_ACCOUNTS = (ACCOUNT, f'.shards_shardmw_{ACCOUNT}', 'x', '')
HEADERS = {
    'X-Container-Shard-Count': NUMBERS,
    'X-Container-Shard-Depth': NUMBERS,
    'X-Container-Unordered-Listings': WORDS,
    'X-Container-Write-Ratelimit': NUMBERS,
    'X-Backend-Storage-Policy-Index': NUMBERS,
    'X-Backend-Allow-Reserved-Names': WORDS,
    'X-Backend-Record-Type': ('shard', 'object', 'auto', 'x'),
    'X-Backend-Container-Path': PATHS_IN_HEADERS,
    'X-Backend-Quoted-Container-Path': PATHS_IN_HEADERS,
    'X-Container-Sysmeta-Shardmw-Layout': (
        '{}', 'x', '{"version": 2, "id": "a", "shards": 1}', '',
    ),
    'X-Container-Sysmeta-Sharding': WORDS,
    'X-Container-Meta-Quota-Count': QUOTAS,
    'X-Container-Meta-Quota-Bytes': QUOTAS,
    'X-Container-Meta-\udcff': NAMES,
    'X-Container-Meta-' + 'x' * 200: ('x',),
    'X-Container-Meta-A': ('x' * 300, 'x', '', '\udcff'),
    'X-Remove-Container-Meta-A': ('x',),
    'X-Container-Read': ('.r:*', '.r:*,.rlistings', 'x:y', '.r:', '\udcff'),
    'X-Container-Write': ('x:y', '.r:*', '', '*:*', ',,,'),
    'X-Container-Sync-To': ('http://127.0.0.1/v1/a/b', 'x', '//realm/c/a/b'),
    'X-Container-Sync-Key': ('x', ''),
    'X-Storage-Policy': ('', 'x', 'gold', 'policy-1', '0', '\udcff'),
    'X-Versions-Location': PATHS_IN_HEADERS,
    'X-History-Location': PATHS_IN_HEADERS,
    'X-Versions-Enabled': WORDS,
    'X-Copy-From': PATHS_IN_HEADERS,
    'X-Copy-From-Account': (*OTHER_ACCOUNTS, '\udcff'),
    'Destination': PATHS_IN_HEADERS,
    'Destination-Account': (*OTHER_ACCOUNTS, '/'),
    'X-Symlink-Target': PATHS_IN_HEADERS,
    'X-Symlink-Target-Account': OTHER_ACCOUNTS,
    'X-Symlink-Target-Etag': ('x', '', '"', 'a' * 32),
    'X-Object-Manifest': PATHS_IN_HEADERS,
    'X-Static-Large-Object': WORDS,
    'X-Object-Meta-A': ('x', '\udcff', 'x' * 5000, '', '\x01'),
    'X-Delete-At': TIMES,
    'X-Delete-After': NUMBERS,
    'X-Timestamp': TIMES,
    'X-If-Delete-At': TIMES,
    'X-Newest': WORDS,
    'X-Fresh-Metadata': WORDS,
    'X-Trans-Id-Extra': ('x' * 99, '\udcff', '../'),
    'Content-Type': TYPES,
    'Accept': TYPES,
    'Content-Encoding': ('gzip', '\udcff', 'x' * 300),
    'Content-Disposition': ('x', '\udcff', 'attachment; filename="\udcff"'),
    'Content-Length': NUMBERS,
    'Transfer-Encoding': ('chunked', 'gzip', 'chunked, chunked', 'x', ''),
    'Content-MD5': ('x', '', 'a' * 24),
    'ETag': ('x', '"x"', 'a' * 32, '', '\udcff'),
    'If-Match': ('*', 'x', '"', '', 'a' * 32),
    'If-None-Match': ('*', 'x', '"', '', '*,*'),
    'If-Modified-Since': TIMES,
    'If-Unmodified-Since': TIMES,
    'Range': RANGES,
    'Expect': ('100-continue', 'x', ''),
    'Origin': ('http://x', '\udcff', '', '*', 'null'),
    'Access-Control-Request-Method': ('GET', 'x', ''),
    'Host': ('', 'x', '127.0.0.1:1', '\udcff', 'a' * 300),
    'Referer': ('http://x/', '\udcff', ''),
    'X-Auth-Token': ('', 'x', '\udcff', 'AUTH_tk' + '0' * 32, 'x' * 5000),
    'X-Service-Token': ('x', ''),
    'X-Bulk-Delete': ('x',),
    'X-Detect-Content-Type': WORDS,
    'X-Web-Mode': WORDS,
    'X-Container-Meta-Web-Index': ('a', '\udcff', ''),
    'X-Container-Meta-Web-Listings': WORDS,
    'X-Object-Sysmeta-A': ('x',),
    'X-Account-Meta-A': ('x',),
    'X-Amz-Copy-Source': PATHS_IN_HEADERS,
    'X-Amz-Acl': ('public-read', 'x', '', 'private'),
    'X-Amz-Meta-A': ('x', '\udcff', ''),
    'X-Amz-Content-SHA256': ('x', 'UNSIGNED-PAYLOAD', '', 'a' * 64),
    'X-Amz-Date': (*TIMES, '20260101T000000Z'),
    'X-Amz-Decoded-Content-Length': NUMBERS,
    'X' * 300: ('x',),
    'A:B': ('x',),
    '\udcff': ('x',),
    ' ': ('x',),
}  # fmt: skip

BODIES = (
    *('', 'x', 'x' * 70_000, '\x00' * 100, '[]', '{}', '[', 'null', '[null]'),
    f'[{{"path": "/{CONTAINER}/a"}}]',
    f'[{{"path": "/{CONTAINER}/a", "range": "0-x"}}]',
    f'[{{"path": "{CONTAINER}", "size_bytes": -1, "etag": 5}}]',
    f'[{{"path": "/{CONTAINER}/\\ud800"}}, {{"data": "eA=="}}]',
    '[{"data": "!"}]',
    f'[{{"path": "/.shards_shardmw_{ACCOUNT}/x"}}]',
    '[' * 3000,
    f'/{CONTAINER}/a\n{CONTAINER}/missing\n\n%zz\n\udcff\n/{CONTAINER}\n',
    f'{CONTAINER}/{"x" * 3000}\n',
    '<Delete><Object><Key>a</Key></Object></Delete>',
    '<Delete><Object><Key></Key></Object></Delete>',
    '<Delete>' + '<Object><Key>ä</Key></Object>' * 99 + '</Delete>',
    '<!DOCTYPE x [<!ENTITY e "x">]><Delete>&e;</Delete>',
    '<CompleteMultipartUpload><Part><PartNumber>x</PartNumber></Part>'
    '</CompleteMultipartUpload>',
    '<CreateBucketConfiguration/>',
    '<VersioningConfiguration><Status>Enabled</Status>'
    '</VersioningConfiguration>',
    *('<', '<a>', '<a/>', '\ufeff<a/>', '5\r\nhello\r\n0\r\n\r\n'),
    *('ffffffffffffffffff\r\nx', '-1\r\n\r\n', '5;x=y\r\nhel', 'x\r\n'),
    '--x\r\nContent-Disposition: form-data; name="redirect"\r\n\r\nx\r\n--x--',
)

#: With these headers, a proxy may wait for more of the body than there is.
_COUNTED = ('content-length', 'transfer-encoding')


class Maker:
    """A generator of requests.

    :param seed: the same seed gives the same requests
    """

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def request(self) -> Hostile:
        """Return the next request."""
        pick = self._random.random
        if pick() < 0.2:
            return self._s3_request()
        if pick() < 0.1:
            return self._about_a_quota()
        kind = self._random.choice(['account', *['container', 'object'] * 4])
        method = self._method()
        target = self._path(kind) if pick() < 0.97 else self._one(OTHER_PATHS)
        parameters = {
            'account': {**LISTING_PARAMETERS, **ACCOUNT_PARAMETERS},
            'container': LISTING_PARAMETERS,
            'object': OBJECT_PARAMETERS,
        }[kind]
        who = OWNER
        if pick() < 0.1:
            who = self._one((STRANGER, NOBODY))
        request = Hostile(
            method, target + self._query(parameters), self._headers(), who=who
        )
        return self._with_body(request)

    def _about_a_quota(self) -> Hostile:
        """Return a correct request that sets, uses or shows a quota."""
        container = f'/v1/{ACCOUNT}/{CONTAINER}'
        an_object = f'{container}/{self._one(("a", "b", "x", "y", "z"))}'
        quota = self._one(list(NARROW_QUOTAS))
        headers = ((quota, self._one(NARROW_QUOTAS[quota])),)
        return self._one(
            (
                Hostile('POST', container, headers),
                Hostile('HEAD', container),
                Hostile('GET', container),
                Hostile('PUT', an_object, body='0123456789'),
                Hostile('DELETE', an_object),
            )
        )

    def _s3_request(self) -> Hostile:
        target = f'/{self._quoted(CONTAINER)}'
        if self._random.random() < 0.5:
            target += f'/{self._name()}'
        target += self._query(S3_PARAMETERS)
        request = Hostile(self._method(), target, self._headers(), who=S3)
        return self._with_body(request)

    def _one(self, values):
        return self._random.choice(values)

    def _method(self) -> str:
        odd = self._random.random() < 0.05
        return _wire(self._one(ODD_METHODS if odd else METHODS))

    def _path(self, kind: str) -> str:
        pick = self._random.random
        version = 'v1' if pick() < 0.98 else self._one(VERSIONS)
        account = ACCOUNT
        if pick() < 0.04:
            account = self._quoted(self._one(ACCOUNTS))
        path = f'/{version}/{account}'
        if kind == 'account':
            return path
        container = CONTAINER
        if pick() < 0.08:
            container = self._quoted(self._one(CONTAINERS))
        path += f'/{container}'
        return path if kind == 'container' else f'{path}/{self._name()}'

    def _name(self) -> str:
        usual = self._random.random() < 0.5
        return self._quoted(self._one(STORED if usual else NAMES))

    def _quoted(self, text: str) -> str:
        """Return text quoted for a URL, sometimes wrongly."""
        raw = _bytes(text)
        how = self._random.random()
        if how < 0.9:
            return quote_from_bytes(raw)
        if how < 0.94:
            return ''.join(f'%{byte:02x}' for byte in raw)
        if how < 0.97:
            return quote_from_bytes(quote_from_bytes(raw).encode())
        # Unquoted, without the characters that would end the request line.
        return raw.translate(None, b' \r\n\t\x00\x0b\x0c').decode('latin-1')

    def _query(self, parameters: dict) -> str:
        count = self._one((0, 0, 1, 1, 2, 3, 5))
        parts = []
        for _ in range(count):
            name = self._one(list(parameters))
            if self._random.random() < 0.03:
                name = self._quoted(self._one(NAMES))
            value = self._quoted(self._one(parameters.get(name, NAMES)))
            equals = '' if self._random.random() < 0.03 else '='
            parts.append(f'{name}{equals}{value}')
        joint = ';' if self._random.random() < 0.02 else '&'
        return '?' + joint.join(parts) if parts else ''

    def _headers(self) -> tuple[tuple[str, str], ...]:
        count = self._one((0, 0, 1, 1, 1, 2, 3))
        found = []
        for _ in range(count):
            name = self._one(list(HEADERS))
            value = _wire(self._one(HEADERS[name]))
            # These characters would end the header.
            value = value.translate(dict.fromkeys(b'\r\n\x00'))
            found.append((_wire(name), value))
        if self._random.random() < 0.01:
            found += [(f'X-Object-Meta-{i}', 'x') for i in range(100)]
        return tuple(found)

    def _with_body(self, request: Hostile) -> Hostile:
        """Return the request with a body, which may be cut short."""
        given = {name.lower() for name, _ in request.headers}
        body = ''
        if request.method in ('PUT', 'POST', 'PATCH', 'DELETE'):
            body = _wire(self._one(BODIES))
        sent = None
        if not given.isdisjoint(_COUNTED):
            sent = len(body)
        elif self._random.random() < 0.05:
            sent = self._random.randrange(len(body) + 1)
        return replace(request, body=body, sent=sent)


def _bytes(text: str) -> bytes:
    """Return text as UTF-8; each of U+DC80 to U+DCFF is a single byte."""
    return text.encode('utf-8', 'surrogateescape')


def _wire(text: str) -> str:
    """Return the bytes of text in UTF-8, each as a character."""
    return _bytes(text).decode('latin-1')
