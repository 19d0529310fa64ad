# SPDX-License-Identifier: Apache-2.0
"""The command line: ``shardmw-admin``.

Swift's modules read ``swift.conf`` when they are imported, so what uses them
is imported once the folder of that file is known.
"""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import click
from swift.common import utils

from shardmw.admin.advice import ROWS_PER_SHARD, Listed, findings_among
from shardmw.admin.arguments import (
    ACCOUNT,
    AS_JSON,
    CONTAINER,
    OBJECT,
    Name,
)
from shardmw.admin.changing import cancel, reshard, status
from shardmw.admin.errors import AdminError
from shardmw.admin.printing import (
    print_json,
    print_pairs,
    print_table,
    printable,
)

SWIFT_DIR = '/etc/swift'
CONF_NAME = 'internal-client.conf'

#: The advice for a container of which a few directories fill a shard.
OTHER_DEPTH = '--depth 0, or a greater one'

#: The exit code of a command that found something, or failed.
FOUND = 1


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


@click.group(cls=_Commands)
@click.option(
    '--swift-dir',
    type=click.Path(path_type=Path, file_okay=False),
    default=SWIFT_DIR,
    show_default=True,
    help=f'The folder of swift.conf, the rings and {CONF_NAME}.',
)
@click.option(
    '--conf',
    type=click.Path(path_type=Path, dir_okay=False),
    help=f'Another file than {CONF_NAME} there.',
)
@click.pass_context
def main(context: click.Context, swift_dir: Path, conf: Path | None) -> None:
    """Look into the sharded containers of a Swift cluster, and change them.

    Runs on any machine that has the rings and an internal-client.conf with
    shardmw. A name is ACCOUNT/CONTAINER, quoted as in a URL or not.

    Exit codes: 0 for success, 1 if something was found or has failed, 2 for
    wrong usage.
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

    The figures are those that container-updater has reported. Exits with 1 if
    the layout of a container cannot be read.
    """
    survey = _survey(context.obj)
    listed = [
        each
        for name in account or survey.accounts()
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
def stat(
    context: click.Context, container: tuple[str, str], as_json: bool
) -> None:
    """Show the layout of A/C, and what each shard holds and where.

    The figures are those of the databases now. Exits with 1 if a shard does
    not answer.
    """
    state = _survey(context.obj).state(*container)
    if as_json:
        print_json(state.as_json())
    else:
        print_pairs(
            ('container', printable(f'{state.account}/{state.container}')),
            ('storage policy', state.policy),
            ('layout', state.layout),
            ('layout id', state.layout_id or 'none'),
            ('objects', state.objects),
            ('bytes', state.bytes),
            ('strays', state.strays),
            ('fullest shard by mean', f'{state.skew:.2f}'),
            ('partition of the root', state.partition),
            ('servers of the root', ' '.join(state.nodes)),
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
    context.exit(0 if state.is_whole else FOUND)


@main.command()
@OBJECT
@AS_JSON
@click.pass_context
def locate(
    context: click.Context, name: tuple[str, str, str], as_json: bool
) -> None:
    """Show where the object A/C/O and its row should be, and if they are.

    Exits with 1 if no server has the object, or none has its row.
    """
    found = _survey(context.obj).locate(*name)
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
@ACCOUNT
@click.option(
    '--rows-per-shard',
    type=click.IntRange(min=1),
    default=ROWS_PER_SHARD,
    show_default=True,
    help='The rows that one database should have at most.',
)
@AS_JSON
@click.pass_context
def check(
    context: click.Context,
    account: tuple[str] | None,
    rows_per_shard: int,
    as_json: bool,
) -> None:
    """List the containers that have too many rows in one database, or nearly.

    Those of ACCOUNT, or of all accounts that have had a sharded container,
    plain and sharded ones, from 80 % of --rows-per-shard on, with the shard
    count that would leave room for as many objects again. Where the depth of a
    container puts far more rows into one shard than into the others, another
    depth helps, and more shards do not (reshard --depth). Exits with 1 if
    there is one. The figures are those that container-updater has reported.
    """
    survey = _survey(context.obj)
    listed = [
        each
        for name in account or survey.accounts()
        for each in survey.containers(name)
    ]
    problems = _report_problems(listed)
    findings = list(findings_among(listed, rows_per_shard))
    if as_json:
        print_json(map(asdict, findings))
    elif findings:
        print_table(
            ('container', 'shards', 'depth', 'fullest', 'is', 'advised'),
            [
                (
                    printable(f'{each.account}/{each.container}'),
                    each.shards,
                    each.depth,
                    each.fullest,
                    'over' if each.is_over else 'near',
                    OTHER_DEPTH if each.is_uneven else each.advised_shards,
                )
                for each in findings
            ],
        )
    context.exit(FOUND if findings or problems else 0)


@main.command('export')
@CONTAINER
@click.option(
    '-0', '--null', 'is_null', is_flag=True, help='End names with a zero byte.'
)
@click.option(
    '--json', 'as_json', is_flag=True, help='Print each row as JSON, a line.'
)
@click.pass_obj
def export_(
    connect: Callable,
    container: tuple[str, str],
    is_null: bool,
    as_json: bool,
) -> None:
    """Print the names of all objects of A/C, in their order.

    They are read from the databases, without the filter: for a cluster that
    no longer has it. A name may contain line breaks: use -0 or --json then.
    """
    cluster = connect()
    from shardmw.admin.export import export

    end = '\0' if is_null else '\n'
    write = sys.stdout.buffer.write
    for row in export(cluster, *container):
        text = json.dumps(row) if as_json else row['name']
        write((text + end).encode())
    sys.stdout.buffer.flush()


@main.command()
@click.argument('container', metavar='[A/C]', type=Name(2), required=False)
@click.option(
    '--account', type=Name(1), help='All sharded containers of an account.'
)
@click.option(
    '--objects',
    is_flag=True,
    help='Ask for the object of each row, which takes long.',
)
@click.option('--repair', is_flag=True, help='Mend what is found.')
@AS_JSON
@click.pass_context
def audit(
    context: click.Context,
    container: tuple[str, str] | None,
    account: tuple[str] | None,
    objects: bool,
    repair: bool,
    as_json: bool,
) -> None:
    """Look for rows and backing containers that are not as they should be.

    In A/C, or in all containers of an account: missing shards, rows in the
    wrong shard, strays, objects that are listed twice, backing containers of
    earlier layouts or of no container; with --objects also rows of objects
    that do not exist. A container whose layout is changing is only named.
    Exits with 1 if something was found, and was not or could not be mended.
    """
    if (container is None) == (account is None):
        raise click.UsageError('Name a container, or an account: --account.')
    cluster = context.obj()
    from shardmw.admin.audit import Audit

    name = container[0] if container else account[0]
    auditor = Audit(cluster, name, objects)
    found = auditor.look(container[1] if container else None)
    if repair and found:
        auditor.repair_all(found)
        left = auditor.look(container[1] if container else None)
    else:
        left = found
    if as_json:
        print_json(
            {**each.as_json(), 'is_mended': each not in left} for each in found
        )
    elif found:
        print_table(
            ('problem', 'container', 'name', ''),
            [
                (
                    each.kind,
                    printable(each.container),
                    printable(each.name),
                    '' if each in left else 'mended',
                )
                for each in found
            ],
        )
    context.exit(FOUND if left else 0)


for _command in (reshard, status, cancel):
    main.add_command(_command)


def _open(swift_dir: Path, conf: Path | None):
    """Return the cluster of a folder.

    :raises AdminError: if the folder has no swift.conf
    """
    if not (swift_dir / 'swift.conf').is_file():
        raise AdminError(
            f'{swift_dir}/swift.conf: no such file: name its folder with '
            '--swift-dir'
        )
    is_other = utils.set_swift_dir(str(swift_dir))
    from swift.common import constraints, storage_policy

    if is_other:
        constraints.reload_constraints()
        storage_policy.reload_storage_policies()
    from shardmw.admin.cluster import open_cluster

    return open_cluster(conf or swift_dir / CONF_NAME, swift_dir)


def _text_of(err: Exception) -> str | None:
    """Return the line to print for an error, None for an unexpected one."""
    from shardmw.backend.containers import BackendError
    from shardmw.record import LayoutError

    if isinstance(err, LayoutError):
        return f'layout record: {err}'
    is_expected = isinstance(err, (AdminError, BackendError))
    return printable(str(err)) if is_expected else None


def _survey(connect: Callable):
    cluster = connect()
    from shardmw.admin.survey import Survey

    return Survey(cluster)


def _report_problems(listed: Iterable[Listed]) -> int:
    """Print on stderr what could not be read; return how many there are."""
    problems = [each for each in listed if each.problem]
    for each in problems:
        name = printable(f'{each.account}/{each.container}')
        click.echo(f'Error: {name}: {each.problem}', err=True)
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
