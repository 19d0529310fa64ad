# SPDX-License-Identifier: Apache-2.0
"""Compare what proxies show in ``/info``: pure.

There is no list of the right values. What most proxies have is taken for
right, and each proxy that differs from it is a finding.
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardmw.admin.doctor.findings import NOT_CHECKED, Finding

#: The options that all proxies must share and that ``/info`` shows.
SHOWN_OPTIONS = (
    'client_max_shards',
    'container_listing_ratelimits',
    'container_ratelimits',
    'default_depth',
    'default_shards',
    'head_cache_seconds',
    'listing_max_age',
    'max_shards',
    'max_sleep_time_seconds',
    'rate_buffer_seconds',
)

#: Those of which ``/info`` has only a digest.
HIDDEN_OPTIONS = ('ratelimit_proxies', 'shard_rules', 'stats_cache_seconds')

#: How far a clock may be off, in seconds.
CLOCK_SECONDS = 2

WITHOUT_FILTER = (
    'put the filter shardmw into its pipeline, and reload it. Until then it '
    'shows sharded containers as empty, and its rows are strays. If '
    'disallowed_sections hides shardmw from /info, remove it there'
)


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy and what its ``/info`` shows.

    :param info: the section of shardmw; None if there is none
    :param problem: why ``/info`` could not be read, '' if it could
    :param clock_seconds: how many seconds its clock is ahead of that of this
                          machine; negative if it is behind
    """

    url: str
    info: Mapping | None = None
    problem: str = ''
    clock_seconds: float = 0

    @property
    def answers(self) -> bool:
        """Return True if its ``/info`` could be read."""
        return not self.problem

    def digest(self, name: str) -> str | None:
        """Return one of its digests, None if it shows none."""
        return ((self.info or {}).get('digests') or {}).get(name)


class Machine(NamedTuple):
    """This machine.

    :param version: the version of shardmw that runs the command
    :param swift_conf: the path of its ``swift.conf``
    :param hash_path: the digest of the hash path in it
    """

    version: str
    swift_conf: str
    hash_path: str


class Agreement(NamedTuple):
    """Holds the values of most proxies; None where no proxy shows one.

    :param model: a proxy whose options are those of most
    :param comparable: True if this machine has their hash path, so that its
                       own digests can be compared with theirs
    """

    version: str | None
    hash_path: str | None
    memcached: str | None
    model: Proxy | None
    comparable: bool

    @property
    def options(self) -> Mapping:
        """Return the options that most proxies show."""
        return self.model.info if self.model else {}

    @property
    def options_digest(self) -> str | None:
        """Return the digest of the options that most proxies have."""
        return self.model.digest('options') if self.model else None


def clock_difference(date: float, before: float, after: float) -> float:
    """Return how many seconds a clock is ahead, at least.

    :param date: the whole second that the other clock showed
    :param before: when it was asked, on this machine's clock
    :param after: when its answer was there
    """
    if date > after:
        return date - after
    # The clock may have shown any time of its second.
    return min(0.0, date + 1 - before)


def agreement_of(proxies: Iterable[Proxy], machine: Machine) -> Agreement:
    """Return what most proxies have."""
    filtered = [each for each in proxies if each.info is not None]
    digests = [each.digest('hash_path') for each in filtered]
    hash_path = _most_common([machine.hash_path, *filter(None, digests)])
    # Digests of other hash paths have other keys.
    peers = [
        each for each in filtered if each.digest('hash_path') == hash_path
    ] or filtered
    memcached = (each.digest('memcache') for each in peers)
    options = _most_common(map(_options_of, peers))
    return Agreement(
        _most_common(
            each.info['version'] for each in filtered if 'version' in each.info
        ),
        hash_path,
        _most_common(filter(None, memcached)),
        next((each for each in peers if _options_of(each) == options), None),
        hash_path == machine.hash_path,
    )


def about_proxies(
    proxies: Sequence[Proxy], agreed: Agreement, machine: Machine
) -> Iterator[Finding]:
    """Yield what is wrong with proxies, and with this machine beside them."""
    for proxy in proxies:
        if proxy.problem:
            yield Finding(
                proxy.url,
                f'{NOT_CHECKED}{proxy.problem}',
                'start the proxy, or correct its address',
            )
            continue
        yield from _about_clock(proxy)
        if proxy.info is None:
            yield Finding(proxy.url, '/info shows no shardmw', WITHOUT_FILTER)
        else:
            yield from _about_filter(proxy, agreed)
    if not agreed.comparable:
        yield Finding(
            machine.swift_conf,
            'the hash path is not that of the proxies, so the files of this '
            'machine were not compared with them',
            'copy swift.conf from a proxy, and restart what runs here',
        )
    if agreed.version not in (None, machine.version):
        yield Finding(
            'this machine',
            f'shardmw {machine.version}, most proxies have {agreed.version}',
            'install the same version on all machines',
        )


def _about_clock(proxy: Proxy) -> Iterator[Finding]:
    seconds = proxy.clock_seconds
    if abs(seconds) > CLOCK_SECONDS:
        way = 'ahead of' if seconds > 0 else 'behind'
        yield Finding(
            proxy.url,
            f'its clock is at least {abs(seconds):.0f} s {way} that of this '
            'machine',
            'synchronize the clocks: the newest row wins',
        )


def _about_filter(proxy: Proxy, agreed: Agreement) -> Iterator[Finding]:
    """Yield in what a proxy with the filter differs from most."""
    version = proxy.info.get('version')
    if version not in (None, agreed.version):
        yield Finding(
            proxy.url,
            f'shardmw {version}, most proxies have {agreed.version}',
            'install the same version on all machines',
        )
    yield from _about_options(proxy, agreed)
    hash_path = proxy.digest('hash_path')
    if hash_path is None:
        yield Finding(
            proxy.url,
            f'{NOT_CHECKED}/info shows no digests of shardmw',
            'upgrade shardmw there, or remove shardmw.digests from '
            'disallowed_sections',
        )
    elif hash_path != agreed.hash_path:
        yield Finding(
            proxy.url,
            'it has another hash path in swift.conf, so it was not probed, '
            'and its memcached servers and hidden options were not compared',
            'stop the proxy, and copy swift.conf from another one: it looks '
            'for all objects in other places',
        )
    else:
        yield from _about_memcached(proxy, agreed)


def _about_options(proxy: Proxy, agreed: Agreement) -> Iterator[Finding]:
    different = [
        f'{name} = {json.dumps(proxy.info.get(name))} instead of '
        f'{json.dumps(agreed.options.get(name))}'
        for name in SHOWN_OPTIONS
        if proxy.info.get(name) != agreed.options.get(name)
    ]
    is_comparable = proxy.digest('hash_path') == agreed.hash_path
    if different:
        text = ', '.join(different)
    elif is_comparable and proxy.digest('options') != agreed.options_digest:
        text = f'{" or ".join(HIDDEN_OPTIONS)} differs'
    else:
        return
    yield Finding(
        proxy.url,
        f'its options are not those of {agreed.model.url}: {text}',
        'set the same options in [filter:shardmw] of all proxies, and reload',
    )


def _about_memcached(proxy: Proxy, agreed: Agreement) -> Iterator[Finding]:
    memcached = proxy.digest('memcache')
    if memcached is None:
        yield Finding(
            proxy.url,
            f"{NOT_CHECKED}its cache filter is not Swift's",
            'compare its memcached servers with those of other proxies by '
            'hand',
        )
    elif memcached != agreed.memcached:
        yield Finding(
            proxy.url,
            'its memcached servers are not those of most proxies',
            'name the same memcache_servers, in the same words, in all '
            'proxies. A loopback address is another server on each machine',
        )


def _options_of(proxy: Proxy) -> str:
    """Return the options of a proxy as far as they are known, as a text."""
    shown = {name: proxy.info.get(name) for name in SHOWN_OPTIONS}
    return json.dumps([proxy.digest('options'), shown], sort_keys=True)


def _most_common(values: Iterable[Hashable]):
    """Return the most common value, of several the first; None if no value."""
    common = Counter(values).most_common(1)
    return common[0][0] if common else None
