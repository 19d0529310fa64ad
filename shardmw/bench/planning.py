# SPDX-License-Identifier: Apache-2.0
"""A model of how many shards a container needs and what its listings cost.

Pure. It counts requests and rows, and multiplies them by processor time that
was measured on a small cluster. ``doc/scaling.md`` explains the formulas and
what they leave out, such as the time of disks.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from shardmw.admin.advice import (
    ROWS_PER_SHARD,
    power_of_two,
    shards_for_rows,
)
from shardmw.listing.merge import first_share

MICROSECONDS = 1_000_000
PAGES = (10_000, 1_000, 100)

#: Pages with less of a plain container's listing rate are called slow.
SLOW_RATIO = 0.5

#: Fewer shards are mentioned if they list so many times as fast.
WORTHWHILE_GAIN = 1.5

#: The listing rate of Swift's native sharding to that of a plain container,
#: measured with 8 ranges of 125,000 rows.
NATIVE_RATIOS = MappingProxyType({10_000: 0.94, 1_000: 0.87, 100: 0.93})

PLAIN, NATIVE, SHARDED = 'plain', 'native', 'sharded'


class Costs(NamedTuple):
    """Processor time of Swift's processes, in microseconds.

    Measured on the embedded Swift on one machine of two cores, by the
    scheduler's count of each process; the minimum of several rounds. The
    scenario ``listing-cost`` fits the costs of listings, with
    ``shardmw-listings`` in the pipeline: containers of 1,000,000 rows, plain
    and of 4, 32 and 128 shards, in pages of 10,000, 1,000 and 100 rows.
    """

    #: a PUT of 1 byte with one replica, by 16 clients: of the proxy, of the
    #: proxy for each further replica, of an object server and of a container
    #: server for each replica
    proxy_put_us: float = 3_200
    proxy_replica_put_us: float = 830
    object_put_us: float = 3_000
    container_put_us: float = 1_150

    #: of the proxy for a page of a plain container, and for each of its rows
    proxy_page_us: float = 2_863
    proxy_row_us: float = 11.1

    #: of the proxy for a page of a sharded container, for each request to a
    #: shard or the root, and for each row that a shard returns
    proxy_merged_page_us: float = 2_942
    proxy_shard_us: float = 388
    proxy_merged_row_us: float = 1.12

    #: of a container server for each request for a listing, and for each row
    container_page_us: float = 1_547
    container_row_us: float = 13.1

    #: bytes of a row, whose name has 39 characters
    row_bytes: float = 183


class Needs(NamedTuple):
    """What is to be stored.

    :param puts_per_second: the highest rate of writes
    :param directories: the directories that both are spread over evenly, to
                        check sharding by directory
    """

    objects: int
    puts_per_second: float
    directories: int | None = None

    def shared_by(self, containers: int) -> 'Needs':
        """Return the needs of each of several containers."""
        directories = self.directories
        if directories is not None:
            directories = math.ceil(directories / containers)
        return Needs(
            math.ceil(self.objects / containers),
            self.puts_per_second / containers,
            directories,
        )


class Bounds(NamedTuple):
    """Bounds of one backing container, and of the number of shards.

    :param puts_per_second: the option ``container_ratelimit_SIZE``
    :param headroom: the factor between the wanted rate and the capacity
    :param advised_rows: Swift's sharder splits larger databases
    :param most_rows: the largest database that was measured: a row costs
                      about as much to put, and twice as much to list
    """

    puts_per_second: float = 100
    headroom: float = 2
    advised_rows: int = ROWS_PER_SHARD
    most_rows: int = 4_000_000
    most_shards: int = 1024


class Servers(NamedTuple):
    """The servers of a cluster; None is unknown and limits nothing."""

    replicas: int = 3
    proxy_cores: int | None = None
    object_cores: int | None = None
    container_cores: int | None = None
    container_disks: int | None = None
    fanout: int = 8

    @property
    def cores(self) -> dict[str, int | None]:
        """Return the cores by the kind of server."""
        return {
            'proxy': self.proxy_cores,
            'object': self.object_cores,
            'container': self.container_cores,
        }


class Work(NamedTuple):
    """The work for a page of a listing.

    :param requests: to container servers
    :param container_us: of all container servers together
    :param is_fanned_out: True if they work at the same time
    """

    requests: int
    rows: int
    proxy_us: float
    container_us: float
    is_fanned_out: bool


class Outlook(NamedTuple):
    """The expected figures of a container with so many shards.

    :param rows_of_fullest: in the shard with most rows by chance
    :param database_bytes: of one shard
    :param all_bytes: of all replicas of all databases
    :param puts_per_second: the capacity of all shards together
    :param used_share: the wanted rate, as a share of the capacity
    :param rows_per_second: of one client's listing, by page size
    :param ratios: the same, divided by the rate of a plain container
    :param disks_in_use: disks with at least one of the databases
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


class Plan(NamedTuple):
    """The recommendation.

    :param kind: :data:`PLAIN`, :data:`NATIVE` or :data:`SHARDED`
    :param containers: more than one if one cannot have enough shards
    :param needs: of each container
    :param shards: of each container; an alternative unless ``kind`` is
                   :data:`SHARDED`
    :param for_puts: the shards that the writes need, with headroom
    :param for_rows: the shards that the objects need
    :param least: the fewest shards that suffice: without headroom, and with
                  ``most_rows`` each
    :param cores: the cores that all writes keep busy, by kind of server
    :param outlooks: of this and other numbers of shards
    """

    kind: str
    containers: int
    needs: Needs
    shards: int
    for_puts: int
    for_rows: int
    least: int
    cores: Mapping[str, float]
    outlooks: tuple[Outlook, ...]
    plain_rows_per_second: Mapping[int, float]
    warnings: tuple[str, ...] = ()

    @property
    def chosen(self) -> Outlook:
        """Return the outlook of the recommended number of shards."""
        return next(x for x in self.outlooks if x.shards == self.shards)


def shards_for_puts(puts_per_second: float, bounds: Bounds) -> int:
    """Return the shards that writes need, without headroom."""
    return max(1, math.ceil(puts_per_second / bounds.puts_per_second))


def least_shards(needs: Needs, bounds: Bounds) -> int:
    """Return the fewest shards that suffice."""
    return max(
        shards_for_puts(needs.puts_per_second, bounds),
        shards_for_rows(needs.objects, bounds.most_rows),
    )


def wanted_shards(needs: Needs, bounds: Bounds) -> tuple[int, int]:
    """Return the shards that the writes and that the objects need."""
    return (
        shards_for_puts(needs.puts_per_second * bounds.headroom, bounds),
        shards_for_rows(needs.objects, bounds.advised_rows),
    )


def containers_for(needs: Needs, bounds: Bounds) -> int:
    """Return how many containers it takes at least."""
    count = math.ceil(least_shards(needs, bounds) / bounds.most_shards)
    while least_shards(needs.shared_by(count), bounds) > bounds.most_shards:
        count += 1
    return count


def advised_shards(needs: Needs, bounds: Bounds) -> int:
    """Return the recommended number of shards of one container.

    It is a power of two with headroom for the writes and no database larger
    than advised, up to the most shards that a container may have.
    """
    wanted = power_of_two(max(wanted_shards(needs, bounds)))
    return min(wanted, bounds.most_shards)


def rows_of_fullest(objects: int, shards: int) -> float:
    """Return the rows of the shard with most by chance: balls in bins."""
    mean = objects / shards
    return min(objects, mean + math.sqrt(2 * mean * math.log(shards)))


def busy_cores(
    puts_per_second: float, replicas: int, costs: Costs
) -> dict[str, float]:
    """Return how many cores writes keep busy, by the kind of server."""
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
    """Return the work for a page of a plain container's listing."""
    return Work(
        requests=1,
        rows=page,
        proxy_us=costs.proxy_page_us + page * costs.proxy_row_us,
        container_us=costs.container_page_us + page * costs.container_row_us,
        is_fanned_out=False,
    )


def sharded_page(page: int, shards: int, costs: Costs) -> Work:
    """Return the work for a page of a sharded container's listing, in order.

    The root is asked, too. A second request to a shard that ran out of rows
    is rare and left out.
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
    """Return how long one client waits for a page on an idle cluster.

    A proxy process has one core. The real time may be shorter: the proxy
    merges the first responses while it waits for others.
    """
    at_a_time = 1
    if work.is_fanned_out:
        at_a_time = min(work.requests, servers.fanout)
        if servers.container_cores is not None:
            at_a_time = min(at_a_time, servers.container_cores)
    return (work.proxy_us + work.container_us / at_a_time) / MICROSECONDS


def plain_rows_per_second(costs: Costs, servers: Servers) -> dict[int, float]:
    """Return the rate of one client's listing by the rows of a page."""
    return {
        page: page / page_seconds(plain_page(page, costs), servers)
        for page in PAGES
    }


def outlook(
    shards: int, needs: Needs, bounds: Bounds, costs: Costs, servers: Servers
) -> Outlook:
    """Return what to expect of a container of so many shards."""
    capacity = shards * bounds.puts_per_second
    listed = {
        page: page / page_seconds(sharded_page(page, shards, costs), servers)
        for page in PAGES
    }
    plain = plain_rows_per_second(costs, servers)
    fullest = rows_of_fullest(needs.objects, shards)
    disks = servers.container_disks
    return Outlook(
        shards=shards,
        rows_of_fullest=fullest,
        database_bytes=fullest * costs.row_bytes,
        all_bytes=needs.objects * costs.row_bytes * servers.replicas,
        puts_per_second=capacity,
        used_share=needs.puts_per_second / capacity,
        rows_per_second=listed,
        ratios={page: listed[page] / plain[page] for page in PAGES},
        disks_in_use=disks
        and disks * (1 - (1 - 1 / disks) ** (shards * servers.replicas)),
    )


def make_plan(
    needs: Needs, bounds: Bounds, costs: Costs, servers: Servers
) -> Plan:
    """Return the recommendation for containers that are to be made."""
    kind = SHARDED
    if needs.puts_per_second <= bounds.puts_per_second:
        kind = PLAIN if needs.objects <= bounds.advised_rows else NATIVE
    cores = busy_cores(needs.puts_per_second, servers.replicas, costs)
    containers = containers_for(needs, bounds) if kind == SHARDED else 1
    each = needs.shared_by(containers)
    for_puts, for_rows = wanted_shards(each, bounds)
    least = min(least_shards(each, bounds), bounds.most_shards)
    shards = advised_shards(each, bounds)
    counts = {least, max(least, shards // 4), shards}
    counts.add(min(shards * 4, bounds.most_shards))
    plan = Plan(
        kind=kind,
        containers=containers,
        needs=each,
        shards=shards,
        for_puts=for_puts,
        for_rows=for_rows,
        least=least,
        cores=cores,
        outlooks=tuple(
            outlook(count, each, bounds, costs, servers)
            for count in sorted(counts)
        ),
        plain_rows_per_second=plain_rows_per_second(costs, servers),
    )
    warnings = [*_about_servers(cores, servers)]
    if kind == SHARDED:
        warnings = [
            *_about_directories(plan, bounds),
            *_about_bounds(plan, bounds),
            *warnings,
            *_about_listings(plan),
        ]
    return plan._replace(warnings=tuple(warnings))


def share_of_fullest(directories: int, shards: int) -> float:
    """Return the share of the directories in the shard with most of them."""
    return rows_of_fullest(directories, shards) / directories


def _about_directories(plan: Plan, bounds: Bounds) -> list[str]:
    """Return advice on sharding by directory."""
    objects, puts, directories = plan.needs
    if not directories:
        return []
    share = share_of_fullest(directories, plan.shards)
    fullest = (
        f'the fullest shard would take {puts * share:,.0f} writes/s and hold '
        f'{objects * share:,.0f} objects'
    )
    if (
        puts * share > bounds.puts_per_second
        or objects * share > bounds.most_rows
    ):
        return [
            f'{directories:,} directories are too few to shard by them: '
            f'{fullest}. Shard by name, or at a greater depth.'
        ]
    return [
        f'{directories:,} directories are enough to shard by them '
        f'(X-Container-Shard-Depth): {fullest}, if all directories are '
        'alike. The listing of a directory then asks one shard. No directory '
        f'must take more than {bounds.puts_per_second:,.0f} writes/s.'
    ]


def _about_bounds(plan: Plan, bounds: Bounds) -> list[str]:
    warnings = []
    rows = plan.chosen.rows_of_fullest
    if rows > 2 * bounds.advised_rows:
        warnings.append(
            f'A shard will hold {rows:,.0f} objects, more than the advised '
            f'{bounds.advised_rows:,}: audits and replication of its '
            'database take longer. A higher max_shards, or more containers, '
            'would help.'
        )
    if plan.chosen.used_share * bounds.headroom > 1.001:
        warnings.append(
            f'The writes take up {plan.chosen.used_share:.0%} of what the '
            'shards may take: there is little headroom.'
        )
    return warnings


def _about_servers(cores: Mapping[str, float], servers: Servers) -> list[str]:
    return [
        f'The {kind} servers have {servers.cores[kind]:,} cores, and the '
        f'writes keep {busy:,.1f} busy: these servers limit the writes.'
        for kind, busy in cores.items()
        if servers.cores[kind] is not None and busy > servers.cores[kind]
    ]


def _about_listings(plan: Plan) -> list[str]:
    chosen, least = plan.chosen, plan.outlooks[0]
    slow = [page for page in PAGES if chosen.ratios[page] < SLOW_RATIO]
    if not slow:
        return []
    remedy = (
        'add allow_unordered=true where the order of the names does not '
        'matter.'
    )
    if slow[0] < max(PAGES):
        remedy = f'list in pages of {max(PAGES):,}, or {remedy}'
    warnings = [
        f'Pages of {slow[0]:,} rows and fewer have '
        f"{chosen.ratios[slow[0]]:.2g} of a plain container's listing rate "
        f'or less: each asks all {chosen.shards:,} shards. So {remedy}'
    ]
    gain = least.rows_per_second[slow[0]] / chosen.rows_per_second[slow[0]]
    if gain > WORTHWHILE_GAIN:
        warnings.append(
            f'An alternative for faster listings: {least.shards:,} shards '
            f'list {gain:.1f} times as fast and take up to '
            f'{least.puts_per_second:,.0f} writes/s, with '
            f'{least.rows_of_fullest:,.0f} objects in a database.'
        )
    return warnings
