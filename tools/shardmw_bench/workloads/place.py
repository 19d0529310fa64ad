# SPDX-License-Identifier: Apache-2.0
"""The chosen cluster: a temporary one, or an existing one."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import click
from shardmw_saio import ClusterOptions

from shardmw_bench import options as types
from shardmw_bench.errors import BenchError, Interrupted
from shardmw_bench.load.stage import Stage
from shardmw_bench.options import Parameters, option
from shardmw_bench.site import DEFAULT_PREFIX, Site, remote_site
from shardmw_bench.targets.account import Auth

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


@dataclass(frozen=True)
class Place(Parameters):
    """The cluster to measure: options of all work.

    :param keystone: further options of Keystone
    """

    auth_url: str | None = option(
        None,
        str,
        'The auth v1 URL of an existing cluster, to measure it instead of a '
        'temporary one. ST_AUTH is not read: write "$ST_AUTH".',
        '-A',
        '--auth-url',
    )
    user: str | None = option(
        *(None, str, 'The user for --auth-url.', '-U', '--user'),
        envvar='ST_USER',
    )
    key: str | None = option(
        *(None, str, 'The key for --auth-url.', '-K', '--key'),
        envvar='ST_KEY',
    )
    keystone_url: str | None = option(
        None,
        str,
        'The Keystone URL of an existing cluster, instead of --auth-url. '
        'Further --os-* options are those of python-swiftclient; the OS_* '
        'variables, such as OS_USERNAME and OS_PROJECT_NAME, can replace '
        'them.',
        '--os-auth-url',
    )
    auth_version: str = option(
        *('3', str, 'The version of Keystone.'),
        envvar=('ST_AUTH_VERSION', 'OS_AUTH_VERSION')
        + ('OS_IDENTITY_API_VERSION',),
    )
    storage_url: str | None = option(
        None,
        str,
        'The URL of an account of an existing cluster, instead of --auth-url.',
        '--os-storage-url',
    )
    auth_token: str | None = option(
        *(None, str, 'The token for --os-storage-url.', '--os-auth-token'),
        envvar='OS_AUTH_TOKEN',
    )
    insecure: bool = option(
        False, bool, 'Accept any certificate (https).', '--insecure'
    )
    container: str | None = option(
        None,
        types.CONTAINER,
        'The name of the container; if there are several, the beginning of '
        f'their names.  [default: {DEFAULT_PREFIX}]',
    )
    cleanup: bool = option(True, bool, 'Remove the containers at the end.')
    keystone: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        urls = {flag: getattr(self, way) for way, flag in _WAYS.items()}
        if '' in urls.values():
            # such as an unset variable
            raise ValueError('the URL of the cluster is empty')
        typed = [flag for flag, url in urls.items() if url]
        if len(typed) > 1:
            raise ValueError(
                f'{typed[0]} and {typed[1]} are two ways to a cluster: take '
                'one'
            )
        if self.auth_url and not (self.user and self.key):
            raise ValueError(
                '--auth-url needs --user and --key, or ST_USER and ST_KEY in '
                'the environment'
            )
        if self.storage_url and not self.auth_token:
            raise ValueError('--os-storage-url needs --os-auth-token')

    @property
    def auth(self) -> Auth | None:
        """Return the access to the cluster; None for a temporary one."""
        if self.auth_url:
            auth = Auth(self.auth_url, self.user, self.key)
        elif self.storage_url:
            url, token = self.storage_url, self.auth_token
            auth = Auth(preauthurl=url, preauthtoken=token)
        elif self.keystone_url:
            given = dict(self.keystone)
            login = given.pop('username', ''), given.pop('password', '')
            version = self.auth_version
            auth = Auth(self.keystone_url, *login, version, given)
        else:
            return None
        return replace(auth, insecure=self.insecure)

    @property
    def is_own(self) -> bool:
        return self.auth is None

    @contextlib.contextmanager
    def site(self, stage: Stage, options: ClusterOptions) -> Iterator[Site]:
        """Yield the site; ``options`` are those of a temporary cluster."""
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

    def _clean(self, stage: Stage, site: Site) -> None:
        if self.cleanup:
            site.cleanup()
        else:
            stage.screen.line(_left_text(site))


def place_options(command: Callable) -> Callable:
    for name in _KEYSTONE:
        command = click.option(
            f'--os-{name.replace("_", "-")}',
            name,
            envvar=f'OS_{name.upper()}',
            hidden=True,
        )(command)
    return types.parameter_options(Place)(command)


def place_of(context: click.Context) -> Place:
    """Return the chosen cluster; raise UsageError if options conflict."""
    values = context.params
    given = {name: values[name] for name in _KEYSTONE if values[name]}
    place = replace(types.chosen_parameters(Place, values), keystone=given)
    refused, why = _OWN_ONLY, 'the temporary cluster, not for yours'
    if place.is_own:
        ways = ', '.join(_WAYS.values())
        refused, why = _OTHERS_ONLY, f'a cluster of yours: add one of {ways}'
    for each in context.command.params:
        source = context.get_parameter_source(each.name)
        is_typed = source is click.core.ParameterSource.COMMANDLINE
        if each.name in refused and is_typed:
            flags = '/'.join((each.opts[-1], *each.secondary_opts))
            raise click.UsageError(f'{flags} is for {why}')
    return place


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
