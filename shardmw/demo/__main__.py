# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m shardmw.demo``."""

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
from types import FrameType
from typing import NoReturn

import click
import requests
from botocore.exceptions import BotoCoreError
from botocore.exceptions import ClientError as S3ClientError
from swiftclient import ClientException

from shardmw.demo.archive import Build, builds
from shardmw.demo.screen import Screen
from shardmw.demo.steps import (
    CONTAINER_WRITES_PER_SECOND,
    SHARDED,
    STEPS,
    DemoError,
    Stage,
)
from shardmw.saio import Cluster, ClusterOptions, SaioError
from shardmw.saio.topology import HOST

# What the shell says of commands that a signal ended.
_ENDED_BY_SIGNAL = 128

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
    help='Console logs to upload.',
)
@click.option(
    '--shards',
    type=click.IntRange(1, 512),
    default=32,
    show_default=True,
    help='Shards to spread them over.',
)
@click.option(
    '--clients',
    type=click.IntRange(1, 256),
    default=16,
    show_default=True,
    help='Clients that upload at once.',
)
@click.option(
    '--keep',
    is_flag=True,
    envvar='KEEP',
    show_envvar=True,
    help='Leave the cluster running.',
)
def main(objects: int, shards: int, clients: int, keep: bool) -> None:
    """Archive a CI's console logs in one sharded container.

    It brings up a Swift of its own, on loopback and in a temporary folder,
    and takes it down at the end.
    """
    # ended from outside, clean up as at the end
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit_by_signal)
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
        'A Swift of its own',
        'Real servers on loopback, with shardmw in the proxy; nothing faked.',
    )
    with _cluster(keep) as cluster:
        screen.line(
            f'{len(cluster.servers)} servers are up, behind '
            f'{cluster.proxy_urls[0]}'
        )
        stage = Stage(screen, cluster, archive, shards, clients)
        for number, step in enumerate(STEPS, 2):
            screen.heading(number, step.title, step.why)
            step.play(stage)
    seconds = time.monotonic() - began
    if keep:
        click.echo(f'\nDone in {seconds:.0f} s. The cluster stays up.\n')
        click.echo(_how_to_use(stage))
    else:
        click.echo(
            f'\nDone in {seconds:.0f} s. The cluster is down again; this '
            'leaves it up: make demo KEEP=1'
        )


@contextmanager
def _cluster(keep: bool) -> Iterator[Cluster]:
    """A cluster, down and gone at the end unless it's kept and all is well."""
    path = tempfile.mkdtemp(prefix='shardmw-demo-')
    limit = str(CONTAINER_WRITES_PER_SECOND)
    settings = {'shardmw.container_ratelimit_0': limit}
    cluster = Cluster(path, ClusterOptions(settings=settings))
    stays_up = False
    try:
        cluster.up()
        yield cluster
        stays_up = keep
    finally:
        if not stays_up:
            # another Ctrl-C must not leave half of it running
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            cluster.down()
            shutil.rmtree(path, ignore_errors=True)


def _how_to_use(stage: Stage) -> str:
    """What to do with a cluster that stays up, and how to end it."""
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

To end it:
  {bin_path}/shardmw-saio down {path} && rm -r {path}"""


def _exit_by_signal(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(_ENDED_BY_SIGNAL + number)


def _reach_loopback_directly() -> None:
    """Have no client ask a web proxy for what is on this machine."""
    for name in 'no_proxy', 'NO_PROXY':
        others = os.environ.get(name)
        os.environ[name] = f'{others},{HOST}' if others else HOST


if __name__ == '__main__':
    main()
