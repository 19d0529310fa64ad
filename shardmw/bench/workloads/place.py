# SPDX-License-Identifier: Apache-2.0
"""The cluster that somebody chose: the benchmark's own, or another."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import click

from shardmw.bench.errors import BenchError, Interrupted
from shardmw.bench.load.stage import Stage
from shardmw.bench.options import CONTAINER
from shardmw.bench.site import DEFAULT_PREFIX, Site
from shardmw.bench.targets.auth import Auth, PasswordAuth, TokenAuth
from shardmw.saio import ClusterOptions

#: Parameters of clusters that are the benchmark's own.
_OWN_ONLY = ('limit', 'proxies', 'workers', 'settings')

#: What Keystone may want, by the names that python-swiftclient has for it.
_KEYSTONE = (
    *('username', 'password', 'user_id', 'user_domain_id'),
    *('user_domain_name', 'project_id', 'project_name', 'project_domain_id'),
    *('project_domain_name', 'tenant_id', 'tenant_name', 'region_name'),
    *('service_type', 'endpoint_type', 'auth_type'),
    *('application_credential_id', 'application_credential_secret'),
)

#: Parameters of clusters that are not, and their flags.
_OTHERS_ONLY = {
    'user': '--user',
    'key': '--key',
    'auth_token': '--os-auth-token',
    'auth_version': '--auth-version',
    'insecure': '--insecure',
    **{name: f'--os-{name.replace("_", "-")}' for name in _KEYSTONE},
}

#: They are different ways to a cluster.
_WAYS = {
    'auth_url': '--auth-url',
    'keystone_url': '--os-auth-url',
    'storage_url': '--os-storage-url',
}


@dataclass(frozen=True)
class Place:
    """Where to work.

    :param auth: None for a cluster of the benchmark's own
    :param container: the name that was chosen, None for the benchmark's
    :param cleanup: whether to remove the containers at the end
    """

    auth: Auth | None
    container: str | None
    cleanup: bool

    @property
    def is_own(self) -> bool:
        """Return True if the cluster is the benchmark's own."""
        return self.auth is None

    @contextlib.contextmanager
    def site(self, stage: Stage, options: ClusterOptions) -> Iterator[Site]:
        """Give the cluster for a ``with`` block.

        :param options: of the benchmark's own
        """
        if self.is_own:
            with stage.site(options) as site:
                yield site
            return
        prefix = self.container or DEFAULT_PREFIX
        with stage.remote_site(self.auth, prefix) as site:
            try:
                yield site
            except BaseException:
                with _told(stage, site):
                    self._clean(stage, site)
                raise
            try:
                self._clean(stage, site)
            except Interrupted:
                # to leave something there takes a second one
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
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def place_of(context: click.Context) -> Place:
    """Return the cluster that the user chose.

    :raises UsageError: if that can't be told, or what else was chosen does
                        not go with it
    """
    values = context.params
    auth = _auth_of(values)
    if auth is None:
        _check_own(context)
        if not values['cleanup']:
            raise click.UsageError(
                "--no-cleanup is for clusters of yours: the benchmark's own "
                'goes away at the end'
            )
    else:
        _check_remote(context)
    return Place(auth, values['container'], values['cleanup'])


def _auth_of(values: Mapping[str, object]) -> Auth | None:
    typed = {way: values[way] for way in _WAYS if values[way] is not None}
    if '' in typed.values():
        # of a variable that is not set; not to measure something else
        raise click.UsageError('the URL of the cluster is empty')
    if len(typed) > 1:
        first, second = (_WAYS[way] for way in [*typed][:2])
        raise click.UsageError(
            f'{first} and {second} are two ways to a cluster: take one'
        )
    url, keystone, storage = (values[way] for way in _WAYS)
    if url and not (values['user'] and values['key']):
        raise click.UsageError(
            '--auth-url needs --user and --key, or ST_USER and ST_KEY in the '
            'environment'
        )
    if storage and not values['auth_token']:
        raise click.UsageError('--os-storage-url needs --os-auth-token')
    is_insecure = values['insecure']
    if url:
        return PasswordAuth(url, values['user'], values['key'], is_insecure)
    if storage:
        return TokenAuth(storage, values['auth_token'], is_insecure)
    return _keystone_of(values) if keystone else None


def _keystone_of(values: Mapping[str, object]) -> PasswordAuth:
    given = {name: values[name] for name in _KEYSTONE if values[name]}
    return PasswordAuth(
        values['keystone_url'],
        given.pop('username', ''),
        given.pop('password', ''),
        values['insecure'],
        values['auth_version'],
        given,
    )


def _check_own(context: click.Context) -> None:
    """See that nobody wanted another cluster, and named none."""
    for name, flag in _OTHERS_ONLY.items():
        if _is_typed(context, name):
            raise click.UsageError(
                f'{flag} is for a cluster of yours: give its URL, too, with '
                f'{", ".join(_WAYS.values())}'
            )


def _is_typed(context: click.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _check_remote(context: click.Context) -> None:
    for name in _OWN_ONLY:
        if _is_typed(context, name):
            flag = '--set' if name == 'settings' else f'--{name}'
            raise click.UsageError(
                f"{flag} is for the benchmark's own cluster, not for one of "
                'yours'
            )


@contextlib.contextmanager
def _told(stage: Stage, site: Site) -> Iterator[None]:
    """Warn of failures inside, so that they do not hide earlier ones."""
    try:
        yield
    except BenchError as err:
        stage.screen.warning(f'not cleaned up: {err}')
    except Interrupted:
        stage.screen.warning(f'not cleaned up: {_left_text(site)}')


def _left_text(site: Site) -> str:
    return f'left there: {", ".join(site.containers) or "nothing"}'


_OPTIONS = (
    click.option(
        '-A',
        '--auth-url',
        help="Auth v1 of a cluster to measure, in the place of the bench's "
        'own; such as "$ST_AUTH", which is not looked at by itself.',
    ),
    click.option(
        '-U',
        '--user',
        envvar='ST_USER',
        show_envvar=True,
        help='With --auth-url.',
    ),
    click.option(
        '-K',
        '--key',
        envvar='ST_KEY',
        show_envvar=True,
        help='With --auth-url.',
    ),
    click.option(
        '--os-auth-url',
        'keystone_url',
        help='Keystone of a cluster to measure, in the place of --auth-url; '
        'with the --os-* options of python-swiftclient, or the OS_* variables '
        'in their place, such as OS_USERNAME and OS_PROJECT_NAME.',
    ),
    click.option(
        '--auth-version',
        envvar=['ST_AUTH_VERSION', 'OS_AUTH_VERSION']
        + ['OS_IDENTITY_API_VERSION'],
        default='3',
        show_default=True,
        help='Of Keystone.',
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
        '--os-storage-url',
        'storage_url',
        help='The URL of an account to measure, in the place of --auth-url.',
    ),
    click.option(
        '--os-auth-token',
        'auth_token',
        envvar='OS_AUTH_TOKEN',
        show_envvar=True,
        help='With --os-storage-url.',
    ),
    click.option(
        '--insecure',
        is_flag=True,
        help='Do not check the certificates of https.',
    ),
    click.option(
        '--container',
        type=CONTAINER,
        help='What to call the container; of several, what their names '
        f'begin with.  [default: {DEFAULT_PREFIX}]',
    ),
    click.option(
        '--cleanup/--no-cleanup',
        default=True,
        show_default=True,
        help='Remove the containers at the end.',
    ),
)
