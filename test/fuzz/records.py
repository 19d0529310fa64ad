# SPDX-License-Identifier: Apache-2.0
"""Fuzz what names and places are computed from: records, names, ranges."""

import json
from functools import cache
from unittest import mock

from swift.common.storage_policy import POLICIES
from swift.common.swob import Request
from swift.common.utils import NamespaceBoundList
from swift.proxy.controllers.obj import BaseObjectController
from swift.proxy.server import Application

from shardmw.core.layout import (
    DEPTH_LIMIT,
    ID_DIGITS,
    SHARD_COUNT_LIMIT,
    Layout,
    LayoutError,
    parse_record,
)
from shardmw.core.paths import Place
from shardmw.core.placement import (
    NameRange,
    backing_base,
    backing_container,
    has_digest,
    parse_backing,
    shard_of,
    shards_of_range,
)
from shardmw.swift.infocache import INFOCACHE_ENV, get_cache_key, redirected
from shardmw.swift.proxy_app import headers_to_container_info, update_target
from test.fuzz.drawing import Draw

IDS = ['65a1b2c3d4e5f', '65a1b2c3d4e60', '0' * ID_DIGITS, '6' * ID_DIGITS]
COUNTS = [1, 2, 0, 8, SHARD_COUNT_LIMIT, SHARD_COUNT_LIMIT + 1, -1]
WRONG = [None, True, 2.0, float('nan'), '2', [], {}, '\ud800', 10**30, 'A' * 9]
PHASES = ['announced', 'moving', 'returning', 'done']
FIELDS = {
    'version': [2, 3, 1, 4],
    'id': [*IDS, '6' * 12, '٦' * ID_DIGITS, 'F' * ID_DIGITS],
    'shards': COUNTS,
    'changed': IDS,
    'former': COUNTS,
    'former_id': IDS,
    'phase': PHASES,
    'depth': [1, 2, DEPTH_LIMIT, DEPTH_LIMIT + 1, 0, -1],
    'former_depth': [1, 2, DEPTH_LIMIT, 0],
    'other': [1],
}
#: Which fields a record may have, by its length.
SETS = [3, 4, 7, 9, 10]

#: Ids from here on are from after the year 2105, and those that follow them
#: may have one more digit.
LATE = 'f'

CHARACTERS = ['a', 'b', '/', '0', '.', 'é', '\ud7ff', '\U0010ffff']
ACCOUNT, CONTAINER, NAME = 'AUTH_t', 'c', 'o'


def record(data: bytes) -> None:
    """Check that an accepted record, and the next ones, can be read back."""
    draw = Draw(data)
    text = _record_of(draw) if draw.chance() else _text(draw.rest())
    try:
        layout = parse_record(text)
    except LayoutError as err:
        str(err).encode()
        return
    assert json.loads(layout.to_record()) == json.loads(text)
    places = [layout.backing(i) for i in range(layout.backing_count)]
    assert len(set(places)) == len(places), 'two shards in one container'
    assert all(layout.has(*place) for place in places)
    if layout.serial < LATE:
        now = draw.choice([0, 1_800_000_000])
        for following in _following(layout, draw, now):
            assert parse_record(following.to_record()) == following
            assert following.serial > layout.serial


def _text(raw: bytes) -> str:
    return raw.decode('utf-8', 'surrogateescape')


def _record_of(draw: Draw) -> str:
    names = list(FIELDS)[: draw.choice(SETS)]
    left_out = draw.some(names, 2)
    return json.dumps(
        {
            name: draw.choice(WRONG if draw.number(16) == 15 else options)
            for name, options in FIELDS.items()
            if name in names and name not in left_out
        }
    )


def _following(layout: Layout, draw: Draw, now: float) -> list[Layout]:
    """Return the records that may follow a record."""
    steps = [
        lambda: layout.announced(draw.choice(COUNTS), now, draw.number(3)),
        lambda: layout.moving(now),
        lambda: layout.done(now),
        lambda: layout.cancelled(now),
    ]
    following = []
    for step in steps:
        try:
            following.append(step())
        except ValueError:
            continue
    return following


def ranges(data: bytes) -> None:
    """Check that each name is looked for in the shard that has its row."""
    draw = Draw(data)
    name = draw.text(CHARACTERS, 6)
    _check_names_of_range(draw, name)
    _check_backing_name(draw)
    _check_redirection(draw, name)
    _check_split(draw, name)


def _check_names_of_range(draw: Draw, name: str) -> None:
    names = NameRange(*(draw.text(CHARACTERS, 5) for _ in range(3)))
    shards, depth = draw.choice([1, 2, 7, 32]), draw.number(4)
    if (
        name.startswith(names.prefix)
        and name > names.after
        and (not names.before or name < names.before)
    ):
        found = shards_of_range(names, shards, depth)
        assert shard_of(name, shards, depth) in found


def _check_backing_name(draw: Draw) -> None:
    container = draw.text([*CHARACTERS, 'a' * 90, 'a' * 64, '5' * 64], 4)
    layout_id, shard = draw.choice(IDS), draw.number(SHARD_COUNT_LIMIT)
    backing = backing_container(container, layout_id, shard)
    expected = (backing_base(container), layout_id, shard)
    assert parse_backing(backing) == expected
    assert has_digest(container) == (backing_base(container) != container)
    parse_backing(draw.text([*CHARACTERS, '.', *IDS, '1', '٣', '01'], 7))


class _Ring:
    """A ring that has no servers."""

    def get_nodes(self, *_place: str) -> tuple[int, list]:
        return 0, []


class _NoMemcached:
    """A memcached client: Swift must find all in the info cache."""


@cache
def _proxy() -> Application:
    with mock.patch.object(POLICIES.default, 'object_ring', _Ring()):
        return Application({}, None, _Ring(), _Ring())


def _check_redirection(draw: Draw, name: str) -> None:
    """Check that Swift sends a row to the shard that the filter chose."""
    backing = Place(f'.shards_shardmw_{ACCOUNT}', draw.text(CHARACTERS, 4))
    info = headers_to_container_info({}, 200)
    env = _env(redirected({}, ACCOUNT, CONTAINER, info, backing))
    controller = BaseObjectController(_proxy(), ACCOUNT, CONTAINER, NAME)
    controller.object_name = name
    info = {**info, 'sharding_state': 'sharded'}
    _part, _nodes, place, *_ = controller._get_update_target(
        Request(env), info
    )
    assert place == str(backing)


def _check_split(draw: Draw, name: str) -> None:
    """Check the place of a row in a container that Swift has split."""
    bounds = [
        [draw.text(CHARACTERS, 3), draw.text([*CHARACTERS, 'a/b'], 3)]
        for _ in range(draw.number(4))
    ]
    key = get_cache_key(ACCOUNT, CONTAINER, shard='updating')
    if not bounds:
        return
    bounds.sort()
    bounds[0][0] = ''
    env = _env({key: NamespaceBoundList(bounds)})
    controller = BaseObjectController(_proxy(), ACCOUNT, CONTAINER, NAME)
    controller.object_name = name
    info = {'sharding_state': 'sharded', 'partition': 0, 'nodes': []}
    try:
        found = controller._get_update_target(Request(env), info)[2]
    except Exception:
        return
    place = update_target(_proxy(), env, Place(ACCOUNT, CONTAINER), name)
    assert str(place) == found


def _env(infocache: dict) -> dict:
    return {'swift.cache': _NoMemcached(), INFOCACHE_ENV: infocache}
