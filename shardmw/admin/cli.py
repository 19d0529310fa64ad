# SPDX-License-Identifier: Apache-2.0
"""The command line: ``shardmw-admin``.

Swift's modules read ``swift.conf`` when they are imported. So modules that use
them are imported only once the folder of that file is known.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

import click

from shardmw import __version__
from shardmw.admin.arguments import (
    ACCOUNT,
    AS_JSON,
    CONTAINER,
    OBJECT,
    ContainerName,
    Name,
)
from shardmw.admin.change_commands import cancel, floor, reshard, status
from shardmw.admin.completion import completion_help
from shardmw.admin.doctor.command import doctor
from shardmw.admin.names import parse_name
from shardmw.admin.object_commands import empty, export
from shardmw.admin.printing import (
    print_json,
    print_pairs,
    print_table,
    printable,
)
from shardmw.core.layout import Sharding
from shardmw.core.paths import Path as SwiftPath
from shardmw.core.paths import Place
from shardmw.reshard.errors import FOUND, AdminError
from shardmw.reshard.shard_advice import (
    NEAR,
    ROWS_PER_SHARD,
    Finding,
    Listed,
    findings_among,
)
from shardmw.reshard.swift_folder import use_swift_dir

SWIFT_DIR = '/etc/swift'
CONF_NAME = 'internal-client.conf'

#: The advice for a container with a shard that a few directories fill.
OTHER_DEPTH = '--depth 0, or a greater one'

#: The advice for a container whose layout changes.
UNDER_WAY = 'wait: it becomes {}'


class _Commands(click.Group):
    """A group whose commands fail with one line on stderr."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except Exception as err:
            text = _text_of(err)
            if text is None:
                raise
            raise click.ClickException(text) from err


@click.group(cls=_Commands, epilog=completion_help('shardmw-admin'))
@click.option(
    '--swift-dir',
    type=click.Path(path_type=Path, file_okay=False),
    default=SWIFT_DIR,
    show_default=True,
    help=f'The folder with swift.conf, the rings and {CONF_NAME}.',
)
@click.option(
    '--conf',
    type=click.Path(path_type=Path, dir_okay=False),
    help=f'The configuration to use instead of {CONF_NAME} in that folder.',
)
@click.version_option(__version__)
@click.pass_context
def main(context: click.Context, swift_dir: Path, conf: Path | None) -> None:
    """Inspect, check and change the sharded containers of a Swift cluster.

    The command runs on any machine that can reach the storage nodes and has
    swift.conf, the rings, and an internal-client.conf with the filter shardmw.

    A/C is a container, such as AUTH_ci/logs, and A/C/O an object in it.
    Account names have their reseller prefix. Names are unquoted
    as in a URL: write % as %25.

    Exit codes: 0 for success; 1 if a problem was found or the command failed;
    2 for wrong usage.
    """
    context.obj = lambda: _open(swift_dir, conf)


@main.command('list')
@ACCOUNT
@AS_JSON
@click.pass_context
def list_(
    context: click.Context, account: tuple[str] | None, as_json: bool
) -> None:
    """List the sharded containers of ACCOUNT, or of all accounts.

    The counts are those of the last report of container-updater. The exit
    code is 1 if the layout of a container cannot be read.
    """
    survey = _survey(context.obj)
    listed = [
        each
        for name in _accounts(survey, account)
        for each in survey.containers(name)
        if each.shards or each.problem or each.phase
    ]
    _report_problems(listed)
    whole = [each for each in listed if not each.problem]
    if as_json:
        print_json(map(asdict, listed))
    elif whole:
        print_table(
            (
                'container',
                'shards',
                'depth',
                'objects',
                'bytes',
                'fullest shard',
                'phase',
            ),
            [
                (
                    printable(f'{each.account}/{each.container}'),
                    each.shards,
                    each.depth,
                    each.objects,
                    each.bytes,
                    each.fullest,
                    each.phase,
                )
                for each in whole
            ],
        )
    context.exit(0 if len(whole) == len(listed) else FOUND)


@main.command()
@CONTAINER
@AS_JSON
@click.pass_context
def stat(context: click.Context, container: SwiftPath, as_json: bool) -> None:
    """Show the layout of A/C, and the rows and servers of each shard.

    The counts are read from the databases now. Strays are rows that are in
    the root of a sharded container instead of in a shard. The skew is the
    number of rows of the fullest shard, divided by the mean of all shards.

    The databases are listed last, with their paths below the folder of the
    device. On a storage node, pass the path of a shard to tools that read one
    database. The database of the root has no rows of its objects:

    \b
        swift-container-info /srv/node/DEVICE/DATABASE

    The exit code is 1 if a shard does not answer.
    """
    state = _survey(context.obj).state(container)
    if as_json:
        print_json(state.as_json())
    else:
        print_pairs(
            ('container', printable(f'{state.account}/{state.container}')),
            ('storage policy', state.policy),
            ('layout', state.layout),
            ('layout id', state.layout_id or 'none'),
            ('least shards for auto_shrink', state.floor),
            ('objects', state.objects),
            ('bytes', state.bytes),
            ('strays', state.strays),
            ('skew (fullest shard / mean)', f'{state.skew:.2f}'),
            ('partition of the root', state.partition),
            ('servers of the root', ' '.join(state.nodes)),
            ('database of the root', state.database),
        )
    if state.shards and not as_json:
        click.echo()
        print_table(
            ('backing container', 'rows', 'bytes', 'partition', 'servers'),
            [
                (
                    printable(each.container),
                    each.rows if each.status // 100 == 2 else each.status,
                    each.bytes,
                    each.partition,
                    ' '.join(each.nodes),
                )
                for each in state.shards
            ],
        )
        click.echo()
        print_table(
            ('backing container', 'database'),
            [
                (printable(each.container), each.database)
                for each in state.shards
            ],
        )
    context.exit(0 if state.is_whole else FOUND)


@main.command()
@OBJECT
@AS_JSON
@click.pass_context
def locate(
    context: click.Context, name: tuple[str, str, str], as_json: bool
) -> None:
    """Show which servers should have object A/C/O and its row, and which do.

    The exit code is 1 if no server has the object, or no server has the row.
    """
    account, container, object_name = name
    path = Place(account, container).path
    found = _survey(context.obj).locate(path, object_name)
    if as_json:
        print_json(asdict(found))
    else:
        print_pairs(
            (
                'object',
                printable(f'{found.account}/{found.container}/{found.name}'),
            ),
            ('shard', 'none' if found.shard is None else found.shard),
            (
                'row in',
                printable(f'{found.row_account}/{found.row_container}'),
            ),
            ('partition of the row', found.row_partition),
            *_replica_lines('row', found.row_replicas),
            ('storage policy', found.policy),
            ('partition of the object', found.object_partition),
            *_replica_lines('object', found.object_replicas),
        )
    context.exit(0 if found.is_there else FOUND)


@main.command()
@click.argument('accounts', metavar='[ACCOUNT]...', type=Name(1), nargs=-1)
@click.option(
    '--accounts-from',
    metavar='FILE',
    type=click.File(encoding='utf-8', errors='surrogateescape'),
    help='Also check the accounts in this file, one per line; -: stdin.',
)
@click.option(
    '--rows-per-shard',
    type=click.IntRange(min=1),
    default=ROWS_PER_SHARD,
    show_default=True,
    help='The most rows that one database should have.',
)
@AS_JSON
@click.pass_context
def check(
    context: click.Context,
    accounts: tuple[tuple[str], ...],
    accounts_from: TextIO | None,
    rows_per_shard: int,
    as_json: bool,
) -> None:
    """List the containers whose largest database is too large, or nearly.

    Without an account, the command checks only those accounts that have had
    a sharded container: no Swift server lists all accounts. For a file with
    all of them, ask Keystone, or read their names on the storage nodes; "From
    cron" in the operating documentation has the commands.

    The command checks plain and sharded containers, and lists those that have
    a database with at least 80 % of --rows-per-shard. While the layout of a
    container changes, the databases of both layouts count.

    The advised number of shards leaves room for twice as many objects. If a
    container is sharded by directory and one shard has far more rows than the
    others, another depth is advised instead: more shards would not help.

    Containers that Swift's own sharder has split are left out: no single
    database has all of their rows. reshard converts them.

    The counts are those of the last report of container-updater. The exit
    code is 1 if a container is listed, or if its layout or an account cannot
    be read.
    """
    named = [name for (name,) in accounts]
    if accounts_from:
        named += _accounts_in(accounts_from)
    survey = _survey(context.obj)
    is_named = bool(accounts or accounts_from)
    listed, problems = [], 0
    for name in dict.fromkeys(named) if is_named else survey.accounts():
        try:
            if is_named:
                survey.cluster.check_account(name)
            listed += survey.containers(name, NEAR * rows_per_shard)
        except Exception as err:
            text = _text_of(err)
            if text is None:
                raise
            click.echo(f'Error: {text}', err=True)
            problems += 1
    problems += _report_problems(listed)
    findings = list(findings_among(listed, rows_per_shard))
    if as_json:
        print_json(map(asdict, findings))
    elif findings:
        print_table(
            ('container', 'shards', 'depth', 'fullest', 'limit', 'advised'),
            [
                (
                    printable(f'{each.account}/{each.container}'),
                    each.shards,
                    each.depth,
                    each.fullest,
                    'exceeded' if each.is_over else 'near',
                    _advice(each),
                )
                for each in findings
            ],
        )
    context.exit(FOUND if findings or problems else 0)


@main.command()
@click.argument(
    'container',
    metavar='[A/C]',
    type=ContainerName(of_clients=True),
    required=False,
)
@click.option(
    '--account',
    type=Name(1, of_clients=True),
    help='Audit all containers of this account.',
)
@click.option(
    '--objects',
    is_flag=True,
    help='Also check that the object of each row exists, which is slow.',
)
@click.option('--repair', is_flag=True, help='Repair what is found.')
@click.option(
    '--accept-loss',
    is_flag=True,
    help='With --repair: also create lost shards anew, without their rows. '
    'Afterwards, run the object-auditors with action = relist.',
)
@AS_JSON
@click.pass_context
def audit(
    context: click.Context,
    container: SwiftPath | None,
    account: tuple[str] | None,
    objects: bool,
    repair: bool,
    accept_loss: bool,
    as_json: bool,
) -> None:
    """Find misplaced rows, missing shards and leftover backing containers.

    The command looks at A/C, or at all containers of an account. It finds
    missing shards, rows in the wrong shard or in the root, objects that
    are listed twice, and backing containers of earlier layouts or of no
    container. With --objects it also finds rows of objects that do not exist.
    A container whose layout is changing, or that cannot be read, is listed
    but not audited. What is not repaired is listed with the reason.

    If a shard is lost on all servers, so are its rows: its objects can still
    be read, but are not listed. Until its database is put back from a backup
    or another disk, listings of the container fail. With --accept-loss,
    --repair creates an empty shard instead: listings then work, and lack
    these rows. The object-auditors write them again: set action = relist of
    the watcher shardmw#dark_data, run them, and audit the container again.

    The exit code is 1 if a problem was found and is not repaired.
    """
    if (container is None) == (account is None):
        raise click.UsageError(
            'Name either a container, A/C, or an account with --account.'
        )
    if accept_loss and not repair:
        raise click.UsageError('--accept-loss is for --repair: add that.')
    cluster = context.obj()
    cluster.check_filter()
    from shardmw.admin.audit import (
        FAILED,
        MISSING_SHARD,
        REMEDY,
        Audit,
        mended,
    )

    name = container.account if container else account[0]
    if account:
        cluster.check_account(name)
    auditor = Audit(cluster, name, objects, accept_loss)
    only = container.container if container else None
    found = left = auditor.look(only)
    if repair and found:
        failures = auditor.repair_all(found)
        left = auditor.look(only) + failures
        left = auditor.with_reasons(left, failures)
    is_mended = mended(found, left)
    shown = list({each: each for each in [*found, *left]}.values())
    errors = {
        each.container: REMEDY for each in left if each.kind == MISSING_SHARD
    }
    errors |= {
        each.container: each.reason for each in shown if each.kind == FAILED
    }
    for each, text in errors.items():
        click.echo(f'Error: {printable(f"{name}/{each}: {text}")}', err=True)
    if as_json:
        print_json(
            {**each.as_json(), 'is_mended': each in is_mended}
            for each in shown
        )
    elif shown:
        print_table(
            ('problem', 'container', 'name', 'result'),
            [
                (
                    each.kind,
                    printable(each.container),
                    printable(each.name),
                    'mended' if each in is_mended else printable(each.reason),
                )
                for each in shown
            ],
        )
    context.exit(FOUND if left else 0)


for _command in (reshard, status, cancel, floor, export, empty, doctor):
    main.add_command(_command)


def _accounts_in(file: Iterable[str]) -> list[str]:
    """Return the accounts that a file names, one per line.

    :raises AdminError: if the file names none, or a name cannot be read
    """
    lines = [line.strip() for line in file]
    names = [name for line in lines if line for name in parse_name(line, 1)]
    if not names:
        raise AdminError('--accounts-from: the file names no account')
    return names


def _advice(finding: Finding) -> int | str:
    """Return what to do about a container."""
    if finding.phase:
        return UNDER_WAY.format(Sharding(finding.advised_shards, 0))
    return OTHER_DEPTH if finding.is_uneven else finding.advised_shards


def _accounts(survey, account: tuple[str] | None) -> Iterable[str]:
    """Return the accounts to look through.

    :param account: the account that was named, None for all
    :raises AdminError: if it does not exist
    """
    if account:
        survey.cluster.check_account(*account)
    return account or survey.accounts()


def _open(swift_dir: Path, conf: Path | None):
    """Return the cluster of a folder.

    :raises AdminError: if swift.conf or the configuration cannot be read
    """
    use_swift_dir(swift_dir)
    from shardmw.reshard.cluster import open_cluster

    return open_cluster(conf or swift_dir / CONF_NAME, swift_dir)


def _text_of(err: Exception) -> str | None:
    """Return the line to print for an error, None for an unexpected one."""
    if isinstance(err, AdminError):
        return printable(str(err))
    # These imports fail if swift.conf is invalid, which is an AdminError.
    from shardmw.backend.containers import BackendError
    from shardmw.core.layout import LayoutError

    if isinstance(err, LayoutError):
        return f'layout record: {err}'
    return printable(str(err)) if isinstance(err, BackendError) else None


def _survey(connect: Callable):
    cluster = connect()
    cluster.check_filter()
    from shardmw.reshard.survey import Survey

    return Survey(cluster)


def _report_problems(listed: Iterable[Listed]) -> int:
    """Print on stderr what could not be read; return how many there are."""
    problems = [each for each in listed if each.problem]
    for each in problems:
        name = f'{each.account}/{each.container}'
        click.echo(f'Error: {printable(f"{name}: {each.problem}")}', err=True)
    return len(problems)


def _replica_lines(
    what: str, replicas: Iterable[dict]
) -> list[tuple[str, str]]:
    words = {True: 'is there', False: 'is not there', None: 'does not answer'}
    return [
        (
            f'{what} on {replica["server"]}/{replica["device"]}',
            words[replica['has_it']],
        )
        for replica in replicas
    ]
