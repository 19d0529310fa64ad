# SPDX-License-Identifier: Apache-2.0
"""What Swift keeps beside an object's data, and whether an inode holds it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from shardmw.bench.account import SHARD_COUNT_HEADER, Account
from shardmw.bench.asking import ask
from shardmw.bench.auth import V1Auth
from shardmw.bench.datafiles import attribute_bytes
from shardmw.bench.errors import BenchError
from shardmw.bench.kinds import PLAIN, Kind, sharded
from shardmw.bench.options import SHARD_COUNT, counts_to
from shardmw.bench.parameters import Parameters as _Parameters
from shardmw.bench.parameters import option
from shardmw.bench.plot import LINE, REFERENCE, Axis, Plot, Series
from shardmw.bench.site import Site
from shardmw.bench.stage import Stage
from shardmw.bench.tables import Table, number
from shardmw.bench.xfs import INODES, LEAF_BYTES, TOO_LONG, Inode
from shardmw.placement import (
    backing_container,
    backing_object,
    lies_in_root,
    shard_of,
)
from shardmw.saio import ClusterOptions

NAME = 'xattr-size'
SUMMARY = "Bytes of an object's metadata, plain and sharded, by XFS inodes."
PUBLISHED = ''

METADATA = 'user.swift.metadata'

#: As long as those of Keystone's projects: AUTH_ and 32 digits.
_ACCOUNT = f'AUTH_{"0123456789abcdef" * 2}'
_ADMIN = 'admin:admin'

# What Swift takes by default.
_LONGEST_CONTAINER = 256
_LONGEST_NAME = 1024

#: What a client may add to an object, by what the tables call it.
_CLIENTS_METADATA: dict[str, dict[str, str]] = {
    'none': {},
    'mtime': {'X-Object-Meta-Mtime': '1763721600.123456'},
    'mtime, owner, sha256': {
        'X-Object-Meta-Mtime': '1763721600.123456',
        'X-Object-Meta-Owner': 'backup-operator',
        'X-Object-Meta-Sha256': '0123456789abcdef' * 4,
    },
}

#: The default of mkfs.xfs.
_COMMON = Inode(512)


@dataclass(frozen=True)
class Parameters(_Parameters):
    """What it is made with."""

    container_lengths: tuple[int, ...] = option(
        (8, 32),
        counts_to(_LONGEST_CONTAINER),
        'Characters of the names of containers.',
    )
    name_lengths: tuple[int, ...] = option(
        (8, 32, 128),
        counts_to(_LONGEST_NAME),
        'Characters of names of objects.',
    )
    shards: int = option(32, SHARD_COUNT, 'Of the sharded containers.')

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The containers that are compared."""
        return PLAIN, sharded(self.shards)


def measure(stage: Stage, keep) -> dict[str, object]:
    """Upload objects, and look at their files."""
    parameters = stage.parameters
    figures: dict[str, object] = {'runs': [], 'objects': []}
    with stage.site(ClusterOptions()) as site:
        account = _account(site)
        for length in parameters.container_lengths:
            for kind in parameters.kinds:
                # of one length, and for each kind another one
                container = f'{kind.shards or 0}'.rjust(length, 'c')[-length:]
                shards = kind.shards
                headers = {SHARD_COUNT_HEADER: f'{shards}'} if shards else {}
                account.put(container, headers)
                for each in _upload(
                    parameters, site, account, container, kind
                ):
                    figures['objects'].append(
                        {**each, 'container_length': length}
                    )
                keep(figures)
        stage.screen.line(f'{len(figures["objects"])} objects were looked at')
    return figures


def tables(parameters: Parameters, figures: Mapping) -> list[Table]:
    """The bytes of both, and which inodes hold them."""
    return [_sizes(parameters, figures['objects']), _rooms()]


def plots(parameters: Parameters, figures: Mapping) -> list[Plot]:
    """Bytes by the length of the name, beside what inodes take."""
    objects = figures['objects']
    if not objects:
        return []
    length = parameters.container_lengths[0]
    series = [
        Series(f'{kind.label}; client: {metadata}', *points, LINE)
        for metadata in _CLIENTS_METADATA
        for kind in parameters.kinds
        if (points := _points(objects, length, kind, metadata))
    ]
    lengths = [each['name_length'] for each in objects]
    ends = (min(lengths), max(lengths))
    others = _others(objects[0]['attributes'])
    for text, most in (
        ('longest in any inode', TOO_LONG - 1),
        (
            f'longest in {_COMMON.label} inodes',
            _COMMON.longest(METADATA, others),
        ),
    ):
        series.append(Series(text, ends, (most, most), REFERENCE))
    return [
        Plot(
            f'{NAME}-bytes',
            f'Bytes of {METADATA}',
            Axis("length of the object's name (characters)"),
            Axis(f'{METADATA} (bytes)'),
            series,
            f'Of containers whose names have {length} characters; the dashed '
            "lines are what XFS' format takes.",
        )
    ]


def metadata_bytes(attributes: Mapping[str, int]) -> int:
    """Bytes of the metadata, in however many attributes it is. Pure."""
    return sum(
        length
        for name, length in attributes.items()
        if name.removeprefix(METADATA).isdecimal() or name == METADATA
    )


def fit(plain: bool, many: bool) -> str:
    """Which of two an inode holds, as a cell. Pure."""
    return {
        (True, True): 'both',
        (True, False): 'plain only',
        (False, True): 'sharded only',
        (False, False): 'neither',
    }[plain, many]


def _account(site: Site) -> Account:
    """An account with a name as long as real ones."""
    key = site.cluster.users[_ADMIN]
    token = V1Auth(site.cluster.auth_url, _ADMIN, key).login().token
    return Account(site.urls, f'/v1/{_ACCOUNT}', token)


def _upload(
    parameters: Parameters,
    site: Site,
    account: Account,
    container: str,
    kind: Kind,
) -> list[dict[str, object]]:
    """Upload an object of each name and metadata, and look at it."""
    found = []
    for length in parameters.name_lengths:
        for metadata, headers in _CLIENTS_METADATA.items():
            name = 'o' * length
            _put(account, container, name, headers)
            attributes = attribute_bytes(
                site.cluster, account.name, *_place(container, name, kind)
            )
            found.append(
                {
                    'kind': kind.as_json(),
                    'name_length': length,
                    'metadata': metadata,
                    'attributes': attributes,
                }
            )
    return found


def _put(
    account: Account, container: str, name: str, headers: Mapping[str, str]
) -> None:
    url = account.proxy_urls[0] + account.container_path(container)
    sent = {
        'X-Auth-Token': account.token,
        'Content-Type': 'application/octet-stream',
        'Content-Length': '0',
        **headers,
    }
    answer = ask('PUT', f'{url}/{quote(name)}', sent)
    if not answer.is_success:
        raise BenchError(f'PUT {url}/{name} was answered {answer.status}')


def _place(container: str, name: str, kind: Kind) -> tuple[str, str]:
    """The container that it lies in, and its name there."""
    if kind.shards is None or lies_in_root(container, name):
        return container, name
    shard = shard_of(name, kind.shards)
    return (
        backing_container(container, shard),
        backing_object(container, name),
    )


def _sizes(parameters: Parameters, objects: Sequence[Mapping]) -> Table:
    pairs: dict[tuple, dict[Kind, Mapping[str, int]]] = {}
    for each in objects:
        key = tuple(
            each[name]
            for name in ('metadata', 'container_length', 'name_length')
        )
        kind = Kind.from_json(each['kind'])
        pairs.setdefault(key, {})[kind] = each['attributes']
    one, many = parameters.kinds
    rows = [
        _size_row(key, by_kind[one], by_kind[many])
        for key, by_kind in sorted(pairs.items(), key=lambda pair: pair[0][1:])
        if len(by_kind) == len(parameters.kinds)
    ]
    return Table(
        f'Bytes of {METADATA}, and the XFS inodes that hold them',
        (
            *("client's metadata", "container's name", "object's name"),
            *('plain', many.label, 'more'),
            *(inode.label for inode in INODES),
        ),
        rows,
        (
            f'Lengths of names in characters; the account has {len(_ACCOUNT)}'
            '. Besides what a client adds, it is the name, the type, the '
            'length, the ETag and the timestamp that Swift keeps. Inodes '
            "hold what XFS' format has room for, the checksum that Swift "
            'keeps, too, and nothing else.',
            'What an inode does not hold takes a block of its own, and '
            'another read: one block of 4,096 bytes, if it has less than '
            f'{number(LEAF_BYTES)} bytes.',
        ),
    )


def _size_row(
    key: tuple[str, int, int],
    plain: Mapping[str, int],
    many: Mapping[str, int],
) -> tuple[str, ...]:
    metadata, container_length, name_length = key
    one, other = metadata_bytes(plain), metadata_bytes(many)
    return (
        metadata,
        number(container_length),
        number(name_length),
        number(one),
        number(other),
        f'{other - one:+d}',
        *(fit(inode.holds(plain), inode.holds(many)) for inode in INODES),
    )


def _rooms() -> Table:
    others = {f'{METADATA}_checksum': 32}
    return Table(
        'What XFS inodes have room for',
        ('inode', 'room for attributes', f'longest {METADATA}'),
        [
            (
                inode.label,
                number(inode.room()),
                number(max(0, inode.longest(METADATA, others))),
            )
            for inode in (Inode(256, 4), Inode(512, 4), *INODES[1:])
        ],
        (
            'Bytes, of files of up to three extents. A value of '
            f'{TOO_LONG} bytes or more lies in no inode, however large, for '
            'its length has to fit into a byte there.',
        ),
    )


def _points(
    objects: Sequence[Mapping], length: int, kind: Kind, metadata: str
) -> tuple[list[int], list[int]] | None:
    points = sorted(
        (each['name_length'], metadata_bytes(each['attributes']))
        for each in objects
        if each['container_length'] == length
        and each['metadata'] == metadata
        and Kind.from_json(each['kind']) == kind
    )
    if not points:
        return None
    x, y = zip(*points, strict=True)
    return list(x), list(y)


def _others(attributes: Mapping[str, int]) -> dict[str, int]:
    return {
        name: length for name, length in attributes.items() if name != METADATA
    }
