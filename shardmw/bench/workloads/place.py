# SPDX-License-Identifier: Apache-2.0
"""The chosen cluster: a temporary one, or an existing one."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import click

from shardmw.bench.errors import BenchError, Interrupted
from shardmw.bench.load.stage import Stage
from shardmw.bench.options import CONTAINER
from shardmw.bench.site import DEFAULT_PREFIX, Site, remote_site
from shardmw.bench.targets.account import Auth
from shardmw.saio import ClusterOptions

# Options of Keystone, as python-swiftclient has them.
_KEYSTONE = (
    *('username', 'password', 'user_id', 'user_domain_id'),
    *('user_domain_name', 'project_id', 'project_name', 'project_domain_id'),
    *('project_domain_name', 'tenant_id', 'tenant_name', 'region_name'),
    *('service_type', 'endpoint_type', 'auth_type'),
    *('application_credential_id', 'application_credential_secret'),
)

# The different ways to name an existing cluster.
_WAYS = {
    'auth_url': '--auth-url',
    'keystone_url': '--os-auth-url',
    'storage_url': '--os-storage-url',
}

# Options of temporary clusters only, and of existing ones only.
_OWN_ONLY = ('limit', 'proxies', 'workers', 'settings')
_OTHERS_ONLY = (
    *('user', 'key', 'auth_token', 'auth_version', 'insecure', 'cleanup'),
    *_KEYSTONE,
)

# The flags, the variable and the help of each option of an existing cluster.
_OPTIONS = (
    (
        ('-A', '--auth-url'),
        None,
        'The auth v1 URL of an existing cluster, to measure it instead of a '
        'temporary one. ST_AUTH is not read: write "$ST_AUTH".',
    ),
    (('-U', '--user'), 'ST_USER', 'The user for --auth-url.'),
    (('-K', '--key'), 'ST_KEY', 'The key for --auth-url.'),
    (
        ('--os-auth-url', 'keystone_url'),
        None,
        'The Keystone URL of an existing cluster, instead of --auth-url. '
        'Further --os-* options are those of python-swiftclient; the OS_* '
        'variables, such as OS_USERNAME and OS_PROJECT_NAME, can replace '
        'them.',
    ),
    (
        ('--os-storage-url', 'storage_url'),
        None,
        'The URL of an account of an existing cluster, instead of --auth-url.',
    ),
    (
        ('--os-auth-token', 'auth_token'),
        'OS_AUTH_TOKEN',
        'The token for --os-storage-url.',
    ),
)


@dataclass(frozen=True)
class Place:
    """The cluster to measure.

    :param auth: None for a temporary cluster
    :param container: the name that the user chose, if any
    :param cleanup: True to remove the containers at the end
    """

    auth: Auth | None
    container: str | None
    cleanup: bool

    @property
    def is_own(self) -> bool:
        """Return True for a temporary cluster."""
        return self.auth is None

    @contextlib.contextmanager
    def site(self, stage: Stage, options: ClusterOptions) -> Iterator[Site]:
        """Give the cluster for a ``with`` block.

        :param options: of a temporary cluster
        """
        if self.is_own:
            with stage.site(options) as site:
                yield site
            return
        prefix = self.container or DEFAULT_PREFIX
        site = remote_site(self.auth, stage.run, prefix)
        try:
            yield site
            self._clean(stage, site)
        except BaseException:
            # another signal ends the clean-up
            with _told(stage, site):
                self._clean(stage, site)
            raise

    def figures(self, site: Site) -> dict[str, object]:
        """Return the cluster as figures of an experiment have it."""
        if self.is_own:
            return {}
        cluster = {'url': site.urls[0], 'swift': site.swift_version}
        return {'cluster': cluster}

    def _clean(self, stage: Stage, site: Site) -> None:
        if self.cleanup:
            site.cleanup()
        else:
            stage.screen.line(_left_text(site))


def place_options(command: Callable) -> Callable:
    """Add the options that :func:`place_of` reads."""
    added = [
        *(
            click.option(*flags, envvar=variable, show_envvar=True, help=text)
            for flags, variable, text in _OPTIONS
        ),
        click.option(
            '--auth-version',
            envvar=['ST_AUTH_VERSION', 'OS_AUTH_VERSION']
            + ['OS_IDENTITY_API_VERSION'],
            default='3',
            show_default=True,
            help='The version of Keystone.',
        ),
        *(
            click.option(
                f'--os-{name.replace("_", "-")}',
                name,
                envvar=f'OS_{name.upper()}',
                hidden=True,
            )
            for name in _KEYSTONE
        ),
        click.option(
            '--insecure', is_flag=True, help='Accept any certificate (https).'
        ),
        click.option(
            '--container',
            type=CONTAINER,
            help='The name of the container; if there are several, the '
            f'beginning of their names.  [default: {DEFAULT_PREFIX}]',
        ),
        click.option(
            '--cleanup/--no-cleanup',
            default=True,
            show_default=True,
            help='Remove the containers at the end.',
        ),
    ]
    for option in reversed(added):
        command = option(command)
    return command


def place_of(context: click.Context) -> Place:
    """Return the chosen cluster; raise UsageError if options conflict."""
    values = context.params
    auth = _auth_of(values)
    refused, why = _OWN_ONLY, 'the temporary cluster, not for yours'
    if auth is None:
        ways = ', '.join(_WAYS.values())
        refused, why = _OTHERS_ONLY, f'a cluster of yours: add one of {ways}'
    for option in context.command.params:
        source = context.get_parameter_source(option.name)
        is_typed = source is click.core.ParameterSource.COMMANDLINE
        if option.name in refused and is_typed:
            flags = '/'.join((option.opts[-1], *option.secondary_opts))
            raise click.UsageError(f'{flags} is for {why}')
    return Place(auth, values['container'], values['cleanup'])


def _auth_of(values: Mapping[str, object]) -> Auth | None:
    typed = {way: values[way] for way in _WAYS if values[way] is not None}
    if '' in typed.values():
        # such as an unset variable
        raise click.UsageError('the URL of the cluster is empty')
    if len(typed) > 1:
        first, second = (_WAYS[way] for way in [*typed][:2])
        raise click.UsageError(
            f'{first} and {second} are two ways to a cluster: take one'
        )
    url, keystone, storage = (values[way] for way in _WAYS)
    user, key, token = values['user'], values['key'], values['auth_token']
    is_insecure = values['insecure']
    if url:
        if not (user and key):
            raise click.UsageError(
                '--auth-url needs --user and --key, or ST_USER and ST_KEY in '
                'the environment'
            )
        return Auth(url, user, key, insecure=is_insecure)
    if storage:
        if not token:
            raise click.UsageError('--os-storage-url needs --os-auth-token')
        way = {'preauthurl': storage, 'preauthtoken': token}
        return Auth(**way, insecure=is_insecure)
    if not keystone:
        return None
    given = {name: values[name] for name in _KEYSTONE if values[name]}
    user, key = given.pop('username', ''), given.pop('password', '')
    version = values['auth_version']
    return Auth(keystone, user, key, version, given, insecure=is_insecure)


@contextlib.contextmanager
def _told(stage: Stage, site: Site) -> Iterator[None]:
    """Turn failures into warnings, so that they do not hide earlier ones."""
    try:
        yield
    except BenchError as err:
        stage.screen.warning(f'not cleaned up: {err}')
    except Interrupted:
        stage.screen.warning(f'not cleaned up: {_left_text(site)}')


def _left_text(site: Site) -> str:
    return f'left there: {", ".join(site.containers) or "nothing"}'
