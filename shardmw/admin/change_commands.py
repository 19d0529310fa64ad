# SPDX-License-Identifier: Apache-2.0
"""The commands that change layouts: reshard, status and cancel."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone

import click
from click.core import ParameterSource

from shardmw.admin.arguments import (
    AS_JSON,
    CLIENTS_CONTAINER,
    CONTAINER,
    Seconds,
)
from shardmw.admin.interrupts import interruptible
from shardmw.admin.printing import (
    print_json,
    print_table,
    printable,
    report_seconds,
)
from shardmw.core.layout import DEPTH_LIMIT, MOVING, Sharding
from shardmw.core.paths import Path
from shardmw.reshard.errors import FOUND, AdminError

DETACHED = 'announced; shardmw-resharder goes on with it'
CANCELLED = 'cancelled; shardmw-resharder moves its rows back'

#: The options that shardmw-resharder takes from its own configuration.
OF_DAEMON = (
    'info_cache_seconds',
    'settle_seconds',
    'rows_per_second',
    'sync_seconds',
    'ask_for_objects',
)


def _move_options(command: Callable) -> Callable:
    """Add the options of all commands that move rows."""
    for option in (
        click.option(
            '--detach',
            is_flag=True,
            help='Only announce the change: shardmw-resharder makes it in '
            'the background, with its own options.',
        ),
        click.option(
            '--info-cache-seconds',
            type=Seconds(),
            help='How long proxies cache container info. Default: the larger '
            'one of recheck_container_existence and '
            'recheck_account_existence in the configuration.',
        ),
        click.option(
            '--settle-seconds',
            type=Seconds(),
            default=86400,
            show_default=True,
            help='How long the places that rows are moved from must stay '
            'empty before the change ends.',
        ),
        click.option(
            '--rows-per-second',
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help='The most rows to move per second. 0: no limit.',
        ),
        click.option(
            '--sync-seconds',
            type=Seconds(),
            default=360,
            show_default=True,
            help='How long container-sync may take to visit a container: the '
            'sum of its options interval and container_time. Only used for '
            'containers that sync.',
        ),
        click.option(
            '--ask-for-objects',
            is_flag=True,
            help='Check that the object of each row exists before the row is '
            'moved. This is slow, and only needed if object servers may hold '
            'deletions that they have not reported yet.',
        ),
        AS_JSON,
    ):
        command = option(command)
    return command


@click.command()
@CONTAINER
@click.argument('shards', metavar='N', type=click.IntRange(0, 1024))
@click.option(
    '--depth',
    metavar='K',
    type=click.IntRange(0, DEPTH_LIMIT),
    help='Shard by the first K directories of a name; 0: by the whole name. '
    'Default: the present depth.',
)
@click.option(
    '--dry-run', is_flag=True, help='Print what would be done, and exit.'
)
@click.option(
    '--despite-backlog',
    is_flag=True,
    help='Begin even if object servers have updates of containers to deliver, '
    'or do not say whether they have. The rows of objects that were deleted '
    'before may stay listed.',
)
@_move_options
@click.pass_context
def reshard(
    context: click.Context,
    container: Path,
    shards: int,
    depth: int | None,
    dry_run: bool,
    despite_backlog: bool,
    **options,
) -> None:
    """Change the number of shards of A/C to N. N = 0 makes it plain.

    Clients can read and write during the change. The container with the old
    versions of its objects is changed, too. If the command is interrupted,
    run it again: it continues. A container that Swift's own sharder has split
    is converted as well, when no shard range is being split or shrunk.

    Before it begins, the command asks all object servers how many updates of
    containers they have yet to deliver, and fails if there are any.

    The progress is printed on stderr: as text, or with --json as one JSON
    object per line.
    """
    if depth and not shards:
        raise click.UsageError('--depth needs N > 0: N = 0 has no shards.')
    changes, reporter = _changes(context, options)
    if dry_run:
        with _naming(container):
            plans = changes.plan(container, shards, depth, despite_backlog)
        if options['as_json']:
            print_json(plan.as_json() for plan in plans)
            return
        for plan in plans:
            _print_plan(plan)
        return
    with _naming(container), _interruptible(container, reporter):
        asked = changes.asked(container, shards, depth)
        paths = changes.begin(container, *asked, despite_backlog)
        _finish(changes, paths, reporter, options, DETACHED)
        if not options['detach']:
            _check_result(changes, paths, asked)


@click.command()
@CONTAINER
@_move_options
@click.pass_context
def cancel(context: click.Context, container: Path, **options) -> None:
    """Cancel the change of A/C that is under way, and move its rows back."""
    changes, reporter = _changes(context, options)
    with _naming(container), _interruptible(container, reporter):
        paths = changes.cancel(container)
        _finish(changes, paths, reporter, options, CANCELLED)


@click.command()
@AS_JSON
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """List the changes that are under way or ended within the last week.

    The process that makes a change notes its progress: at most every 30 s
    while rows move, and at least every 5 min. "progress" is the last note and
    its age: if it is much older, no process is working on the change.

    The exit code is 1 if the layout of a container cannot be read.
    """
    changes, _ = _changes(context, {})
    states = list(changes.under_way())
    if as_json:
        print_json(state.as_json() for state in states)
    elif states:
        print_table(
            (
                *('container', 'from', 'to', 'phase', 'since', 'rows left'),
                *('rows/s', 'progress', 'waiting for'),
            ),
            [
                (
                    _shown(state.account, state.container),
                    _former(state),
                    str(Sharding(state.shards, state.depth)),
                    printable(state.phase),
                    datetime.fromtimestamp(
                        int(state.since), timezone.utc
                    ).isoformat(),
                    state.rows_left,
                    *_progress(state),
                )
                for state in states
            ],
        )
    context.exit(0 if all(state.is_known for state in states) else FOUND)


@click.command()
@CLIENTS_CONTAINER
@click.argument(
    'shards', metavar='[N]', type=click.IntRange(0, 1024), required=False
)
@click.pass_obj
def floor(connect: Callable, container: Path, shards: int | None) -> None:
    """Show the least number of shards that auto_shrink leaves A/C, or set it.

    If a client has created A/C with a number of shards of its own, this is the
    least number until another one is set. N = 0 allows any number. The
    command "reshard" is not bound by it.
    """
    cluster = connect()
    cluster.check_filter()
    with _naming(container):
        if shards is None:
            shards = cluster.root(container).answer.floor
        else:
            cluster.root(container)
            cluster.set_floor(container, shards)
    click.echo(f'{_shown(*container.place)}: {shards}')


@contextlib.contextmanager
def _naming(container: Path) -> Iterator[None]:
    """Add the container's name to errors of servers."""
    from shardmw.backend.containers import BackendError

    try:
        yield
    except BackendError as err:
        raise AdminError(f'{container.place}: {err}') from err


def _interruptible(
    container: Path, reporter: '_Reporter'
) -> contextlib.AbstractContextManager[None]:
    """Print the progress of the changes if the user interrupts a block."""
    name = _shown(*container.place)

    def text() -> str:
        state = '; '.join(reporter.states()) or f'{name}: nothing is moved'
        return (
            f'Interrupted: {state}. Clients can read, write and list. '
            '"shardmw-admin status" shows a change that was announced. To go '
            'on with it, run the command again, or shardmw-resharder. To go '
            f'back, run "shardmw-admin cancel {name}".'
        )

    return interruptible(text)


class _Reporter:
    """Prints the progress of changes on stderr, at intervals.

    :param as_json: True to print a JSON object a line, False for text
    :ivar progress: the progress of each container, by name
    """

    def __init__(self, as_json: bool) -> None:
        self.progress: dict[str, object] = {}
        self._as_json = as_json
        self._started: dict[str, float] = {}
        # The phase, problem and rows that were last printed for each
        # container, and when.
        self._printed: dict[str, tuple[str, str, int, float]] = {}
        self._seconds = report_seconds(as_json)

    def __call__(self, name: str, progress) -> None:
        self.progress[name] = progress
        now = time.monotonic()
        state = (progress.phase, progress.problem)
        *printed, moved, when = self._printed.get(name, ('', '', 0, 0.0))
        if state == tuple(printed):
            is_still = moved == progress.moved and not progress.problem
            if is_still or now - when < self._seconds:
                return
        self._printed[name] = (*state, progress.moved, now)
        line = self._json if self._as_json else self._text
        click.echo(line(name, progress, now), err=True)

    def states(self) -> list[str]:
        """Return how far each container's change is, in words."""
        return [
            printable(f'{name}: {each.phase}, {each.moved:,} rows moved')
            for name, each in self.progress.items()
        ]

    def rows_moved(self, state) -> int:
        """Return how many rows of a container this process has moved."""
        progress = self.progress.get(f'{state.account}/{state.container}')
        return progress.moved if progress else 0

    def _json(self, name: str, progress, _now: float) -> str:
        return json.dumps(
            {
                'time': time.time(),
                'container': name,
                'phase': progress.phase,
                'rows_moved': progress.moved,
                'rows': progress.total,
                'problem': progress.problem,
            }
        )

    def _text(self, name: str, progress, now: float) -> str:
        parts = [progress.phase]
        if progress.moved:
            parts.append(f'{progress.moved:,} rows')
        if progress.phase == MOVING:
            seconds = now - self._started.setdefault(name, now)
            rate = progress.moved / max(seconds, 0.001)
            left = max(0, (progress.total or 0) - progress.moved)
            if progress.moved:
                parts.append(f'{rate:,.0f} rows/s')
            if progress.moved and left:
                parts.append(f'about {left / rate:,.0f} s left')
        if progress.problem:
            parts.append(f'waiting: {progress.problem}')
        return printable(f'{name}: ' + ', '.join(parts))


def _changes(context: click.Context, options: dict):
    """Return the changes of the cluster and the reporter of their progress.

    :raises click.UsageError: for options that --detach would ignore
    """
    if options.get('detach'):
        for name in OF_DAEMON:
            if context.get_parameter_source(name) != ParameterSource.DEFAULT:
                flag = f'--{name.replace("_", "-")}'
                raise click.UsageError(
                    f'--detach leaves the change to shardmw-resharder, which '
                    f'has its own options: leave {flag} or --detach out.'
                )
    cluster = context.obj()
    cluster.check_filter()
    from shardmw.reshard.changes import Changes
    from shardmw.reshard.resharding import MoveOptions

    seconds = options.get('info_cache_seconds')
    if seconds is None:
        seconds = cluster.info_cache_seconds
    reporter = _Reporter(options.get('as_json', False))
    move_options = MoveOptions(
        seconds,
        options.get('settle_seconds', 0),
        options.get('rows_per_second', 0),
        options.get('ask_for_objects', False),
        options.get('sync_seconds', 0),
    )
    return Changes(cluster, move_options, reporter), reporter


def _finish(
    changes, paths, reporter: _Reporter, options: dict, detached: str
) -> None:
    """Make announced changes, unless they are left to the daemon.

    :param detached: the text to print for a change that is left to the daemon
    :raises AdminError: if a client has deleted a container meanwhile
    """
    started = time.monotonic()
    if not options['detach']:
        changes.run(paths)
    seconds = time.monotonic() - started
    states = [state for state in map(changes.state, paths) if state]
    if options['as_json']:
        print_json(
            {
                **state.as_json(),
                'rows_moved': reporter.rows_moved(state),
                'seconds': seconds,
            }
            for state in states
        )
    else:
        for state in states:
            name = _shown(state.account, state.container)
            sharding = Sharding(state.shards, state.depth)
            what = detached if options['detach'] else sharding
            click.echo(f'{name}: {what}')
    if deleted := changes.deleted(paths):
        names = ', '.join(map(printable, deleted))
        raise AdminError(f'{names}: a client has deleted it meanwhile')


def _check_result(changes, paths, asked: Sharding) -> None:
    """Check that finished changes have the requested result.

    :raises AdminError: if another process has cancelled one, or a client has
                        replaced the container
    """
    differing = changes.differing(paths, asked)
    if differing:
        found = ', '.join(
            f'{printable(name)}: {sharding}'
            for name, sharding in differing.items()
        )
        raise AdminError(
            f'{found}, not {asked}: the change was cancelled or the container '
            'was replaced meanwhile'
        )


def _print_plan(plan) -> None:
    """Print what a change would do, and when."""
    settles = ''
    if plan.settle_seconds:
        settles = f', then {plan.settle_seconds:,.0f} s to settle'
    click.echo(
        f'{_shown(plan.account, plan.container)}: {plan}: about '
        f'{plan.rows:,} rows to move, about {plan.seconds:,.0f} s{settles}'
    )
    for seconds, text in plan.steps:
        click.echo(f'  after {seconds:>9,.0f} s: {text}')


def _former(state) -> str:
    if state.former is None:
        return ''
    return str(Sharding(state.former, state.former_depth))


def _progress(state) -> tuple[str, str, str]:
    """Return the rate of a change, its last progress and why it waits."""
    progress = state.progress
    if progress is None:
        is_open = state.is_known and state.phase != 'done'
        return '', 'none yet' if is_open else '', ''
    return (
        '' if progress.rate is None else f'{progress.rate:,.0f}',
        f'{progress.phase}, {progress.age:,.0f} s ago',
        printable(progress.problem),
    )


def _shown(account: str, container: str) -> str:
    return printable(f'{account}/{container}')
