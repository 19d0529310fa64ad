# SPDX-License-Identifier: Apache-2.0
"""Judge the configuration files of one machine: pure.

:mod:`local_files` reads them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from swift.common.utils import config_true_value, list_from_csv

from shardmw.admin.doctor.findings import Finding
from shardmw.admin.doctor.proxies import Agreement
from shardmw.backend.config import Options

#: The watcher of Swift that takes objects of sharded containers for dark data,
#: by the package and the name of its entry point.
SWIFTS_WATCHER = ('swift', 'dark_data')

RESTART = 'correct it, and restart what reads the file'

#: What reads a file with a pipeline. Swift's daemons act on what they find in
#: listings, so there are stricter rules for their files.
PROXY, RESHARDER, DAEMON = 'proxy', 'resharder', 'daemon'


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A file with a pipeline that must have the filter.

    :param kind: PROXY, RESHARDER or DAEMON
    :param users: the programs that use the file
    :param sample: the name of the sample to compare it with
    :param problem: why the pipeline cannot be used, '' if it can
    :param has_filter: True if the filter is in it
    :param options: the options of the filter
    :param options_digest: their digest
    :param memcached: the digest of the memcached servers of the cache filter
    """

    path: str
    kind: str
    users: tuple[str, ...]
    sample: str
    problem: str = ''
    has_filter: bool = True
    options: Options | None = None
    options_digest: str | None = None
    memcached: str | None = None


def about_pipeline(file: PipelineFile, agreed: Agreement) -> Iterator[Finding]:
    """Yield what is wrong with the pipeline of a file."""
    if file.problem:
        yield Finding(file.path, file.problem, RESTART)
    elif not file.has_filter:
        users = ' and '.join(file.users)
        yield Finding(
            file.path,
            f'the pipeline has no filter shardmw, which {users} must have',
            f'add it as the last filter, as {file.sample} has it, and restart '
            'what reads the file',
        )
    else:
        yield from _about_shared(file, agreed)
        if file.kind == DAEMON:
            yield from _about_daemons_options(file)


def _about_shared(file: PipelineFile, agreed: Agreement) -> Iterator[Finding]:
    """Yield in what a file differs from the proxies."""
    shown = agreed.options
    if agreed.comparable and agreed.memcached not in (None, file.memcached):
        yield Finding(
            file.path,
            'its memcached servers are not those of the proxies',
            'name the same memcache_servers, in the same words. A loopback '
            'address is another server on each machine',
        )
    if file.kind == PROXY:
        if agreed.comparable and agreed.options_digest not in (
            None,
            file.options_digest,
        ):
            yield Finding(
                file.path,
                '[filter:shardmw] has other options than the proxies run with',
                'reload the proxies, or correct the file',
            )
        return
    seconds = shown.get('head_cache_seconds')
    if seconds not in (None, file.options.head_cache_seconds):
        yield Finding(
            file.path,
            f'head_cache_seconds = {file.options.head_cache_seconds}, the '
            f'proxies have {seconds}',
            'set the value of the proxies: otherwise they do not see at once '
            'what this program writes',
        )
    if shown.get('max_shards') and not file.options.max_shards:
        yield Finding(
            file.path,
            f'max_shards = 0, the proxies have {shown["max_shards"]}',
            'remove max_shards = 0, which was for the rollout',
        )


def _about_daemons_options(file: PipelineFile) -> Iterator[Finding]:
    kept = file.options.listing_kept_megabytes
    if kept:
        yield Finding(
            file.path,
            f'listing_kept_megabytes = {kept}, must be 0: the listings that '
            'a daemon acts on must not be old',
            'set listing_kept_megabytes = 0 in [filter:shardmw]',
        )
    if file.options.rate_limits.are_set:
        yield Finding(
            file.path,
            '[filter:shardmw] limits rates: the daemons take 498 for an error',
            'remove container_ratelimit_SIZE and '
            'container_listing_ratelimit_SIZE there',
        )


def about_object_server(
    path: str, sections: Mapping[str, Mapping[str, str]]
) -> Iterator[Finding]:
    """Yield what is wrong with an ``object-server.conf``."""
    watchers = sections.get('object-auditor', {}).get('watchers', '')
    for name in list_from_csv(watchers):
        package, _, watcher = name.removeprefix('egg:').rpartition('#')
        if (package or 'swift', watcher) == SWIFTS_WATCHER:
            yield Finding(
                path,
                f"[object-auditor] has Swift's watcher {name}, which takes "
                'the objects of sharded containers for dark data and may '
                'delete them',
                'stop the object-auditors, replace the watcher by '
                'shardmw#dark_data, and start them again',
            )


def about_container_server(
    path: str, sections: Mapping[str, Mapping[str, str]]
) -> Iterator[Finding]:
    """Yield what is wrong with a ``container-server.conf``."""
    sharder = sections.get('container-sharder', {})
    if config_true_value(sharder.get('auto_shard', 'false')):
        yield Finding(
            path,
            "auto_shard is on in [container-sharder]: Swift's sharder would "
            'split shards, too',
            'set auto_shard = false, and restart the container-sharder',
        )
