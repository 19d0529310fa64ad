# SPDX-License-Identifier: Apache-2.0
"""Make the text of every configuration file of a cluster. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from shardmw_saio.errors import SaioError
from shardmw_saio.options import ClusterOptions, split_setting
from shardmw_saio.topology import (
    DAEMONS,
    MEMCACHED,
    PROXY_KIND,
    Server,
)

Section = dict[str, str]
Sections = dict[str, Section]

SWIFT_CONF = 'swift.conf'
MEMCACHE_CONF = 'memcache.conf'
RINGS_JSON = 'rings.json'
INTERNAL_CLIENT_CONF = 'internal-client.conf'
EXPIRER_CONF = 'object-expirer.conf'
RESHARDER_CONF = 'shardmw-resharder.conf'
RECONCILER_CONF = 'container-reconciler.conf'
SYNC_CLIENT_CONF = 'container-sync-client.conf'
SYNC_REALMS_CONF = 'container-sync-realms.conf'

#: The section of settings for the internal clients of commands and daemons.
INTERNAL_CLIENT = 'internal-client'

#: The section of settings for the file of the realms.
SYNC_REALMS = SYNC_REALMS_CONF.removesuffix('.conf')

#: The realm of all embedded clusters.
SYNC_REALM = 'saio'

#: Options of shardmw that have a container's size in their name.
RATE_PREFIXES = ('container_ratelimit_', 'container_listing_ratelimit_')

#: Read by every Swift server at its start.
SHARED_CONFS = frozenset({SWIFT_CONF, MEMCACHE_CONF, RINGS_JSON})

#: Swift's full pipeline, in the order of etc/proxy-server.conf-sample.
PIPELINE = (
    'catch_errors gatekeeper healthcheck proxy-logging cache domain_remap '
    'etag-quoter shardmw-listings listing_formats container_sync bulk tempurl '
    'ratelimit crossdomain formpost s3api tempauth staticweb copy '
    'container-quotas account-quotas slo dlo versioned_writes symlink '
    'keymaster encryption shardmw proxy-logging proxy-server'
)

#: Filters of a cluster with encryption, and of a cluster without it.
ENCRYPTION_FILTERS = ('keymaster', 'encryption')
UNENCRYPTED_FILTERS = ('shardmw-listings',)

#: The pipelines of the internal clients of Swift's daemons: Swift's own, with
#: shardmw, which sends the rows of what the daemons write to the same backing
#: containers as the proxies do.
INTERNAL_CLIENT_PIPELINE = (
    'catch_errors proxy-logging cache symlink shardmw proxy-server'
)
SYNC_CLIENT_PIPELINE = (
    'catch_errors proxy-logging cache symlink keymaster encryption shardmw '
    'proxy-server'
)
EXPIRER_PIPELINE = 'catch_errors cache shardmw proxy-server'
RECONCILER_PIPELINE = 'catch_errors proxy-logging cache shardmw proxy-server'

#: The filter of container servers.
CONTAINER_FILTER = 'shardmw-container'

#: Background daemons by the kind of server in whose file they are configured.
STORAGE_DAEMONS = {
    'account-server': (
        'account-auditor',
        'account-reaper',
        'account-replicator',
    ),
    'container-server': (
        'container-auditor',
        'container-replicator',
        'container-sharder',
        'container-sync',
        'container-updater',
    ),
    'object-server': (
        'object-auditor',
        'object-replicator',
        'object-updater',
    ),
}

#: Daemons that run once for the whole cluster, and their own files.
CLUSTER_DAEMONS = {
    'container-reconciler': RECONCILER_CONF,
    'object-expirer': EXPIRER_CONF,
    'shardmw-resharder': RESHARDER_CONF,
}

#: The daemons that a cluster with daemons runs in the background, in this
#: order: some need what others have done. Auditors are not among them: they
#: read all data, and find nothing unless the cluster is damaged.
BACKGROUND_DAEMONS = (
    'object-updater',
    'container-updater',
    'object-expirer',
    'container-reconciler',
    'container-sharder',
    'container-sync',
    'account-reaper',
    'account-replicator',
    'container-replicator',
    'object-replicator',
    'shardmw-resharder',
)

#: Daemons that have nothing to do without another replica, or policy.
_REPLICATORS = (
    'account-replicator',
    'container-replicator',
    'object-replicator',
)
_RECONCILER = 'container-reconciler'

#: The users of Swift's functional tests: (account, user, key, groups).
USERS = (
    ('admin', 'admin', 'admin', '.admin .reseller_admin'),
    ('test', 'tester', 'testing', '.admin'),
    ('test', 'tester2', 'testing2', '.admin'),
    ('test', 'tester3', 'testing3', ''),
    ('test2', 'tester2', 'testing2', '.admin'),
    ('test5', 'tester5', 'testing5', 'service'),
)

#: The domain of the host names that domain_remap turns into paths.
STORAGE_DOMAIN = 'example.com'

# Always the same, so that encrypted objects are readable after a restart.
_ROOT_SECRET = 'c2hhcmRtdy1zYWlvLXRlc3RzLW9ubHktbm90LXNlY3JldCE='

# The same for all embedded clusters, so that they can sync with each other.
_SYNC_KEY = 'shardmw-saio-tests-only-not-secret'

_EGG_NAMES = {
    'account-quotas': 'account_quotas',
    'cache': 'memcache',
    'container-quotas': 'container_quotas',
    'etag-quoter': 'etag_quoter',
    'proxy-logging': 'proxy_logging',
}

_FILTER_OPTIONS: Sections = {
    'domain_remap': {'storage_domain': STORAGE_DOMAIN},
    'keymaster': {'encryption_root_secret': _ROOT_SECRET},
    's3api': {
        'location': 'us-east-1',
        's3_acl': 'false',
        'allow_multipart_uploads': 'true',
    },
    'tempauth': {
        'reseller_prefix': 'AUTH, SERVICE',
        'SERVICE_require_group': 'service',
        **{
            f'user_{account}_{user}': f'{key} {groups}'.strip()
            for account, user, key, groups in USERS
        },
    },
    'versioned_writes': {
        'allow_versioned_writes': 'true',
        'allow_object_versioning': 'true',
    },
}

# Daemons have no rate limits: tests wait for each pass. The next pass retries
# what has failed.
_DAEMON_OPTIONS: Sections = {
    'account-auditor': {'accounts_per_second': '0'},
    'account-replicator': {'databases_per_second': '0'},
    'container-auditor': {'containers_per_second': '0'},
    'container-replicator': {'databases_per_second': '0'},
    'container-sharder': {'databases_per_second': '0'},
    'container-updater': {
        'containers_per_second': '0',
        'account_suppression_time': '0',
    },
    'object-auditor': {
        'bytes_per_second': '0',
        'files_per_second': '0',
        'zero_byte_files_per_second': '0',
    },
    # ssync works over HTTP. rsync would need a daemon of its own.
    'object-replicator': {'sync_method': 'ssync'},
    'object-updater': {'objects_per_second': '0'},
}

#: Daemons work on what they find in a listing, so it must not be old.
_CLIENT_OPTIONS: Sections = {'shardmw': {'listing_kept_megabytes': '0'}}

_INTERNAL_CLIENTS = {
    'container-sharder': INTERNAL_CLIENT_CONF,
    'container-sync': SYNC_CLIENT_CONF,
}

_COPY_DATABASES = (
    'account-replicator',
    'container-replicator',
    'container-sharder',
)


class Place(NamedTuple):
    """The folders of a cluster's files, and the user of its processes."""

    etc: str
    devices: str
    cache: str
    user: str


def config_files(
    options: ClusterOptions,
    servers: Mapping[str, Server],
    place: Place,
) -> dict[str, str]:
    """Return the text of every configuration file, by file name.

    :raises SaioError: if a setting's section is unknown
    """
    check_settings(options)
    sections: dict[str, Sections] = {
        SWIFT_CONF: _swift_conf(options),
        MEMCACHE_CONF: _memcache_conf(options, servers[MEMCACHED]),
        INTERNAL_CLIENT_CONF: _internal_client_conf(options, place),
        EXPIRER_CONF: _expirer_conf(options, place),
        RECONCILER_CONF: _reconciler_conf(options, place),
        RESHARDER_CONF: _resharder_conf(options, place),
        SYNC_CLIENT_CONF: _sync_client_conf(options, place),
        SYNC_REALMS_CONF: _sync_realms_conf(options),
    }
    for server in servers.values():
        if server.kind == PROXY_KIND:
            sections[conf_name(server)] = _proxy_conf(options, server, place)
        elif server.kind in STORAGE_DAEMONS:
            sections[conf_name(server)] = _storage_conf(options, server, place)
    return {name: _text(conf) for name, conf in sections.items()}


def conf_name(server: Server) -> str:
    """Return the name of a Swift server's own configuration file."""
    return f'{server.name}.conf'


def daemon_confs(name: str, servers: Mapping[str, Server]) -> list[str]:
    """Return the configuration files of a daemon, one for each run."""
    if name in CLUSTER_DAEMONS:
        return [CLUSTER_DAEMONS[name]]
    return [
        conf_name(each)
        for each in servers.values()
        if name in STORAGE_DAEMONS.get(each.kind, ())
    ]


def background_daemons(
    options: ClusterOptions, servers: Mapping[str, Server]
) -> list[str]:
    """Return what to run in the background, as ``DAEMON@FILE``."""
    idle = set()
    if options.replicas == 1:
        idle.update(_REPLICATORS)
    if options.policies == 1:
        idle.add(_RECONCILER)
    return [
        f'{name}@{conf}'
        for name in BACKGROUND_DAEMONS
        if name not in idle
        for conf in daemon_confs(name, servers)
    ]


def check_settings(options: ClusterOptions) -> None:
    """Check the settings before anything is changed.

    Every section must be known. The filters of this package check their own
    options. Other invalid options show when a server starts.

    :raises SaioError: for the first setting that is refused
    """
    known = setting_sections()
    for setting in options.settings:
        section, _ = split_setting(setting)
        if section not in known:
            raise SaioError(
                f'setting {setting!r} has an unknown section: the sections '
                'are: ' + ', '.join(known)
            )
    own = _own_settings(options, 'shardmw')
    of_listings = _own_settings(options, 'shardmw-listings')
    if own or of_listings:
        _check_own_settings(own, of_listings)


def _own_settings(options: ClusterOptions, section: str) -> Section:
    """Return the settings of a filter, none if another filter is used."""
    settings = _configured(options, section)
    return {} if 'use' in settings else settings


def _check_own_settings(own: Section, of_listings: Section) -> None:
    # Imported here, as it takes a third of a second.
    from shardmw.backend.config import (
        ConfigError,
        check_option_names,
        parse_options,
    )

    try:
        check_option_names(own)
        parse_options(own)
        check_option_names(of_listings, 'shardmw-listings', (), ())
    except ConfigError as err:
        raise SaioError(str(err)) from err


def setting_sections() -> list[str]:
    """Return the sections that a setting may name."""
    storage = [
        section
        for kind, daemons in STORAGE_DAEMONS.items()
        for section in (kind, *daemons)
    ]
    others = ['DEFAULT', 'memcache', 'swift-constraints', SYNC_REALMS]
    others += [INTERNAL_CLIENT, CONTAINER_FILTER]
    return sorted({*PIPELINE.split(), *storage, *CLUSTER_DAEMONS, *others})


def servers_to_restart(
    servers: Mapping[str, Server], changed: set[str]
) -> set[str]:
    """Return the names of the servers whose configuration changed.

    :param servers: all servers by name
    :param changed: the names of the files that changed
    """
    own = {
        each.name for each in servers.values() if conf_name(each) in changed
    }
    if MEMCACHE_CONF in changed:
        own.add(MEMCACHED)
    if changed & SHARED_CONFS:
        own |= servers.keys() - {MEMCACHED}
    if changed and DAEMONS in servers:
        # The daemons read nearly all files.
        own.add(DAEMONS)
    return own


def users(options: ClusterOptions) -> dict[str, str]:
    """Return the keys of tempauth's users by ``account:user``."""
    tempauth = _configured(options, 'tempauth', _FILTER_OPTIONS['tempauth'])
    found = {}
    for option, value in tempauth.items():
        prefix, _, account_and_user = option.partition('_')
        account, _, user = account_and_user.partition('_')
        if prefix == 'user' and user and value.split():
            found[f'{account}:{user}'] = value.split()[0]
    return found


def _swift_conf(options: ClusterOptions) -> Sections:
    conf: Sections = {
        'swift-hash': {
            'swift_hash_path_prefix': 'shardmw',
            'swift_hash_path_suffix': 'saio',
        },
        'swift-constraints': _configured(options, 'swift-constraints'),
    }
    for index in range(options.policies):
        conf[f'storage-policy:{index}'] = {
            'name': f'Policy-{index}',
            'policy_type': 'replication',
            'default': 'yes' if index == 0 else 'no',
        }
    return conf


def _memcache_conf(options: ClusterOptions, memcached: Server) -> Sections:
    defaults = {
        'memcache_servers': memcached.address,
        # Use a memcached again as soon as it is up.
        'error_suppression_interval': '1',
    }
    return {'memcache': _configured(options, 'memcache', defaults)}


def _proxy_conf(
    options: ClusterOptions, server: Server, place: Place
) -> Sections:
    pipeline = _with_or_without_encryption(options, PIPELINE)
    defaults = {**_common(place), **_listening(options, server)}
    return {
        'DEFAULT': _configured(options, 'DEFAULT', defaults),
        'pipeline:main': {'pipeline': ' '.join(pipeline)},
        **{f'filter:{name}': _filter(options, name) for name in pipeline[:-1]},
        'app:proxy-server': _configured(
            options,
            'proxy-server',
            {
                'use': 'egg:swift#proxy',
                'account_autocreate': 'true',
                'allow_account_management': 'true',
                'allow_open_expired': 'true',
                **_BACKEND_TIMINGS,
            },
        ),
    }


# Long timeouts do no harm: a dead server refuses connections at once, so only
# a busy or a paused one uses them. A server is used again as soon as it is up.
_BACKEND_TIMINGS = {
    'conn_timeout': '5',
    'recoverable_node_timeout': '5',
    'error_suppression_interval': '1',
}


# Long enough that a busy machine does not delay the updates of listings.
_UPDATE_TIMINGS = {
    'conn_timeout': '5',
    'node_timeout': '10',
    'container_update_timeout': '10',
}


def _filter(options: ClusterOptions, name: str) -> Section:
    if name in ('shardmw', 'shardmw-listings', CONTAINER_FILTER):
        egg = f'egg:shardmw#{name.replace("-", "_")}'
    else:
        egg = f'egg:swift#{_EGG_NAMES.get(name, name)}'
    defaults = {'use': egg, **_FILTER_OPTIONS.get(name, {})}
    return _configured(options, name, defaults)


def _storage_conf(
    options: ClusterOptions, server: Server, place: Place
) -> Sections:
    egg = server.kind.removesuffix('-server')
    cache = f'{place.cache}/{server.node}'
    pipeline = ['healthcheck', 'recon', server.kind]
    if server.kind == 'container-server':
        pipeline.insert(-1, CONTAINER_FILTER)
    conf: Sections = {
        'DEFAULT': {
            **_common(place),
            **_listening(options, server),
            'devices': f'{place.devices}/{server.node}',
            'mount_check': 'false',
            'disable_fallocate': 'true',
            'fallocate_reserve': '0',
            'recon_cache_path': cache,
        },
        'pipeline:main': {'pipeline': ' '.join(pipeline)},
        **{f'filter:{name}': _filter(options, name) for name in pipeline[:-1]},
        f'app:{server.kind}': _configured(
            options,
            server.kind,
            {'use': f'egg:swift#{egg}', **_UPDATE_TIMINGS},
        ),
    }
    conf['filter:recon']['recon_cache_path'] = cache
    for daemon in STORAGE_DAEMONS[server.kind]:
        defaults = dict(_DAEMON_OPTIONS.get(daemon, {}))
        if daemon in _COPY_DATABASES:
            # A zone is a node, so this is the folder of the node's devices.
            defaults['rsync_module'] = f'{place.devices}/{{zone}}'
        if daemon in _INTERNAL_CLIENTS:
            internal_client = f'{place.etc}/{_INTERNAL_CLIENTS[daemon]}'
            defaults['internal_client_conf_path'] = internal_client
        conf[daemon] = _configured(options, daemon, defaults)
    return conf


def _internal_client_conf(options: ClusterOptions, place: Place) -> Sections:
    return _client_conf(options, place, INTERNAL_CLIENT_PIPELINE)


def _sync_client_conf(options: ClusterOptions, place: Place) -> Sections:
    pipeline = _with_or_without_encryption(options, SYNC_CLIENT_PIPELINE)
    return _client_conf(options, place, ' '.join(pipeline))


def _sync_realms_conf(options: ClusterOptions) -> Sections:
    return {
        # Servers and daemons check the file for changes each time.
        'DEFAULT': {'mtime_check_interval': '0'},
        SYNC_REALM: _configured(options, SYNC_REALMS, {'key': _SYNC_KEY}),
    }


def _with_or_without_encryption(
    options: ClusterOptions, pipeline: str
) -> list[str]:
    """Return the elements of a pipeline that a cluster has."""
    left_out = (
        UNENCRYPTED_FILTERS if options.encryption else ENCRYPTION_FILTERS
    )
    return [name for name in pipeline.split() if name not in left_out]


def _expirer_conf(options: ClusterOptions, place: Place) -> Sections:
    conf = _client_conf(options, place, EXPIRER_PIPELINE)
    defaults = {'tasks_per_second': '0'}
    conf['object-expirer'] = _configured(options, 'object-expirer', defaults)
    return conf


def _reconciler_conf(options: ClusterOptions, place: Place) -> Sections:
    conf = _client_conf(options, place, RECONCILER_PIPELINE)
    conf['container-reconciler'] = _configured(options, 'container-reconciler')
    return conf


def _resharder_conf(options: ClusterOptions, place: Place) -> Sections:
    conf = _client_conf(options, place, RECONCILER_PIPELINE)
    # By default, a change takes a day, which is long for a trial.
    short = {'interval': '5', 'settle_seconds': '60'}
    defaults = short if options.daemons else {}
    conf['shardmw-resharder'] = _configured(
        options, 'shardmw-resharder', defaults
    )
    return conf


def _client_conf(
    options: ClusterOptions, place: Place, pipeline: str
) -> Sections:
    """Return the configuration of a daemon's internal client.

    It has the settings of the proxies and of their filters, without the rates
    of containers: Swift does not limit its daemons either. It keeps no pages
    of listings. Settings of the section ``internal-client`` take precedence
    over those of the proxies.
    """
    sections = {
        f'filter:{name}': {
            **_without_rates(_filter(options, name)),
            **_CLIENT_OPTIONS.get(name, {}),
        }
        for name in pipeline.split()[:-1]
    }
    return {
        'DEFAULT': {**_common(place), 'recon_cache_path': f'{place.cache}/1'},
        'pipeline:main': {'pipeline': pipeline},
        **sections,
        'app:proxy-server': _configured(
            options,
            INTERNAL_CLIENT,
            _configured(
                options,
                PROXY_KIND,
                {
                    'use': 'egg:swift#proxy',
                    'account_autocreate': 'true',
                    **_BACKEND_TIMINGS,
                },
            ),
        ),
    }


def _without_rates(section: Section) -> Section:
    return {
        name: value
        for name, value in section.items()
        if not name.startswith(RATE_PREFIXES)
    }


def _common(place: Place) -> Section:
    return {'swift_dir': place.etc, 'user': place.user, 'log_level': 'INFO'}


def _listening(options: ClusterOptions, server: Server) -> Section:
    return {
        'bind_ip': server.host.address,
        'bind_port': str(server.port),
        # The port was just found free. If it is taken now, fail soon.
        'bind_timeout': '2',
        'workers': str(options.workers),
    }


def _configured(
    options: ClusterOptions, section: str, defaults: Section | None = None
) -> Section:
    """Return a section's defaults, overridden by the user's settings."""
    chosen = dict(defaults or {})
    for setting, value in options.settings.items():
        setting_section, option = split_setting(setting)
        if setting_section == section:
            chosen[option] = value
    return chosen


def _text(conf: Sections) -> str:
    blocks = []
    for name, section in conf.items():
        lines = [f'{option} = {value}' for option, value in section.items()]
        blocks.append('\n'.join([f'[{name}]', *lines]))
    return '\n\n'.join(blocks) + '\n'
