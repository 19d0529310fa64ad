# SPDX-License-Identifier: Apache-2.0
"""Fuzz the merge of pages, with servers that answer well or anything."""

from shardmw.core.listing_page import MOST_ROWS, Ask, Page
from shardmw.core.listing_rows import Rows
from shardmw.core.placement import shard_of
from shardmw.core.unordered_page import Strays, UnorderedPage
from test.fuzz.drawing import Draw

#: The most rounds of queries that a page of a few rows can need, or a listing
#: of a few pages.
ROUNDS = 200


def pages(data: bytes) -> None:
    """Check that a page ends, and has the right rows if servers are right."""
    draw = Draw(data)
    [_ordered, _of_liars, _unordered][draw.number(3)](draw)


def _ordered(draw: Draw) -> None:
    sources = [_names(draw) for _ in range(draw.number(9))]
    first, reverse = ['', *_names(draw)][-1], draw.chance()
    page = Page(range(len(sources)), draw.number(60), reverse)
    most = 1 + draw.number(60)

    def after(name: str, marker: str) -> bool:
        return not marker or (name < marker if reverse else name > marker)

    def answer(ask: Ask) -> Rows:
        marker = first if ask.marker is None else ask.marker
        names = [
            name
            for name in sorted(sources[ask.source], reverse=reverse)
            if after(name, marker)
            and (ask.end is None or not after(name, ask.end))
            and name != ask.end
        ]
        return _rows(names[: ask.limit])

    is_shortened = draw.chance()
    for _ in range(ROUNDS):
        asks = page.asks()
        if not asks:
            break
        for ask in asks:
            if is_shortened:
                ask = page.shortened(ask)
            ask = ask._replace(limit=min(most, ask.limit))
            page.add(ask, answer(ask))
    else:
        raise AssertionError('the page does not end')
    names = set().union(*sources)
    names = sorted((n for n in names if after(n, first)), reverse=reverse)
    assert page.rows().names == names[: page.limit]


def _of_liars(draw: Draw) -> None:
    """Check a page of servers that repeat a few answers, whatever is asked."""
    count = 1 + draw.number(3)
    page = Page(range(count), draw.number(60), draw.chance())
    lies = [_names(draw) for _ in range(1 + draw.number(6))]
    for number in range(ROUNDS):
        asks = page.asks()
        if not asks:
            break
        for ask in asks:
            ask = page.shortened(ask)
            try:
                page.add(ask, _rows(lies[number % len(lies)]))
            except ValueError:
                return
    else:
        raise AssertionError('the page does not end')
    assert len(page.rows().names) <= page.limit < MOST_ROWS


def _unordered(draw: Draw) -> None:
    """Check that the pages of an unordered listing have each name once."""
    shards = 1 + draw.number(4)
    names, strays = set(_names(draw)), set(_names(draw))
    limit, expected = 1 + draw.number(60), draw.number(60)

    def of(name: str) -> int:
        return shard_of(name, shards)

    listed: list[str] = []
    for _ in range(ROUNDS):
        marker = listed[-1] if listed else ''
        first = of(marker) if marker else 0
        kept = Strays(first, marker, limit, of)
        kept.add(_rows(sorted(strays)))
        page = UnorderedPage(shards, expected, kept)
        while asks := page.asks():
            for ask in asks:
                after = marker if ask.marker is None else ask.marker
                found = [n for n in names if of(n) == ask.source]
                found = sorted(n for n in found if n > after)
                page.add(ask, _rows(found[: ask.limit]))
        if not page.rows().names:
            break
        listed += page.rows().names
    assert sorted(listed) == sorted(names | strays)


def _names(draw: Draw) -> list[str]:
    """Return names at equal distances: a few bytes make many of them."""
    start, step = draw.number(256), 1 + draw.number(16)
    return [f'{start + step * i:03}' for i in range(draw.number(50))]


def _rows(names: list[str]) -> Rows:
    return Rows(names, [b'"name": "%d"' % i for i in range(len(names))])
