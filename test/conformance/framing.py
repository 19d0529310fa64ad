# SPDX-License-Identifier: Apache-2.0
"""The end of a request, found by its headers and chunk sizes. Pure.

See https://www.rfc-editor.org/rfc/rfc9112#section-6.
"""

import re

LINE_END = b'\r\n'
HEAD_END = b'\r\n\r\n'

_CHUNK_HEAD = re.compile(rb'([0-9A-Fa-f]+)[ \t]*(;.*)?\r\n')


def body_length(head: bytes) -> int | None:
    """Return the length of the body that follows a request's head.

    :returns: None for a chunked body
    :raises ValueError: if the length cannot be determined
    """
    if not head.endswith(HEAD_END):
        raise ValueError('a head that does not end')
    lengths = _values(head, b'content-length')
    codings = _values(head, b'transfer-encoding')
    if codings == {b'chunked'}:
        return None
    if codings or len(lengths) > 1:
        raise ValueError('a body of a length of its own')
    length = lengths.pop() if lengths else b'0'
    if not length.isdigit():
        raise ValueError('a length that is no number')
    return int(length)


def chunk_length(head: bytes) -> int:
    """Return the length of a chunk by its first line; 0 for the last chunk.

    :raises ValueError: if the length cannot be determined
    """
    match = _CHUNK_HEAD.fullmatch(head)
    if match is None:
        raise ValueError('a chunk without a length')
    return int(match[1], 16)


def _values(head: bytes, wanted: bytes) -> set[bytes]:
    """Return the distinct values of a header, which may be repeated."""
    _, *lines = head.split(LINE_END)
    headers = [line.partition(b':') for line in lines]
    return {
        value.strip().lower()
        for name, _, value in headers
        if name.lower() == wanted
    }
