# SPDX-License-Identifier: Apache-2.0
"""Fuzz what goes over the wire: batches, listings and their parameters."""

import json
from urllib.parse import quote

import orjson
from swift.common.swob import HTTPException, Request
from swift.common.utils import get_logger

from shardmw.backend.containers import BackendError, LogicalContainer
from shardmw.backend.requests import Backend
from shardmw.backend.shard_reads import ShardReads
from shardmw.core.batch import (
    MOST_READS,
    TOMBSTONES,
    decode_found,
    decode_reads,
    encode_found,
    encode_reads,
)
from shardmw.core.listing_rows import parse_rows, rows_of, to_json
from shardmw.core.paths import Path
from shardmw.proxy.listing.params import params_of
from shardmw.proxy.listing.request import ListingRequest
from test.fuzz.drawing import Draw
from test.fuzz.servers import (
    ACCOUNT,
    DEVICE,
    HIDDEN,
    LAYOUT,
    LONG,
    PART,
    PLAIN,
    SHARDED,
    SHARDS,
    servers,
)

INFO = {'status': 200, 'sysmeta': {}, 'storage_policy': '0'}
TARGET = LogicalContainer(Path('v1', ACCOUNT, SHARDED), INFO, LAYOUT)

PARAMETERS = [
    *('limit', 'marker', 'end_marker', 'prefix', 'delimiter', 'path'),
    *('limit', 'marker', 'prefix', 'delimiter', 'delimiter'),
    *('reverse', 'format', 'states', 'includes', 'allow_unordered', 'x'),
]
VALUES = [
    *('', 'a', 'b', '/', 'c', '1', '2', '3', '10000', '10001', 'true', 'on'),
    *('%2F', '%C3%A9', '%ED%9F%BF', '%F4%8F%BF%BF', '%F0%9F%98%80', '%00'),
    *('%22', '%5C', '%ff', '%', '+', '&', '=', '%C2%B2', '%D9%A3', 'xml'),
    *map(quote, ['a/', 'a/b', 'b/', 'é/', 'a//', f'{LONG}/', LONG]),
]

#: The longest query that a client can send, about.
LONGEST_QUERY = 8000

WRONG = [None, True, -1, 2**63, 10**20, 1.5, [], {}, '', '\0', '..', 'a/b']
BODIES = [b'', b'[]', b'[{"name": "a"}]', b'[{"subdir": "a"}]', b'[1]', b'{}']
HEADERS = ['X-Container-Object-Count', 'X-Container-Bytes-Used', 'x-other']
NUMBERS = ['0', '5', '-1', '1_0', '', 'nan', 'x', '9' * 5000, '1.0_1', '٣']


def query_of(draw: Draw) -> str:
    """Return a query string, often a valid one."""
    pairs = []
    for _ in range(draw.number(6)):
        is_text = draw.number(8) == 7
        value = draw.text(VALUES, 3) if is_text else draw.choice(VALUES)
        pairs.append(f'{draw.choice(PARAMETERS)}={value}')
    return '&'.join(pairs)


def reads(data: bytes) -> None:
    """Check that a server answers every batch, with what Swift would list."""
    draw = Draw(data)
    body = _batch(draw) if draw.chance() else draw.rest()
    try:
        asked = decode_reads(body)
    except ValueError:
        assert servers().report(body).status_int == 400
        return
    assert decode_reads(encode_reads(asked)) == asked
    answer = servers().report(body)
    assert answer.status_int == 200
    for read, found in zip(
        asked, decode_found(answer.body, len(asked)), strict=True
    ):
        if found is None or read.method == TOMBSTONES:
            continue
        swifts = servers().send(
            read.method,
            f'{read.account}/{read.container}',
            f'{read.query}&format=json',
            device=read.device,
            part=read.part,
        )
        assert swifts.is_success, swifts.status
        assert found.body == swifts.body
        for name, value in found.headers.items():
            assert swifts.headers[name] == value


def _batch(draw: Draw) -> bytes:
    reads = []
    count = draw.choice([1, 1, 2, 3, 4, 0])
    if draw.number(256) == 255:
        count = MOST_READS + draw.number(2)
    for _ in range(count):
        account, container = draw.choice(
            [
                (ACCOUNT, PLAIN),
                (HIDDEN, SHARDS[0]),
                (ACCOUNT, 'gone'),
                ('', ''),
            ]
        )
        method = draw.choice(['GET', 'HEAD', TOMBSTONES, 'PUT'])
        read = [DEVICE, PART, account, container, method, query_of(draw)]
        if draw.number(8) == 7:
            read[draw.number(len(read))] = draw.choice(WRONG)
        reads.append(read[: 7 - draw.choice([0, 1, 2])])
    return json.dumps(reads).encode()


def answers(data: bytes) -> None:
    """Check that a proxy reads an answer as it was sent, or refuses it."""
    draw = Draw(data)
    if draw.chance():
        _check_rows(draw.rest())
        return
    count = 1 + draw.number(2)
    body = _answer(draw, count) if draw.chance() else draw.rest()
    try:
        found = decode_found(body, count)
    except ValueError:
        return
    again = b''.join(map(encode_found, found))
    assert decode_found(again, count) == found
    for each in filter(None, found):
        try:
            answer = ShardReads._answer(0, 'GET', each)
        except ValueError:
            continue
        _check_rows(b''.join(answer.body) if answer else b'')


def _answer(draw: Draw, count: int) -> bytes:
    lines = []
    for _ in range(count):
        headers = {
            draw.choice([*HEADERS, 'X-Put-Timestamp']): (
                draw.choice(WRONG if draw.chance() else NUMBERS)
            )
            for _ in range(draw.number(4))
        }
        values = [headers, *WRONG] if draw.chance() else [headers]
        lines += [
            json.dumps(draw.choice(values)).encode(),
            draw.choice(BODIES),
        ]
    return b'\n'.join([*lines, b''])


def _check_rows(data: bytes) -> None:
    """Check that the names of a listing are found, whatever they are."""
    try:
        rows = parse_rows(data)
    except ValueError:
        return
    assert len(rows.names) == len(rows.texts)
    assert all(isinstance(name, str) for name in rows.names)
    try:
        decoded = orjson.loads(data or b'[]')
        is_swifts = json.dumps(decoded).encode() == data
    except ValueError:
        return
    if is_swifts and all(_is_row(row) for row in decoded):
        assert rows == rows_of(decoded)
        assert to_json(rows.texts) == data


def _is_row(row: object) -> bool:
    """Return True for a row as Swift writes it: flat, with one name."""
    return (
        isinstance(row, dict)
        and ('name' in row) != ('subdir' in row)
        and not any(isinstance(value, list | dict) for value in row.values())
    )


def params(data: bytes) -> None:
    """Check that a sharded container answers a query as a plain one does."""
    draw = Draw(data)
    query = query_of(draw) if draw.chance() else _quoted(draw.rest())
    query = f'{query[:LONGEST_QUERY]}&format=json'
    plain = servers().send('GET', f'{ACCOUNT}/{PLAIN}', query)
    environ = {'QUERY_STRING': query, 'swift.infocache': {}}
    req = Request.blank(f'/v1/{ACCOUNT}/{SHARDED}', environ)
    try:
        wanted = params_of(req)
    except (HTTPException, ValueError):
        assert not plain.is_success
        return
    if wanted.has_unlistable_prefix():
        assert plain.status_int == 500
        return
    listing = ListingRequest(
        Backend(servers(), get_logger({}), 4), req, TARGET
    )
    try:
        root = listing.read_root_and_shards(wanted)
        assert root.is_success == plain.is_success or plain.status_int == 500
        found = to_json(listing.rows(wanted).texts)
    except BackendError:
        assert plain.status_int == 500, plain.status
    else:
        assert plain.is_success, plain.status
        assert found == plain.body


def _quoted(raw: bytes) -> str:
    """Return a query string as a WSGI server may hand it over."""
    return ''.join(chr(byte) for byte in raw if byte > 0x20)
