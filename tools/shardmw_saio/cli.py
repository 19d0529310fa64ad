# SPDX-License-Identifier: Apache-2.0
"""The command line: ``shardmw-saio``."""

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from shardmw.admin.cli import main as admin_main
from shardmw.admin.completion import completion_help
from shardmw_saio import logs as log_files
from shardmw_saio.cluster import DAEMON_NAMES, Cluster
from shardmw_saio.errors import SaioError
from shardmw_saio.folder import Folder
from shardmw_saio.options import (
    ClusterOptions,
    check_are_set,
    check_same_structure,
    parse_setting,
)
from shardmw_saio.signals import ENDED_BY_SIGNAL, raise_at_signals
from shardmw_saio.status import RUNNING

DIR_VARIABLE = 'SHARDMW_SAIO_DIR'
DEFAULT_PORT = 8080

# The exit code of a shell for a command that cannot be run.
_COMMAND_NOT_RUN = 127

# The exit code of an init script for a service that does not run.
_NOT_RUNNING = 3

_FOLLOW_SECONDS = 0.1


class _Commands(click.Group):
    """A group whose commands fail with one line on stderr."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except (SaioError, PermissionError) as err:
            raise click.ClickException(str(err)) from err


@click.group(cls=_Commands, epilog=completion_help('shardmw-saio'))
def main() -> None:
    """Run a real Swift on this machine, with shardmw in proxies and daemons.

    The cluster listens on 127.0.0.1 only and stores everything in one folder.
    To try it:

    \b
        shardmw-saio up
        eval "$(shardmw-saio env)"
        swift upload pictures cat.jpg
        shardmw-saio purge

    The folder is DIR or --dir, or else $SHARDMW_SAIO_DIR, or else
    ~/.local/state/shardmw-saio.
    """
    # A command that a signal ends must clean up, too.
    raise_at_signals()


def _default_dir() -> Path:
    if chosen := os.environ.get(DIR_VARIABLE):
        return Path(chosen)
    state = os.environ.get('XDG_STATE_HOME') or Path.home() / '.local/state'
    return Path(state) / 'shardmw-saio'


def _dir_argument(command: Callable) -> Callable:
    return click.argument(
        'dir_argument',
        metavar='[DIR]',
        required=False,
        type=click.Path(path_type=Path),
    )(command)


def _dir_option(command: Callable) -> Callable:
    return click.option(
        '--dir',
        'dir_option',
        metavar='DIR',
        type=click.Path(path_type=Path),
        help='The folder of the cluster.',
    )(command)


def _shape_options(command: Callable) -> Callable:
    """Add the options that a cluster is made with."""
    for option in reversed(
        [
            click.option(
                '--proxies', type=int, help='Number of proxy servers. [1]'
            ),
            click.option(
                '--replicas',
                type=int,
                help='Number of copies of all data, and of storage nodes. '
                'Fixed when the cluster is made. [1]',
            ),
            click.option(
                '--devices',
                type=int,
                help='Number of devices on all nodes together. Fixed when '
                'the cluster is made. [one per replica]',
            ),
            click.option(
                '--policies',
                type=int,
                help='Number of storage policies. Fixed when the cluster is '
                'made. [1]',
            ),
            click.option(
                '--workers',
                type=int,
                help='Number of worker processes of each server. 0: the '
                'server itself answers requests. [0]',
            ),
            click.option(
                '--encryption/--no-encryption',
                default=None,
                help='Encrypt objects at rest. Fixed when the cluster is '
                'made. [no]',
            ),
            click.option(
                '--daemons/--no-daemons',
                default=None,
                help="Run Swift's daemons in the background, such as the one "
                'that updates the counts in account listings. '
                '[yes; run: no]',
            ),
            click.option(
                '--port',
                type=int,
                help='Port of the first proxy. The other servers get the '
                f'next ones. 0: any free ports. [{DEFAULT_PORT}; run: 0]',
            ),
            click.option(
                '--set',
                'settings',
                metavar='SECTION.OPTION=VALUE',
                multiple=True,
                help='Set an option of a filter, a server or a daemon, such '
                'as shardmw.default_shards=8. Can be repeated.',
            ),
            click.option(
                '--unset',
                metavar='SECTION.OPTION',
                multiple=True,
                help='Remove a setting that an earlier --set has made. Can '
                'be repeated.',
            ),
        ]
    ):
        command = option(command)
    return command


@main.command()
@_dir_argument
@_dir_option
@_shape_options
def up(
    dir_argument: Path | None, dir_option: Path | None, **shape: object
) -> None:
    """Start the cluster, or change its options.

    The first call makes the cluster. It remembers its options, so later calls
    need none. A call with other options restarts the servers that use them.
    If an option is invalid, or a server does not start with it, the cluster
    keeps the options that it had.
    """
    began = time.monotonic()
    path = dir_argument or dir_option or _default_dir()
    cluster = Cluster(
        path, _shaped(path, shape, port=DEFAULT_PORT, daemons=True)
    )
    started = cluster.up()
    if not started:
        click.echo(f'already up in {cluster.path}')
        return
    seconds = time.monotonic() - began
    click.echo(f'up in {cluster.path} after {seconds:.1f} s')
    for url in cluster.proxy_urls:
        click.echo(f'  {url}')


@main.command()
@_dir_argument
@_dir_option
def down(dir_argument: Path | None, dir_option: Path | None) -> None:
    """Stop the cluster, and keep its data and options."""
    cluster = Cluster(dir_argument or dir_option or _default_dir())
    if cluster.down():
        click.echo(f'down in {cluster.path}')
        return
    # Raise an error if there is no such cluster: DIR may be mistyped.
    cluster.options  # noqa: B018
    click.echo(f'already down in {cluster.path}')


@main.command()
@_dir_argument
@_dir_option
@click.option('--yes', is_flag=True, help='Delete without asking.')
def purge(
    dir_argument: Path | None, dir_option: Path | None, yes: bool
) -> None:
    """Stop the cluster, and delete it with its data and options.

    Files in the folder that do not belong to the cluster are not deleted.
    """
    cluster = Cluster(dir_argument or dir_option or _default_dir())
    # Raise an error if there is no such cluster, before asking.
    cluster.options  # noqa: B018
    if not yes:
        click.confirm(
            f'Delete the cluster in {cluster.path} with all its data?',
            abort=True,
        )
    others = cluster.purge()
    click.echo(f'deleted {cluster.path}')
    if others:
        click.echo('  other files are still there: ' + ', '.join(others))


@main.command()
@_dir_argument
@_dir_option
@click.pass_context
def status(
    context: click.Context, dir_argument: Path | None, dir_option: Path | None
) -> None:
    """Show the state of each server.

    The exit code is 3 if a server is not running.
    """
    cluster = Cluster(dir_argument or dir_option or _default_dir())
    all_run = True
    for each in cluster.status():
        all_run = all_run and each.state == RUNNING
        click.echo(
            f'{each.server.name:<12} {each.state:<14} {each.pid or "-":>8}  '
            f'{each.server.address}'
        )
    context.exit(0 if all_run else _NOT_RUNNING)


@main.command()
@click.argument('server', required=False)
@_dir_option
@click.option(
    '-n',
    '--lines',
    default=10,
    show_default=True,
    help='Number of lines to show.',
)
@click.option(
    '-f', '--follow', is_flag=True, help='Print new lines as they come.'
)
def logs(
    server: str | None, dir_option: Path | None, lines: int, follow: bool
) -> None:
    """Show the end of the log of SERVER, or of all servers and daemons.

    SERVER is a name that status shows, such as proxy-1, or the name of a
    daemon, such as container-updater.
    """
    cluster = Cluster(dir_option or _default_dir())
    names = [server] if server else [*cluster.servers, *DAEMON_NAMES]
    paths = [cluster.log_path(name) for name in names]
    if server and not paths[0].exists():
        raise SaioError(f'{server} has no log: it has not run yet')
    with contextlib.suppress(KeyboardInterrupt):
        _show_logs(paths, lines, follow)


@main.command()
@_dir_argument
@_dir_option
def env(dir_argument: Path | None, dir_option: Path | None) -> None:
    """Print the environment variables that clients of the cluster need.

    With these variables set, the swift command and programs that use boto3
    need no other settings. In a shell:

    \b
        eval "$(shardmw-saio env)"
    """
    cluster = Cluster(dir_argument or dir_option or _default_dir())
    for name, value in cluster.environment().items():
        click.echo(f'export {name}={shlex.quote(value)}')


@main.command(context_settings={'allow_interspersed_args': False})
@_dir_option
@_shape_options
@click.argument('command', nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(
    context: click.Context,
    dir_option: Path | None,
    command: Sequence[str],
    **shape: object,
) -> None:
    """Run COMMAND on a cluster, and exit with its exit code.

    The cluster is started before the command and stopped after it, unless it
    is up already. Without --dir, the command gets a new cluster in a temporary
    folder, which is deleted afterwards. COMMAND has the environment variables
    that env prints.
    """
    with _dir_or_temporary(dir_option) as path:
        cluster = Cluster(path, _shaped(path, shape))
        with _up_meanwhile(cluster):
            code = _run_command(command, cluster.environment())
    context.exit(code)


@main.command()
@click.argument('name')
@_dir_option
def daemon(name: str, dir_option: Path | None) -> None:
    """Run one pass of the daemon NAME on all its nodes, and wait for it.

    For example, a pass of container-updater updates the counts in listings of
    the account.
    """
    cluster = Cluster(dir_option or _default_dir())
    cluster.daemon(name)
    click.echo(f'{name} ran: to see what it did: shardmw-saio logs {name}')


@main.command(
    context_settings={
        'allow_interspersed_args': False,
        'ignore_unknown_options': True,
        'help_option_names': [],
    }
)
@_dir_option
@click.argument('arguments', nargs=-1, type=click.UNPROCESSED)
def admin(dir_option: Path | None, arguments: Sequence[str]) -> None:
    """Run shardmw-admin on the cluster, as in: admin list AUTH_test."""
    cluster = Cluster(dir_option or _default_dir())
    if '--help' not in arguments:
        cluster.options  # noqa: B018 (an error if there is no such cluster)
    admin_main(
        ['--swift-dir', str(cluster.swift_dir), *arguments],
        prog_name='shardmw-saio admin',
    )


def _shaped(
    path: Path, shape: Mapping[str, object], **defaults: object
) -> ClusterOptions:
    """Return the options of a cluster, changed by those of the command.

    :param shape: the options of the command; None for those not given
    :param defaults: the defaults of a new cluster
    """
    given = {
        name: value
        for name, value in shape.items()
        if name not in ('settings', 'unset') and value is not None
    }
    stored = Folder(path).load()
    if stored is None:
        options = ClusterOptions(**{**defaults, **given})
    else:
        check_same_structure(stored.options, given)
        options = stored.options.changed(**given)
    check_are_set(options, shape['unset'])
    changes = dict.fromkeys(shape['unset'])
    changes.update(map(parse_setting, shape['settings']))
    return options.with_settings(changes)


def _show_logs(paths: Sequence[Path], count: int, follow: bool) -> None:
    positions = {}
    for path in paths:
        positions[path] = log_files.size(path)
        last = log_files.last_lines(path, count)
        if last and len(paths) > 1:
            click.echo(f'==> {path.stem} <==')
        for line in last:
            click.echo(line)
    while follow:
        for path in paths:
            new = log_files.read_from(path, positions[path])
            positions[path] += len(new)
            click.echo(new, nl=False)
        time.sleep(_FOLLOW_SECONDS)


@contextlib.contextmanager
def _dir_or_temporary(path: Path | None) -> Iterator[Path]:
    if path is not None:
        yield path
        return
    temporary = tempfile.mkdtemp(prefix='shardmw-saio-')
    try:
        yield Path(temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _up_meanwhile(cluster: Cluster) -> Iterator[None]:
    was_up = cluster.has_processes()
    cluster.up()
    try:
        yield
    finally:
        if not was_up:
            cluster.down()


def _run_command(
    command: Sequence[str], environment: Mapping[str, str]
) -> int:
    try:
        process = subprocess.Popen(command, env={**os.environ, **environment})
    except OSError as err:
        click.echo(
            f'Error: {command[0]} cannot be run ({err.strerror})',
            err=True,
        )
        return _COMMAND_NOT_RUN
    try:
        code = _wait(process)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return code if code >= 0 else ENDED_BY_SIGNAL - code


def _wait(process: subprocess.Popen) -> int:
    while True:
        # The command receives Ctrl-C, too, and decides whether it ends.
        with contextlib.suppress(KeyboardInterrupt):
            return process.wait()
