# SPDX-License-Identifier: Apache-2.0
"""``shardmw-bench plan``: how many shards to choose.

A model of how many shards a container needs and what its listings cost. It
counts requests and rows, and multiplies them by processor time that was
measured on a small cluster. ``doc/scaling.md`` explains the formulas and what
they leave out, such as the time of disks.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import click

from shardmw.core.listing_page import first_share
from shardmw.reshard.shard_advice import (
    ROWS_PER_SHARD,
    power_of_two,
    shards_for_rows,
)
from shardmw_bench import templates
from shardmw_bench.options import (
    COUNT,
    MOST_SHARDS,
    POSITIVE,
    RATE,
    Parameters,
    chosen_parameters,
    option,
    parameter_options,
)
from shardmw_bench.screen import Screen
from shardmw_bench.tables import figure, number

MICROSECONDS = 1_000_000
PAGES = (10_000, 1_000, 100)

# Fewer shards are mentioned if they list at least this many times as fast.
_WORTHWHILE_GAIN = 1.5

#: Pages with less of a plain container's listing rate are called slow.
SLOW_RATIO = 0.5

#: The ratio of the listing rate of Swift's native sharding to that of a plain
#: container, measured with 8 ranges of 125,000 rows.
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


COSTS = Costs()


class Work(NamedTuple):
    """The work for a page of a listing.

    :param requests: to container servers, at the same time if there are
                     several
    :param container_us: of all container servers together
    """

    requests: int
    rows: int
    proxy_us: float
    container_us: float


def page_work(page: int, shards: int | None, costs: Costs = COSTS) -> Work:
    """Return the work for a page of a listing, in order.

    There is a request to the root of a sharded container, too. A second
    request to a shard that ran out of rows is rare and left out.

    :param shards: None for a plain container
    """
    if shards is None:
        requests, rows = 1, page
        proxy_us = costs.proxy_page_us + page * costs.proxy_row_us
    else:
        requests, rows = shards + 1, shards * first_share(page, shards)
        proxy_us = costs.proxy_merged_page_us
        proxy_us += requests * costs.proxy_shard_us
        proxy_us += rows * costs.proxy_merged_row_us
    container_us = requests * costs.container_page_us
    container_us += rows * costs.container_row_us
    return Work(requests, rows, proxy_us, container_us)


def rows_of_fullest(objects: int, shards: int) -> float:
    """Return the expected rows of the fullest shard (balls into bins)."""
    mean = objects / shards
    return min(objects, mean + math.sqrt(2 * mean * math.log(shards)))


class Outlook(NamedTuple):
    """The expected figures of a container with so many shards.

    :param rows_of_fullest: the expected rows of the fullest shard
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


@dataclass(frozen=True)
class Plan(Parameters):
    """Recommends shards for what is to be stored, and the servers for it.

    Shards and outlooks are those of :attr:`each` container.

    :param headroom: the factor between the wanted rate and the capacity
    """

    objects: int = option(
        1, COUNT, 'Objects to store in the end, such as 10e9.', required=True
    )
    puts: float = option(
        1.0, RATE, 'The highest rate of writes, in writes/s.', required=True
    )
    directories: int | None = option(
        None,
        COUNT,
        'Directories that the objects are spread over, to see if there are '
        'enough to shard by directory.',
    )
    limit: float = option(
        100.0,
        RATE,
        'Writes/s that one shard may take: container_ratelimit_SIZE.',
    )
    rows: int = option(ROWS_PER_SHARD, COUNT, 'Objects of each shard.')
    max_shards: int = option(MOST_SHARDS, POSITIVE, 'The option max_shards.')
    fanout: int = option(8, POSITIVE, 'The option fanout_concurrency.')
    replicas: int = option(3, POSITIVE, 'Replicas of all data.')
    proxy_cores: int | None = option(
        None, POSITIVE, 'Processor cores of all proxies.'
    )
    object_cores: int | None = option(
        None, POSITIVE, 'Cores of all object servers.'
    )
    container_cores: int | None = option(
        None, POSITIVE, 'Cores of all container servers.'
    )
    container_disks: int | None = option(
        None, POSITIVE, 'Disks with container databases.'
    )
    headroom: float = 2

    @property
    def kind(self) -> str:
        """Return :data:`PLAIN`, :data:`NATIVE` or :data:`SHARDED`."""
        if self.puts > self.limit:
            return SHARDED
        return PLAIN if self.objects <= self.rows else NATIVE

    @cached_property
    def containers(self) -> int:
        """Return the least number of containers that suffice."""
        if self.kind != SHARDED:
            return 1
        count = math.ceil(self._least / self.max_shards)
        while self._shared_by(count)._least > self.max_shards:
            count += 1
        return count

    @cached_property
    def each(self) -> 'Plan':
        """Return the plan of one of the containers."""
        return self._shared_by(self.containers)

    def _shared_by(self, containers: int) -> 'Plan':
        directories = self.directories
        return replace(
            self,
            objects=math.ceil(self.objects / containers),
            puts=self.puts / containers,
            directories=directories and math.ceil(directories / containers),
        )

    @property
    def _least(self) -> int:
        return max(1, math.ceil(self.puts / self.limit), self.for_rows)

    @property
    def for_puts(self) -> int:
        """Return the shards that the writes need, with headroom."""
        return max(1, math.ceil(self.puts * self.headroom / self.limit))

    @property
    def for_rows(self) -> int:
        return shards_for_rows(self.objects, self.rows)

    @property
    def least(self) -> int:
        """Return the fewest shards that suffice, or that are allowed."""
        return min(self._least, self.max_shards)

    @property
    def shards(self) -> int:
        """Return the recommended number of shards, or an alternative.

        It is a power of two with headroom for the writes and no database
        larger than advised, up to the most that a container may have.
        """
        wanted = power_of_two(max(self.for_puts, self.for_rows))
        return min(wanted, self.max_shards)

    @cached_property
    def busy_cores(self) -> dict[str, float]:
        """Return how many cores the writes keep busy, by kind of server."""
        further = (self.replicas - 1) * COSTS.proxy_replica_put_us
        put_us = {
            'proxy': COSTS.proxy_put_us + further,
            'object': self.replicas * COSTS.object_put_us,
            'container': self.replicas * COSTS.container_put_us,
        }
        return {
            kind: self.puts * us / MICROSECONDS for kind, us in put_us.items()
        }

    @property
    def recommendation(self) -> str:
        if self.kind == PLAIN:
            return 'a plain container'
        if self.kind == NATIVE:
            return "a plain container with Swift's native sharding"
        shards = f'{number(self.each.shards)} shards'
        if self.containers == 1:
            return shards
        return f'{number(self.containers)} containers of {shards} each'

    def page_seconds(self, work: Work) -> float:
        """Return how long one client waits for a page on an idle cluster.

        A proxy process has one core. The real time may be shorter: the proxy
        merges the first responses while it waits for others.
        """
        limits = (work.requests, self.fanout, self.container_cores)
        at_a_time = min(each for each in limits if each is not None)
        seconds = work.proxy_us + work.container_us / at_a_time
        return seconds / MICROSECONDS

    def rows_per_second(self, shards: int | None) -> dict[int, float]:
        """Return the rate of one client's listing by the rows of a page.

        :param shards: None for a plain container
        """
        return {
            page: page / self.page_seconds(page_work(page, shards))
            for page in PAGES
        }

    def outlook(self, shards: int) -> Outlook:
        listed = self.rows_per_second(shards)
        plain = self.rows_per_second(None)
        fullest = rows_of_fullest(self.objects, shards)
        disks = self.container_disks
        return Outlook(
            shards=shards,
            rows_of_fullest=fullest,
            database_bytes=fullest * COSTS.row_bytes,
            all_bytes=self.objects * COSTS.row_bytes * self.replicas,
            puts_per_second=shards * self.limit,
            used_share=self.puts / (shards * self.limit),
            rows_per_second=listed,
            ratios={page: listed[page] / plain[page] for page in PAGES},
            disks_in_use=disks
            and disks * (1 - (1 - 1 / disks) ** (shards * self.replicas)),
        )

    @cached_property
    def outlooks(self) -> list[Outlook]:
        """Return the outlooks of this and other numbers of shards."""
        least, shards = self.least, self.shards
        counts = {least, max(least, shards // 4), shards}
        counts.add(min(shards * 4, self.max_shards))
        return [self.outlook(count) for count in sorted(counts)]

    @property
    def slow_page(self) -> int | None:
        """Return the largest page whose listing is slow, if there is one."""
        ratios = self.outlook(self.shards).ratios
        slow = (page for page in PAGES if ratios[page] < SLOW_RATIO)
        return next(slow, None)


def shown(advice: Plan) -> dict[str, object]:
    each = advice.each
    return {
        'plan': advice,
        'each': each,
        'chosen': each.outlook(each.shards),
        'least': each.outlooks[0],
        'plain': advice.rows_per_second(None),
        'native_ratios': NATIVE_RATIOS,
        'rows_of_fullest': rows_of_fullest,
        'worthwhile_gain': _WORTHWHILE_GAIN,
        'slow_page': each.slow_page,
    }


@click.command()
@parameter_options(Plan)
def plan(**chosen: object) -> None:
    """Compute how many shards a container should have.

    \b
    shardmw-bench plan --objects 10e9 --puts 20000

    Cores and disks that are not given are no limit. Nothing is measured.
    """
    advice = chosen_parameters(Plan, chosen)
    values = shown(advice)
    screen = Screen()
    wanted = (
        f'{number(advice.objects)} objects, {figure(advice.puts)} writes/s'
    )
    screen.heading(f'{wanted}: {advice.recommendation}')
    for line in templates.lines('plan-reasons', **values):
        screen.line(line)
    for table in templates.tables('plan', **values):
        screen.table(table)
    if warnings := templates.lines('plan-warnings', **values):
        screen.console.print()
    for warning in warnings:
        screen.warning(warning)


COMMANDS = {'plan': plan}
