# SPDX-License-Identifier: Apache-2.0
"""What a container of N shards takes, and what its listings cost: a model.

Pure: numbers in, numbers out. It counts requests and rows, and multiplies
them by processor time that was measured on a small cluster; see
``doc/scaling.md``. What it leaves out, such as the time that disks take, is
said there, too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from shardmw.admin.advice import (
    ROWS_PER_SHARD,
    power_of_two,
    shards_for_rows,
)
from shardmw.listing.merge import first_share

MICROSECONDS = 1_000_000
PAGES = (10_000, 1_000, 100)

#: From which share of a plain container's listing rate on pages are said to
#: be slow.
SLOW_RATIO = 0.5

#: What fewer shards must bring to listings to be spoken of.
WORTHWHILE_GAIN = 1.5

#: What Swift's native sharding reads of a plain container's rate, measured
#: with 8 ranges of 125,000 rows.
NATIVE_RATIOS = MappingProxyType({10_000: 0.94, 1_000: 0.87, 100: 0.93})


@dataclass(frozen=True)
class Costs:
    """Processor time of Swift's processes, in microseconds.

    Measured on the embedded Swift, all of it on one machine of two cores, as
    the scheduler's own count of each process; the least of some rounds each.
    Those of listings are what the scenario ``listing-cost`` fits, with
    ``shardmw-listings`` in the pipeline: containers of 1,000,000 rows, plain
    and of 4, 32 and 128 shards, in pages of 10,000, 1,000 and 100.

    :param proxy_put_us: of a proxy for a PUT of 1 byte with one replica, by
                         16 clients; a plain and a sharded container differ
                         by less than the runs do
    :param proxy_replica_put_us: of a proxy for each further replica: half of
                                 what three cost more than one
    :param object_put_us: of an object server for each replica of such a PUT
    :param container_put_us: of a container server for each replica of its row
    :param proxy_page_us: of a proxy for a page of a plain container, besides
                          its rows
    :param proxy_row_us: of a proxy for each row of such a page
    :param proxy_merged_page_us: of a proxy for a page of a sharded container,
                                 besides shards and rows
    :param proxy_shard_us: of a proxy for asking one shard, or the root
    :param proxy_merged_row_us: of a proxy for each row that a shard gives
    :param container_page_us: of a container server for each request for a
                              listing, besides its rows
    :param container_row_us: of a container server for each row
    :param row_bytes: of a container database with 4,000,000 rows, whose names
                      have 39 characters
    """

    proxy_put_us: float = 3_200
    proxy_replica_put_us: float = 830
    object_put_us: float = 3_000
    container_put_us: float = 1_150
    proxy_page_us: float = 2_863
    proxy_row_us: float = 11.1
    proxy_merged_page_us: float = 2_942
    proxy_shard_us: float = 388
    proxy_merged_row_us: float = 1.12
    container_page_us: float = 1_547
    container_row_us: float = 13.1
    row_bytes: float = 183


@dataclass(frozen=True)
class Needs:
    """What a container is to hold and take.

    :param objects: how many, in the end
    :param puts_per_second: the most that are to be taken
    :param directories: over how many directories both are spread evenly, to
                        weigh sharding by directory; None to leave that out
    """

    objects: int
    puts_per_second: float
    directories: int | None = None


@dataclass(frozen=True)
class Bounds:
    """What one backing container is given.

    :param puts_per_second: the most that it may take, as the option
                            ``container_ratelimit_SIZE`` has it
    :param headroom: how many times the wanted rate the shards are to take
    :param advised_rows: rows that a database is at its best with; Swift's
                         own sharder splits one that has more
    :param most_rows: up to so many the cost of a row was measured: it costs
                      about as much to put, and twice as much to list
    :param most_shards: the filter's option ``max_shards``
    """

    puts_per_second: float = 100
    headroom: float = 2
    advised_rows: int = ROWS_PER_SHARD
    most_rows: int = 4_000_000
    most_shards: int = 1024


@dataclass(frozen=True)
class Servers:
    """A cluster; what is None is not known, and does not limit anything.

    :param replicas: of objects and of container databases alike
    :param proxy_cores: processor cores of all proxies together
    :param object_cores: of all object servers
    :param container_cores: of all container servers
    :param container_disks: that databases are spread over
    :param fanout: requests to shards at a time, the filter's option
                   ``fanout_concurrency``
    """

    replicas: int = 3
    proxy_cores: int | None = None
    object_cores: int | None = None
    container_cores: int | None = None
    container_disks: int | None = None
    fanout: int = 4


@dataclass(frozen=True)
class Work:
    """What a page of a listing takes.

    :param requests: to container servers
    :param rows: that these give
    :param proxy_us: processor time of the proxy
    :param container_us: of the container servers together
    :param is_fanned_out: whether they work at the same time
    """

    requests: int
    rows: int
    proxy_us: float
    container_us: float
    is_fanned_out: bool


@dataclass(frozen=True)
class Outlook:
    """What to expect of a container of so many shards.

    :param rows_of_fullest: in the shard that got most by chance
    :param database_bytes: of one shard
    :param all_bytes: of all of them, with their replicas
    :param puts_per_second: what all of them may take
    :param used_share: how much of that is wanted
    :param rows_per_second: of one client's listing, by the rows of a page
    :param ratios: the same by what a plain container gives
    :param disks_in_use: how many disks have one of the databases or more
    """

    shards: int
    rows_of_fullest: float
    database_bytes: float
    all_bytes: float
    puts_per_second: float
    used_share: float
    rows_per_second: Mapping[int, float]
    ratios: Mapping[int, float]
    disks_in_use: float | None


@dataclass(frozen=True)
class Plan:
    """The advice.

    :param advised: how many shards
    :param for_puts: how many the rate wants
    :param for_rows: how many the objects want, to be ``advised_rows`` each
    :param least: fewer would not do: the rate without headroom, and no more
                  than ``most_rows`` each
    :param cores: that writes keep busy, by the kind of server
    :param outlooks: of the advised number and others around it
    :param plain_rows_per_second: one client's listing of a plain container
    :param warnings: what else to know, a sentence each
    """

    advised: int
    for_puts: int
    for_rows: int
    least: int
    cores: Mapping[str, float]
    outlooks: tuple[Outlook, ...]
    plain_rows_per_second: Mapping[int, float]
    warnings: tuple[str, ...] = field(default=())


def shards_for_puts(puts_per_second: float, bounds: Bounds) -> int:
    """How many shards take so many writes a second, without headroom."""
    return max(1, math.ceil(puts_per_second / bounds.puts_per_second))


def least_shards(needs: Needs, bounds: Bounds) -> int:
    """How many shards there must be: none is written or filled too much."""
    return max(
        shards_for_puts(needs.puts_per_second, bounds),
        shards_for_rows(needs.objects, bounds.most_rows),
    )


def advised_shards(needs: Needs, bounds: Bounds) -> int:
    """How many shards to choose: a power of two, if the options allow it.

    With headroom for the writes, and databases of a size that Swift itself
    would not split; but no more than a container may have, unless fewer
    would not do.
    """
    wanted = max(
        shards_for_puts(needs.puts_per_second * bounds.headroom, bounds),
        shards_for_rows(needs.objects, bounds.advised_rows),
    )
    most = min(power_of_two(wanted), bounds.most_shards)
    return max(most, least_shards(needs, bounds))


def rows_of_fullest(objects: int, shards: int) -> float:
    """Rows of the shard that chance gives most: balls in bins."""
    mean = objects / shards
    return min(objects, mean + math.sqrt(2 * mean * math.log(shards)))


def busy_cores(
    puts_per_second: float, replicas: int, costs: Costs
) -> dict[str, float]:
    """How many cores writes keep busy, by the kind of server."""
    further = (replicas - 1) * costs.proxy_replica_put_us
    put_us = {
        'proxy': costs.proxy_put_us + further,
        'object': replicas * costs.object_put_us,
        'container': replicas * costs.container_put_us,
    }
    return {
        kind: puts_per_second * spent / MICROSECONDS
        for kind, spent in put_us.items()
    }


def plain_page(page: int, costs: Costs) -> Work:
    """A page of a plain container's listing."""
    return Work(
        requests=1,
        rows=page,
        proxy_us=costs.proxy_page_us + page * costs.proxy_row_us,
        container_us=costs.container_page_us + page * costs.container_row_us,
        is_fanned_out=False,
    )


def sharded_page(page: int, shards: int, costs: Costs) -> Work:
    """A page in order of a sharded container's listing.

    Its root is asked, too. Shards that are short of rows and are asked again
    are left out: there are few.
    """
    requests = shards + 1
    rows = shards * first_share(page, shards)
    return Work(
        requests=requests,
        rows=rows,
        proxy_us=costs.proxy_merged_page_us
        + requests * costs.proxy_shard_us
        + rows * costs.proxy_merged_row_us,
        container_us=requests * costs.container_page_us
        + rows * costs.container_row_us,
        is_fanned_out=True,
    )


def page_seconds(work: Work, servers: Servers) -> float:
    """How long one client waits for a page, if nobody else is served.

    A proxy's process has one core. That it works on what shards have answered
    while others still do is left out, so it may take less.
    """
    at_a_time = 1
    if work.is_fanned_out:
        at_a_time = min(work.requests, servers.fanout)
        if servers.container_cores is not None:
            at_a_time = min(at_a_time, servers.container_cores)
    return (work.proxy_us + work.container_us / at_a_time) / MICROSECONDS


def plain_rows_per_second(costs: Costs, servers: Servers) -> dict[int, float]:
    """One client's listing of a plain container, by the rows of a page."""
    return {
        page: page / page_seconds(plain_page(page, costs), servers)
        for page in PAGES
    }


def outlook(
    shards: int, needs: Needs, bounds: Bounds, costs: Costs, servers: Servers
) -> Outlook:
    """What to expect of a container of so many shards."""
    capacity = shards * bounds.puts_per_second
    listed = {
        page: page / page_seconds(sharded_page(page, shards, costs), servers)
        for page in PAGES
    }
    plain = plain_rows_per_second(costs, servers)
    fullest = rows_of_fullest(needs.objects, shards)
    return Outlook(
        shards=shards,
        rows_of_fullest=fullest,
        database_bytes=fullest * costs.row_bytes,
        all_bytes=needs.objects * costs.row_bytes * servers.replicas,
        puts_per_second=capacity,
        used_share=needs.puts_per_second / capacity,
        rows_per_second=listed,
        ratios={page: listed[page] / plain[page] for page in PAGES},
        disks_in_use=_disks_in_use(shards, servers),
    )


def make_plan(
    needs: Needs, bounds: Bounds, costs: Costs, servers: Servers
) -> Plan:
    """The advice for a container that is to be made."""
    advised = advised_shards(needs, bounds)
    least = least_shards(needs, bounds)
    counts = {least, max(least, advised // 4), advised, advised * 4}
    outlooks = tuple(
        outlook(shards, needs, bounds, costs, servers)
        for shards in sorted(counts)
    )
    (chosen,) = (each for each in outlooks if each.shards == advised)
    cores = busy_cores(needs.puts_per_second, servers.replicas, costs)
    return Plan(
        advised=advised,
        for_puts=shards_for_puts(
            needs.puts_per_second * bounds.headroom, bounds
        ),
        for_rows=shards_for_rows(needs.objects, bounds.advised_rows),
        least=least,
        cores=cores,
        outlooks=outlooks,
        plain_rows_per_second=plain_rows_per_second(costs, servers),
        warnings=(
            *_about_alternatives(needs, bounds),
            *_about_directories(chosen, needs, bounds),
            *_about_bounds(chosen, needs, bounds),
            *_about_servers(cores, servers),
            *_about_listings(chosen, outlooks[0]),
        ),
    )


def _disks_in_use(shards: int, servers: Servers) -> float | None:
    disks = servers.container_disks
    if disks is None:
        return None
    return disks * (1 - (1 - 1 / disks) ** (shards * servers.replicas))


def _about_alternatives(needs: Needs, bounds: Bounds) -> list[str]:
    if needs.puts_per_second > bounds.puts_per_second:
        return []
    if needs.objects <= bounds.advised_rows:
        return [
            'A plain container does: it takes so many writes, and holds so '
            'many objects.'
        ]
    return [
        "One container's rate is enough for so many writes. Swift's native "
        'sharding is the better choice then: it splits the database as it '
        'grows, and small pages of its listings cost about what they cost '
        'on a plain container.'
    ]


def share_of_fullest(directories: int, shards: int) -> float:
    """The share of all directories in the shard that has most of them."""
    return rows_of_fullest(directories, shards) / directories


def _about_directories(
    chosen: Outlook, needs: Needs, bounds: Bounds
) -> list[str]:
    """Say whether sharding by directory does."""
    if needs.directories is None:
        return []
    share = share_of_fullest(needs.directories, chosen.shards)
    puts, rows = needs.puts_per_second * share, needs.objects * share
    fullest = (
        f'the fullest shard would take {puts:,.0f} writes a second and hold '
        f'{rows:,.0f} objects'
    )
    if puts > bounds.puts_per_second or rows > bounds.most_rows:
        return [
            f'{needs.directories:,} directories are too few to shard by them: '
            f'{fullest}. Shard by name, or at a greater depth.'
        ]
    return [
        f'{needs.directories:,} directories are enough to shard by them '
        f'(X-Container-Shard-Depth): {fullest}, if all directories are '
        'alike, and the listing of a directory asks one shard. No directory '
        f'must take more than {bounds.puts_per_second:,.0f} writes a second.'
    ]


def _about_bounds(chosen: Outlook, needs: Needs, bounds: Bounds) -> list[str]:
    warnings = []
    if chosen.shards > bounds.most_shards:
        containers = -(-chosen.shards // bounds.most_shards)
        warnings.append(
            f'max_shards is {bounds.most_shards:,}: raise it, or take '
            f'{containers:,} containers.'
        )
    if chosen.rows_of_fullest > 2 * bounds.advised_rows:
        warnings.append(
            f'A shard will hold {chosen.rows_of_fullest:,.0f} objects, which '
            f'is more than the {bounds.advised_rows:,} that are advised: '
            'audits and replication of its database take longer.'
        )
    if chosen.used_share * bounds.headroom > 1.001:
        warnings.append(
            f'The writes take up {chosen.used_share:.0%} of what the shards '
            'may take: there is little headroom.'
        )
    return warnings


def _about_servers(cores: Mapping[str, float], servers: Servers) -> list[str]:
    have = {
        'proxy': servers.proxy_cores,
        'object': servers.object_cores,
        'container': servers.container_cores,
    }
    return [
        f'The {kind} servers have {have[kind]:,} cores, and the writes keep '
        f'{busy:,.1f} busy: they are the bound, not the shards.'
        for kind, busy in cores.items()
        if have[kind] is not None and busy > have[kind]
    ]


def _about_listings(chosen: Outlook, least: Outlook) -> list[str]:
    slow = [page for page in PAGES if chosen.ratios[page] < SLOW_RATIO]
    if not slow:
        return []
    remedy = 'let what only walks all objects do without their order.'
    if slow[0] < max(PAGES):
        remedy = f'list in pages of {max(PAGES):,}, or {remedy}'
    warnings = [
        f'Pages of {slow[0]:,} and fewer come at '
        f"{chosen.ratios[slow[0]]:.2g} of a plain container's rate or less: "
        f'each asks all {chosen.shards:,} shards. So {remedy}'
    ]
    gain = least.rows_per_second[slow[0]] / chosen.rows_per_second[slow[0]]
    if gain > WORTHWHILE_GAIN:
        warnings.append(
            f'{least.shards:,} shards would list {gain:.1f} times as fast, '
            f'and take up to {least.puts_per_second:,.0f} writes a second: '
            f'choose them if databases of {least.rows_of_fullest:,.0f} '
            'objects suit you.'
        )
    return warnings
