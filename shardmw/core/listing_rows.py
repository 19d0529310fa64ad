# SPDX-License-Identifier: Apache-2.0
"""The rows of a listing, in the JSON in which they came. Pure.

The filter needs the name of each row only. The rest of a row goes to the
client as the container server wrote it. So the filter cuts a listing into rows
without decoding it, which is faster, and the rows joined again are byte for
byte what one container server would have written.

Cutting is safe for JSON as Swift writes it (``json.dumps`` of flat dicts). In
it, a quote inside a string has a backslash before it. So ``"name": "`` and
``"subdir": "`` are always keys, and each row has exactly one of the two. The
text between two rows, ``}, {``, may also be part of a string. The parser
therefore compares the number of pieces with the number of names. If they
differ, or if the JSON is written in another way, it decodes the listing.
"""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

import orjson

EMPTY = b'[]'
START, BETWEEN, END = b'[{', b'}, {', b'}]'

LAST_MODIFIED = 'last_modified'

_BACKSLASH = b'\\'

#: The name of an object, in JSON without escapes.
_PLAIN_NAME = re.compile('"name": "([^"]*)"')

#: The name of an object or of a subdir, with its escapes.
_ESCAPED_NAME = re.compile(rb'"(?:name|subdir)": "([^"\\]*(?:\\.[^"\\]*)*)"')


class Rows(NamedTuple):
    """Rows in the order of a listing.

    :param names: the names of objects and subdirs
    :param texts: the JSON of each row, without its braces
    """

    names: list[str]
    texts: list[bytes]


def parse_rows(body: bytes) -> Rows:
    """Return the rows of a listing.

    :param body: a JSON array; empty for no rows
    :raises ValueError: if the body is no listing
    """
    found = _cut(body)
    if found is None:
        decoded = orjson.loads(body or EMPTY)
        if not isinstance(decoded, list):
            raise ValueError(f'no JSON array but {body[:40]!r}')
        found = rows_of(decoded)
    return found


def rows_of(decoded: Iterable[dict]) -> Rows:
    """Return the rows of a listing that is already decoded.

    :raises ValueError: if a row has no name
    """
    rows = Rows([], [])
    for row in decoded:
        name = isinstance(row, dict) and row.get('name', row.get('subdir'))
        if not isinstance(name, str):
            raise ValueError(f'no name in row {len(rows.names)}')
        rows.names.append(name)
        rows.texts.append(json.dumps(row)[1:-1].encode())
    return rows


def to_json(texts: list[bytes]) -> bytes:
    """Return the listing that consists of these rows."""
    if not texts:
        return EMPTY
    # The listing is large: it is written once and not copied.
    texts = texts.copy()
    texts[0] = START + texts[0]
    texts[-1] += END
    return BETWEEN.join(texts)


def newer(text: bytes, other: bytes) -> bytes:
    """Return the row with the later `last_modified` of two rows."""
    return other if _last_modified(other) > _last_modified(text) else text


def _last_modified(text: bytes) -> str:
    return orjson.loads(b'{%b}' % text).get(LAST_MODIFIED, '')


def _cut(body: bytes) -> Rows | None:
    """Return the rows of a listing, or None if it has to be decoded."""
    if not (body.startswith(START) and body.endswith(END)):
        return None
    texts = body.split(BETWEEN)
    texts[0] = texts[0][len(START) :]
    texts[-1] = texts[-1][: -len(END)]
    names = _names(body, len(texts))
    return Rows(names, texts) if len(names) == len(texts) else None


def _names(body: bytes, row_count: int) -> list[str]:
    """Return the names in a listing, without subdirs if that is faster.

    :param row_count: how many names to expect
    """
    if _BACKSLASH not in body:
        names = _PLAIN_NAME.findall(body.decode())
        if len(names) == row_count:
            return names
    escaped = _ESCAPED_NAME.findall(body)
    return orjson.loads(b'["%b"]' % b'","'.join(escaped)) if escaped else []
