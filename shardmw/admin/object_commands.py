# SPDX-License-Identifier: Apache-2.0
"""The commands for all objects of a container: ``export`` and ``empty``."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath

import click

from shardmw.admin.arguments import AS_JSON, CLIENTS_CONTAINER, CONTAINER
from shardmw.admin.interrupts import interruptible
from shardmw.admin.printing import print_json, printable, report_seconds
from shardmw.core.paths import Path
from shardmw.reshard.errors import FOUND, AdminError

PREFIX = click.option(
    '--prefix', default='', help='Only objects whose names begin with this.'
)


class Part(click.ParamType):
    """A part of the work, K/N, which becomes its index and the count."""

    name = 'part'

    def convert(self, value, param, ctx):
        if isinstance(value, tuple):
            return value
        part, slash, parts = value.partition('/')
        is_valid = slash and part.isdecimal() and parts.isdecimal()
        if not (is_valid and 1 <= int(part) <= int(parts)):
            self.fail(f'{value}: not K/N, with K from 1 to N', param, ctx)
        return int(part) - 1, int(parts)


LINES, PARQUET = 'lines', 'parquet'


@click.command()
@CONTAINER
@PREFIX
@click.option(
    '--format',
    'form',
    type=click.Choice([LINES, 'csv', 'json', PARQUET]),
    default=LINES,
    show_default=True,
    help='lines: names. csv: name, size, etag, time, type. json: a JSON '
    'object a line, as in a listing. parquet: the columns of csv; needs '
    '--output, and the Python package pyarrow.',
)
@click.option(
    '-0',
    '--null',
    'is_null',
    is_flag=True,
    help='End each name with a zero byte instead of a line break.',
)
@click.option('--json', 'as_json', is_flag=True, help='As --format json.')
@click.option(
    '--unordered',
    is_flag=True,
    help='Print the objects in any order.',
)
@click.option(
    '--output',
    type=click.Path(path_type=FilePath, dir_okay=False),
    help='The file to write. If the command is interrupted, run it again: it '
    'continues, except with parquet.',
)
@click.pass_obj
def export(
    connect: Callable,
    container: Path,
    prefix: str,
    form: str,
    is_null: bool,
    as_json: bool,
    unordered: bool,
    output: FilePath | None,
) -> None:
    """Print the names of all objects in A/C, or an inventory of them.

    The rows are read from the databases of all shards side by side, so the
    command also works on a cluster whose proxies no longer have the filter.
    Names can contain line breaks: to tell them apart, use -0 or a format
    other than lines.

    A file is called OUTPUT.part until it is whole. In csv and parquet, an ETag
    that is encrypted is left empty. If the layout of the container changes
    meanwhile, the command fails, because rows may have moved past it.
    """
    asked = {form} - {LINES}
    asked.update(['null'] if is_null else [], ['json'] if as_json else [])
    if len(asked) > 1:
        raise click.UsageError('-0, --json and --format exclude each other.')
    form = asked.pop() if asked else LINES
    if form == PARQUET and not output:
        raise click.UsageError('--format parquet needs --output.')
    cluster = connect()
    from shardmw.admin import inventory
    from shardmw.admin.walk import places_of

    places = places_of(cluster, container)
    rows_after = _reader(cluster, container, places, prefix, unordered)
    about = {
        'container': str(container.place),
        'prefix': prefix,
        'format': form,
        'unordered': unordered,
    }
    if not output:
        inventory.write_all(rows_after({}), form, sys.stdout.buffer)
        return
    try:
        if form == PARQUET:
            inventory.write_parquet(rows_after({}), output)
        else:
            inventory.write_parts(
                rows_after, form, output, about, places.serial
            )
    except OSError as err:
        raise AdminError(f'{output}: cannot be written: {err}') from err


def _reader(
    cluster, path: Path, places, prefix: str, unordered: bool
) -> Callable:
    """Return a function that lists the rows after the last names.

    It takes the last name of each place, and yields rows with their places.
    In order, one place stands for all.

    The end of its rows raises AdminError if the layout has changed meanwhile.

    :raises AdminError: if rows may be in two places, and no order is asked for
    """
    from shardmw.admin.export import export
    from shardmw.admin.walk import is_unique, require_same, walk

    if unordered and not is_unique(cluster, places):
        raise AdminError(
            f'{path.place}: shardmw-resharder has rows to move, which may be '
            'in two places: leave --unordered out'
        )

    def rows_after(after: Mapping[str, str]) -> Iterator[tuple[str, dict]]:
        if unordered:
            yield from walk(cluster, places, prefix, after)
        else:
            for row in export(cluster, places, prefix, after.get('', '')):
                yield '', row
        require_same(cluster, path, places)

    return rows_after


@click.command()
@CLIENTS_CONTAINER
@PREFIX
@click.option(
    '--segments',
    is_flag=True,
    help='Also delete the segments of static large objects, in any container '
    'of the account.',
)
@click.option(
    '--versions',
    is_flag=True,
    help='Also delete the old versions of objects.',
)
@click.option(
    '--part',
    metavar='K/N',
    type=Part(),
    default='1/1',
    help='Delete only the objects of each Nth shard, beginning with the Kth. '
    'So N commands can share the work, on any machines.',
)
@click.option(
    '--concurrency',
    type=click.IntRange(1, 1024),
    default=16,
    show_default=True,
    help='How many objects to delete at once.',
)
@click.option(
    '--objects-per-second',
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help='The most objects to delete per second. 0: no limit.',
)
@click.option('--dry-run', is_flag=True, help='Count the objects, and exit.')
@click.option('--yes', is_flag=True, help='Do not ask for confirmation.')
@AS_JSON
@click.pass_context
def empty(
    context: click.Context,
    container: Path,
    prefix: str,
    segments: bool,
    versions: bool,
    part: tuple[int, int],
    concurrency: int,
    objects_per_second: int,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete all objects of A/C, from all shards side by side.

    Objects that clients upload after the command has begun stay. If the
    command is interrupted, or some objects cannot be deleted, run it again: it
    goes on with what is left. It stops after a day.

    The container itself stays. If it syncs to another one, the objects are
    deleted there, too. Without --versions, the command refuses a container
    that has old versions of its objects.

    The exit code is 1 if an object could not be deleted.
    """
    cluster = context.obj()
    cluster.check_filter()
    from swift.common.utils import Timestamp

    from shardmw.admin.emptying import Emptied, Emptying

    paths = cluster.with_versions(container)
    name = printable(str(container.place))
    if len(paths) > 1 and not versions:
        raise AdminError(
            f'{name}: has old versions of its objects: --versions deletes '
            'them, too'
        )
    if not (yes or dry_run):
        what = f'the objects of {name} that begin with {printable(prefix)}'
        what = what if prefix else f'all objects of {name}'
        click.confirm(f'Delete {what}?', abort=True, err=True)
    reporter = _Reporter(name, as_json)
    done = Emptied()
    began = Timestamp.now()
    jobs = [
        Emptying(
            cluster,
            path,
            prefix,
            part,
            segments,
            concurrency,
            objects_per_second,
            began,
            done,
            reporter,
        )
        for path in paths
    ]
    if dry_run:
        objects = size = 0
        for job in jobs:
            for row in job.rows():
                objects += 1
                size += row['bytes']
        if as_json:
            print_json({'objects': objects, 'bytes': size})
        else:
            click.echo(f'{name}: {objects:,} objects, {size:,} bytes')
        return
    try:
        with interruptible(lambda: f'Interrupted: {reporter.text(done)}'):
            for job in jobs:
                job.run()
    except Exception:
        click.echo(f'Stopped: {reporter.text(done)}', err=True)
        raise
    if as_json:
        print_json(done.as_json())
    else:
        click.echo(f'{name}: {reporter.text(done)}')
    for each in done.failures:
        click.echo(f'Error: {printable(each)}', err=True)
    context.exit(FOUND if done.failed else 0)


class _Reporter:
    """Prints on stderr, at intervals, how many objects are deleted.

    :param name: the container
    :param as_json: True to print JSON objects, False for text
    """

    def __init__(self, name: str, as_json: bool) -> None:
        self._name = name
        self._as_json = as_json
        self._seconds = report_seconds(as_json)
        self._started = self._printed = time.monotonic()

    def __call__(self, done) -> None:
        now = time.monotonic()
        if now - self._printed < self._seconds:
            return
        self._printed = now
        if self._as_json:
            text = json.dumps({'time': time.time(), **done.as_json()})
        else:
            text = f'{self._name}: {self.text(done)}'
        click.echo(text, err=True)

    def text(self, done) -> str:
        """Return in words what has been done."""
        seconds = max(time.monotonic() - self._started, 0.001)
        parts = [
            f'{done.objects:,} objects deleted ({done.bytes:,} bytes, '
            f'{done.objects / seconds:,.0f} a second)'
        ]
        if done.segments:
            parts.append(f'{done.segments:,} segments deleted')
        if done.newer:
            parts.append(f'{done.newer:,} newer ones kept')
        if done.failed:
            parts.append(f'{done.failed:,} failed: run the command again')
        return ', '.join(parts)
