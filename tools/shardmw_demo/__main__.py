# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m shardmw_demo``."""

import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import requests
from botocore.exceptions import BotoCoreError
from botocore.exceptions import ClientError as S3ClientError
from shardmw_saio import Cluster, ClusterOptions, SaioError
from shardmw_saio.signals import raise_at_signals
from shardmw_saio.topology import HOST
from swiftclient import ClientException

from shardmw_demo.archive import Build, builds
from shardmw_demo.screen import Screen
from shardmw_demo.steps import (
    CONTAINER_WRITES_PER_SECOND,
    SHARDED,
    STEPS,
    DemoError,
    Stage,
)

_FAILURES = (
    BotoCoreError,
    ClientException,
    DemoError,
    OSError,
    S3ClientError,
    SaioError,
    requests.RequestException,
)


@click.command()
@click.option(
    '--objects',
    type=click.IntRange(min=10),
    default=4000,
    show_default=True,
    help='Number of console logs to upload.',
)
@click.option(
    '--shards',
    type=click.IntRange(1, 512),
    default=32,
    show_default=True,
    help='Number of shards of the container.',
)
@click.option(
    '--clients',
    type=click.IntRange(1, 256),
    default=16,
    show_default=True,
    help='Number of clients that upload concurrently.',
)
@click.option(
    '--keep',
    is_flag=True,
    envvar='KEEP',
    show_envvar=True,
    help='Leave the cluster running at the end.',
)
def main(objects: int, shards: int, clients: int, keep: bool) -> None:
    """Store the console logs of a CI system in one sharded container.

    The demo starts a Swift cluster on this machine, in a temporary folder, and
    removes it at the end.
    """
    # A demo that a signal ends must clean up, too.
    raise_at_signals()
    _reach_loopback_directly()
    try:
        _play(Screen(), builds(objects), shards, clients, keep)
    except _FAILURES as err:
        raise click.ClickException(' '.join(str(err).split())) from err


def _play(
    screen: Screen,
    archive: Sequence[Build],
    shards: int,
    clients: int,
    keep: bool,
) -> None:
    began = time.monotonic()
    screen.heading(
        1,
        'A Swift cluster on this machine',
        'Real servers that listen on 127.0.0.1, with shardmw in the proxy.',
    )
    with _cluster(keep) as cluster:
        screen.line(
            f'{len(cluster.servers)} servers run. The proxy is at '
            f'{cluster.proxy_urls[0]}'
        )
        stage = Stage(screen, cluster, archive, shards, clients)
        for number, step in enumerate(STEPS, 2):
            screen.heading(number, step.title, step.why)
            step.play(stage)
    seconds = time.monotonic() - began
    if keep:
        click.echo(f'\nDone in {seconds:.0f} s. The cluster keeps running.\n')
        click.echo(_how_to_use(stage))
    else:
        click.echo(
            f'\nDone in {seconds:.0f} s. The cluster has been removed. '
            'To keep it: make demo KEEP=1'
        )


@contextmanager
def _cluster(keep: bool) -> Iterator[Cluster]:
    """Start a cluster, and remove it at the end.

    :param keep: True to leave it running if the demo succeeds
    """
    path = tempfile.mkdtemp(prefix='shardmw-demo-')
    limit = str(CONTAINER_WRITES_PER_SECOND)
    settings = {'shardmw.container_ratelimit_0': limit}
    cluster = Cluster(path, ClusterOptions(daemons=keep, settings=settings))
    stays_up = False
    try:
        cluster.up()
        yield cluster
        stays_up = keep
    finally:
        if not stays_up:
            # A second Ctrl-C must not interrupt the removal.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            cluster.down()
            shutil.rmtree(path, ignore_errors=True)


def _how_to_use(stage: Stage) -> str:
    """Return how to use a cluster that keeps running, and how to remove it."""
    bin_path = Path(sys.executable).parent
    with suppress(ValueError):
        bin_path = bin_path.relative_to(Path.cwd())
    path = shlex.quote(str(stage.cluster.path))
    variables = '\n'.join(
        f'  export {name}={shlex.quote(value)}'
        for name, value in stage.cluster.environment().items()
    )
    build = stage.some_build
    return f"""\
In a browser:
  {stage.url(build.day_prefix)}
  {stage.url(build.name)}

For clients of Swift and of S3:
{variables}
  {bin_path}/swift stat {SHARDED}
  {bin_path}/swift list {SHARDED} --prefix {build.day_prefix} --delimiter /

To remove it:
  {bin_path}/shardmw-saio purge --yes {path}"""


def _reach_loopback_directly() -> None:
    """Exclude this machine from the web proxy that the environment sets."""
    for name in 'no_proxy', 'NO_PROXY':
        others = os.environ.get(name)
        os.environ[name] = f'{others},{HOST}' if others else HOST


if __name__ == '__main__':
    main()
