# SPDX-License-Identifier: Apache-2.0
"""The rows of a listing, as the text that they came in.

Pure. Of a row only its name matters here; all else goes to the client as the
container server wrote it. So a listing's JSON is cut into rows, not decoded,
which is faster, and joined again it is byte for byte what one server would
have written.

Cutting is safe: what is cut at has a quote behind a brace, a comma or a colon,
where a string would have it behind a backslash. Text that is not as Swift
writes it (``json.dumps`` of dicts of numbers and strings) is decoded instead.
"""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

import orjson

EMPTY = '[]'
START, BETWEEN, END = '[{"', '}, {"', '}]'
NAME, SUBDIR = '"name": "', '"subdir": "'

#: What shards' names begin with, in JSON as Swift writes it.
HIDDEN = '\\u0000'

LAST_MODIFIED = 'last_modified'

#: The inside of a string.
_STRING = re.compile(r'(?:[^"\\]|\\.)*')


class Rows(NamedTuple):
    """Rows of a listing, in its order.

    :param names: what they are sorted by: of objects, or of subdirs
    :param texts: their JSON, without ``{"`` and ``}``
    """

    names: list[str]
    texts: list[str]


def parse_rows(body: bytes, are_hidden: bool = False) -> Rows:
    """The rows of a listing.

    :param body: a JSON array
    :param are_hidden: whether to take off the first character of each name
    """
    text = body.decode()
    try:
        return _cut(text, HIDDEN if are_hidden else '')
    except ValueError:
        return rows_of(orjson.loads(text or EMPTY), are_hidden)


def rows_of(decoded: Iterable[dict], are_hidden: bool = False) -> Rows:
    """The same of rows that are decoded already."""
    rows = Rows([], [])
    for row in decoded:
        key = 'name' if 'name' in row else 'subdir'
        name = row[key][1:] if are_hidden else row[key]
        text = json.dumps({**row, key: name})
        rows.names.append(name)
        rows.texts.append(text[len('{"') : -len('}')])
    return rows


def to_json(texts: list[str]) -> bytes:
    """The listing that has these rows."""
    if not texts:
        return EMPTY.encode()
    return f'{START}{BETWEEN.join(texts)}{END}'.encode()


def newer(text: str, other: str) -> str:
    """Of two rows of one name the one that was modified later."""
    return other if _last_modified(other) > _last_modified(text) else text


def _last_modified(text: str) -> str:
    return orjson.loads(f'{{"{text}}}').get(LAST_MODIFIED, '')


def _cut(text: str, hidden: str) -> Rows:
    """Cut a listing into rows.

    :param hidden: what to take off the start of each name
    :raises ValueError: if it is not as Swift writes it
    """
    if text == EMPTY:
        return Rows([], [])
    if not (text.startswith(START) and text.endswith(END)):
        raise ValueError('not a list of objects')
    # Large texts are gone through as few times as can be.
    if hidden:
        shown = text.replace(NAME + hidden, NAME)
        name_count = (len(text) - len(shown)) // len(hidden)
        text = shown
    else:
        name_count = text.count(NAME)
    texts = text[len(START) : -len(END)].split(BETWEEN)
    if name_count == len(texts) and '\\' not in text:
        names = [piece.partition(NAME)[2].partition('"')[0] for piece in texts]
        if all(names):  # none is a row's first word, which lacks its quote
            return Rows(names, texts)
    return _cut_with_care(text, texts, hidden)


def _cut_with_care(text: str, texts: list[str], hidden: str) -> Rows:
    """The same for rows that may be subdirs, or have escapes in their names.

    :param text: the listing, the names of objects shown
    """
    if text.count(SUBDIR + hidden) + text.count(NAME) != len(texts):
        raise ValueError('rows without names')
    subdir = SUBDIR[1:]
    if hidden:
        texts = [
            piece.replace(subdir + hidden, subdir, 1)
            if piece.startswith(subdir)
            else piece
            for piece in texts
        ]
    return Rows([_name_in(piece) for piece in texts], texts)


def _name_in(piece: str) -> str:
    """The name in a row's text, whatever it holds."""
    start = SUBDIR[1:] if piece.startswith(SUBDIR[1:]) else NAME
    rest = piece[piece.index(start) + len(start) :]
    if '\\' not in piece:
        return rest.partition('"')[0]
    return orjson.loads(f'"{_STRING.match(rest)[0]}"')
