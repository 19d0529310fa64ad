# SPDX-License-Identifier: Apache-2.0
"""Sentences that are written in Markdown, as HTML. Pure."""

import re
from html import escape

_CODE = re.compile(r'`([^`]+)`')
_LINK = re.compile(r'\[([^\]]+)\]\((https?://[^)\s]+)\)')
_STRONG = re.compile(r'\*\*(?=\S)(.+?)(?<=\S)\*\*')
_EMPHASIS = re.compile(r'(?<![\w*])\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?![\w*])')


def inline(text: str) -> str:
    """A sentence with its emphasis, links and code."""
    parts = _CODE.split(text)
    # every other part is code, in which nothing else means anything
    return ''.join(
        f'<code>{escape(part)}</code>' if place % 2 else _marked(part)
        for place, part in enumerate(parts)
    )


def _marked(text: str) -> str:
    text = escape(text)
    text = _LINK.sub(r'<a href="\2">\1</a>', text)
    text = _STRONG.sub(r'<strong>\1</strong>', text)
    return _EMPHASIS.sub(r'<em>\1</em>', text)
