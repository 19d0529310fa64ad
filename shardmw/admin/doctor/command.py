# SPDX-License-Identifier: Apache-2.0
"""The command: what it checks, in which order, and what it prints."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

import click

from shardmw import __version__
from shardmw.admin.arguments import AS_JSON
from shardmw.admin.doctor.asking import ask_all, url_of
from shardmw.admin.doctor.findings import NOT_CHECKED, Finding, Note
from shardmw.admin.doctor.proxies import (
    Agreement,
    Machine,
    Proxy,
    about_proxies,
    agreement_of,
)
from shardmw.admin.printing import print_json, printable
from shardmw.reshard.errors import FOUND, AdminError
from shardmw.reshard.swift_folder import use_swift_dir

#: What "swift auth" prints.
URL_VARIABLE, TOKEN_VARIABLE = 'OS_STORAGE_URL', 'OS_AUTH_TOKEN'

#: The number of shards of the container of the probe.
PROBE_SHARDS = 2


class ProxyAddress(click.ParamType):
    """The address of a proxy, which becomes its URL."""

    name = 'proxy'

    def convert(self, value, param, ctx):
        try:
            return url_of(value)
        except AdminError as err:
            self.fail(str(err), param, ctx)


class Settings(NamedTuple):
    """Holds the arguments of the command.

    :param urls: the URLs of the proxies
    :param timeout: how many seconds a proxy may be silent
    """

    swift_dir: Path
    urls: list[str]
    timeout: float


class Result(NamedTuple):
    """Holds all findings and notes of the command.

    :param checked: what was checked, in words
    """

    findings: list[Finding]
    notes: list[Note]
    checked: list[str]

    def as_json(self) -> dict:
        """Return the values for ``--json``."""
        return {
            'findings': [each._asdict() for each in self.findings],
            'notes': [each._asdict() for each in self.notes],
            'checked': self.checked,
        }


@click.command()
@click.argument('proxies', metavar='[PROXY]...', type=ProxyAddress(), nargs=-1)
@click.option(
    '--proxies-from',
    metavar='FILE',
    type=click.File(),
    help='Also check the proxies in this file, one per line; -: stdin.',
)
@click.option(
    '--timeout',
    type=click.FloatRange(min=0.1),
    default=10,
    show_default=True,
    help='How many seconds a proxy may be silent.',
)
@AS_JSON
@click.pass_context
def doctor(
    context: click.Context,
    proxies: tuple[str, ...],
    proxies_from: TextIO | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Find the mistakes of a rollout, and say what to do about each.

    PROXY is the address of a proxy, as HOST:PORT or as a URL. Name all proxies
    of the cluster, not their load balancer. The command compares what GET
    /info of each shows: version, options, hash path, memcached servers and
    clock. It reads the configuration files of this machine in --swift-dir, and
    asks the cluster when shardmw-resharder last ended a pass.

    With OS_STORAGE_URL and OS_AUTH_TOKEN in the environment, as "swift auth"
    prints them, it also creates a sharded container shardmw-doctor-...,
    writes, lists and deletes an object in it through each proxy, looks where
    its row went, and deletes the container.

    A line says where the mistake is, what is wrong, and what to do. A check
    that could not be made is a finding, too. The exit code is 1 if there is
    one.
    """
    urls = list(proxies)
    if proxies_from:
        lines = (line.strip() for line in proxies_from)
        urls += [url_of(line) for line in lines if line and line[0] != '#']
        if not urls:
            raise AdminError('--proxies-from: the file names no proxy')
    swift_dir = context.parent.params['swift_dir']
    # Modules that read swift.conf are imported below.
    use_swift_dir(swift_dir)
    settings = Settings(swift_dir, list(dict.fromkeys(urls)), timeout)
    result = _result(settings, context)
    if as_json:
        print_json(result.as_json())
    else:
        for finding in result.findings:
            click.echo(printable(str(finding)))
        for note in result.notes:
            click.echo(printable(f'note: {note}'))
        if not result.findings:
            click.echo(f'nothing is wrong: {", ".join(result.checked)}')
    context.exit(FOUND if result.findings else 0)


def _result(settings: Settings, context: click.Context) -> Result:
    """Make all checks."""
    from shardmw.admin.doctor.files import about_pipeline
    from shardmw.admin.doctor.local_files import read_files
    from shardmw.backend.digests import local_digests

    digests = local_digests()
    proxies = ask_all(settings.urls, settings.timeout)
    machine = Machine(
        __version__,
        str(settings.swift_dir / 'swift.conf'),
        digests.hash_path(),
    )
    agreed = agreement_of(proxies, machine)
    local = read_files(settings.swift_dir, digests)
    said = [*about_proxies(proxies, agreed, machine), *local.findings]
    for file in local.pipelines:
        said += about_pipeline(file, agreed)
    checked = [f'{len(proxies)} proxies', f'{len(local.paths)} files']
    if not proxies:
        said.append(Note('proxies', 'not checked: none is named'))
    if local.missing:
        names = ', '.join(local.missing)
        said.append(Note(str(settings.swift_dir), f'has no {names}'))
    try:
        cluster = context.obj()
    except AdminError as err:
        said.append(
            Finding(
                str(settings.swift_dir),
                f'{NOT_CHECKED}the daemon and the probe: {err}',
                'correct it: commands and daemons use the file',
            )
        )
    else:
        said += _about_daemon(cluster, agreed)
        checked.append('shardmw-resharder')
        probed = list(_about_probe(cluster, proxies, agreed, settings))
        said += probed
        if not any(isinstance(each, Note) for each in probed):
            checked.append('a probe through each proxy')
    return Result(
        [each for each in said if isinstance(each, Finding)],
        [each for each in said if isinstance(each, Note)],
        checked,
    )


def _about_daemon(cluster, agreed: Agreement) -> Iterator[Finding | Note]:
    from shardmw.admin.doctor.daemons import DAEMON, about_daemons
    from shardmw.backend.containers import BackendError
    from shardmw.reshard.heartbeat import heartbeats
    from shardmw.reshard.register import Register

    try:
        beats = heartbeats(Register(cluster.backend, cluster.env))
    except BackendError as err:
        yield Finding(
            DAEMON,
            f'{NOT_CHECKED}{err}',
            'see if account servers are up, and reachable from this machine',
        )
        return
    yield from about_daemons(beats, agreed.version)


def _about_probe(
    cluster, proxies: list[Proxy], agreed: Agreement, settings: Settings
) -> Iterator[Finding | Note]:
    storage_url = os.environ.get(URL_VARIABLE)
    token = os.environ.get(TOKEN_VARIABLE)
    # A proxy with another hash path puts into memcached that the container
    # does not exist.
    probed = [
        each
        for each in proxies
        if each.answers
        and each.digest('hash_path') in (None, agreed.hash_path)
    ]
    creators = [each.url for each in probed if each.info is not None]
    reason = ''
    if not (storage_url and token):
        reason = f'{URL_VARIABLE} or {TOKEN_VARIABLE} is not set'
    elif not creators:
        reason = 'no proxy with the filter answers'
    elif not agreed.options.get('max_shards'):
        reason = 'max_shards = 0 in the proxies'
    elif not agreed.options.get('client_max_shards'):
        reason = 'client_max_shards = 0 in the proxies'
    if reason:
        yield Note('probe', f'not made: {reason}')
        return
    from shardmw.admin.doctor.probe import Probe

    try:
        probe = Probe(cluster, storage_url, token, settings.timeout)
    except AdminError as err:
        yield Finding(
            'probe', f'{NOT_CHECKED}{err}', 'set what "swift auth" prints'
        )
        return
    shards = min(agreed.options['client_max_shards'], PROBE_SHARDS)
    yield from probe.run([each.url for each in probed], creators, shards)
