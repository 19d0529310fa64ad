# SPDX-License-Identifier: Apache-2.0
"""shardmw-admin doctor: the files of a machine, right and wrong."""

import shutil
from pathlib import Path

import pytest

from shardmw.admin.doctor.files import about_object_server, about_pipeline
from shardmw.admin.doctor.local_files import LocalFiles, read_files
from shardmw.admin.doctor.proxies import Machine, Proxy, agreement_of
from shardmw.backend.config import parse_options
from shardmw.backend.digests import Digests

ETC = Path(__file__).parents[2] / 'etc'
DIGESTS = Digests(b'prefix', b'suffix')
MACHINE = Machine('1.0', 'swift.conf', DIGESTS.hash_path())

#: A proxy with the configuration of the sample.
PROXY = Proxy(
    'http://a',
    {
        'max_shards': 1024,
        'head_cache_seconds': 5,
        'digests': {
            'hash_path': DIGESTS.hash_path(),
            'options': DIGESTS.of_options(parse_options({})),
            'memcache': DIGESTS.of_memcached(['127.0.0.1:11211']),
        },
    },
)
AGREED = agreement_of([PROXY], MACHINE)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with all samples, as they are after a rollout."""
    for path in ETC.glob('*.conf-sample'):
        text = path.read_text().replace('\nmax_shards = 0\n', '\n')
        (tmp_path / path.stem).with_suffix('.conf').write_text(text)
    (tmp_path / 'object-server.conf').write_text(
        '[object-auditor]\nwatchers = shardmw#dark_data\n'
    )
    return tmp_path


def read(folder: Path) -> LocalFiles:
    return read_files(folder, DIGESTS)


def findings(folder: Path, agreed=AGREED) -> list[tuple[str, str]]:
    """Return the names of files and their problems."""
    local = read(folder)
    found = list(local.findings)
    for file in local.pipelines:
        found += about_pipeline(file, agreed)
    assert all(each.remedy for each in found)
    return [(Path(each.where).name, each.problem) for each in found]


def change(folder: Path, name: str, before: str, after: str) -> None:
    path = folder / name
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_nothing_is_found_in_the_samples(folder):
    assert findings(folder) == []
    local = read(folder)
    assert len(local.paths) == 7
    assert local.missing == []


def test_files_may_be_absent(tmp_path):
    local = read(tmp_path)
    assert (local.pipelines, local.findings, local.paths) == ([], [], [])
    assert local.missing == [
        'proxy-server.conf',
        'object-expirer.conf',
        'object-server.conf',
        'container-reconciler.conf',
        'container-server.conf',
        'shardmw-resharder.conf',
    ]


@pytest.mark.parametrize(
    'name',
    [
        'container-reconciler.conf',
        'internal-client.conf',
        'object-expirer.conf',
        'proxy-server.conf',
        'shardmw-resharder.conf',
    ],
)
def test_a_pipeline_without_the_filter_is_found(folder, name):
    change(folder, name, ' shardmw proxy-', ' proxy-')
    ((where, problem),) = findings(folder)
    assert where == name
    assert problem.startswith('the pipeline has no filter shardmw, which ')


def test_a_file_may_be_a_folder_of_files(folder):
    whole = folder / 'object-expirer.conf'
    parts = folder / 'object-expirer.conf.d'
    parts.mkdir()
    whole.rename(parts / '10-all.conf')
    assert findings(folder) == []
    (parts / '20-mistake.conf').write_text(
        '[pipeline:main]\npipeline = catch_errors cache proxy-server\n'
    )
    ((where, problem),) = findings(folder)
    assert where == 'object-expirer.conf.d'
    assert problem.startswith('the pipeline has no filter shardmw')


@pytest.mark.parametrize(
    ('name', 'line', 'problem'),
    [
        (
            'object-expirer',
            'head_cache_seconds = 9',
            'head_cache_seconds = 9, the proxies have 5',
        ),
        (
            'object-expirer',
            'head_cache_seconds = soon',
            'shardmw: head_cache_seconds = soon: must be a whole number from '
            '0 to 60',
        ),
        (
            'internal-client',
            'container_ratelimit_0 = 10',
            '[filter:shardmw] limits rates: the daemons take 498 for an error',
        ),
        (
            'proxy-server',
            'shard_rules = AUTH_none/* = 4',
            '[filter:shardmw] has other options than the proxies run with',
        ),
    ],
)
def test_an_option_that_is_not_right_is_found(folder, name, line, problem):
    use = 'use = egg:shardmw#shardmw\n'
    change(folder, f'{name}.conf', use, f'{use}{line}\n')
    assert findings(folder) == [(f'{name}.conf', problem)]


@pytest.mark.parametrize('name', ['proxy-server', 'shardmw-resharder'])
def test_proxies_and_the_daemon_may_keep_pages_and_limit_rates(folder, name):
    options = 'listing_kept_megabytes = 9\ncontainer_ratelimit_0 = 10\n'
    use = 'use = egg:shardmw#shardmw\n'
    change(folder, f'{name}.conf', use, use + options)
    rates = {'container_ratelimit_0': '10'}
    digest = DIGESTS.of_options(parse_options(rates))
    digests = {**PROXY.info['digests'], 'options': digest}
    proxy = Proxy('http://a', {**PROXY.info, 'digests': digests})
    found = findings(folder, agreement_of([proxy], MACHINE))
    assert [where for where, _ in found if where == f'{name}.conf'] == []


def test_max_shards_of_the_rollout_is_found_once_the_proxies_have_more(folder):
    shutil.copy(ETC / 'object-expirer.conf-sample', folder)
    sample = folder / 'object-expirer.conf-sample'
    sample.rename(folder / 'object-expirer.conf')
    told = 'max_shards = 0, the proxies have 1024'
    assert findings(folder) == [('object-expirer.conf', told)]
    proxy = Proxy('http://a', {**PROXY.info, 'max_shards': 0})
    assert findings(folder, agreement_of([proxy], MACHINE)) == []


def test_without_a_proxy_only_the_files_themselves_are_judged(folder):
    change(
        folder,
        'object-expirer.conf',
        'listing_kept_megabytes = 0',
        'listing_kept_megabytes = 1\nhead_cache_seconds = 9',
    )
    ((_, problem),) = findings(folder, agreement_of([], MACHINE))
    assert problem.startswith('listing_kept_megabytes = 1, must be 0')


def test_digests_of_another_hash_path_are_not_compared(folder):
    machine = MACHINE._replace(hash_path='other')
    agreed = agreement_of([PROXY, PROXY], machine)
    assert not agreed.comparable
    change(
        folder,
        'object-expirer.conf',
        '# memcache_servers = 127.0.0.1:11211',
        'memcache_servers = 10.0.0.1:11211',
    )
    assert findings(folder, agreed) == []
    assert [name for name, _ in findings(folder)] == ['object-expirer.conf']


def test_servers_of_memcache_conf_count(folder):
    (folder / 'memcache.conf').write_text(
        '[memcache]\nmemcache_servers = 10.0.0.1:11211\n'
    )
    names = {name for name, _ in findings(folder)}
    # The proxy's own file names its servers.
    assert names == {
        'container-reconciler.conf',
        'internal-client.conf',
        'object-expirer.conf',
        'shardmw-resharder.conf',
    }


class TestFilesOfOtherFiles:
    """A daemon may name the file of its internal client."""

    def test_is_read_instead_of_the_file_of_the_expirer(self, folder):
        own = folder / 'own.conf'
        shutil.copy(folder / 'internal-client.conf', own)
        change(
            folder,
            'object-expirer.conf',
            '[object-expirer]',
            f'[object-expirer]\ninternal_client_conf_path = {own}',
        )
        change(folder, 'object-expirer.conf', ' shardmw proxy-', ' proxy-')
        assert findings(folder) == []
        change(folder, 'own.conf', ' shardmw proxy-', ' proxy-')
        ((where, problem),) = findings(folder)
        assert (where, problem) == (
            'own.conf',
            'the pipeline has no filter shardmw, which object-expirer must '
            'have',
        )

    def test_is_that_of_all_if_an_expirer_has_no_file_of_its_own(self, folder):
        with (folder / 'object-server.conf').open('a') as file:
            file.write('[object-expirer]\n')
        (folder / 'internal-client.conf').unlink()
        (folder / 'container-server.conf').unlink()
        assert findings(folder) == [
            (
                'internal-client.conf',
                'no such file, which object-expirer must have',
            )
        ]

    def test_that_is_missing_makes_container_sync_use_another(self, folder):
        (folder / 'internal-client.conf').unlink()
        ((where, problem),) = findings(folder)
        assert where == 'internal-client.conf'
        assert problem.endswith(
            "container-sync uses Swift's own pipeline, which lacks the filter"
        )

    def test_is_checked_in_several_servers(self, folder):
        (folder / 'container-server').mkdir()
        (folder / 'container-server.conf').rename(
            folder / 'container-server' / '1.conf'
        )
        second = folder / 'container-server' / '2.conf'
        second.write_text(
            '[container-sharder]\nauto_shard = yes\n'
            'internal_client_conf_path = /none\n'
        )
        assert findings(folder) == [
            (
                '2.conf',
                "auto_shard is on in [container-sharder]: Swift's sharder "
                'would split shards, too',
            ),
            ('none', 'no such file, which container-sharder must have'),
        ]


class TestUnreadable:
    def test_file_of_a_server(self, folder):
        (folder / 'object-server.conf').write_text('watchers = x\n')
        ((where, problem),) = findings(folder)
        assert where == 'object-server.conf'
        assert problem.startswith('not checked: it cannot be read: File cont')

    def test_filter_that_is_not_installed(self, folder):
        change(folder, 'internal-client.conf', 'swift#symlink', 'none#none')
        ((where, problem),) = findings(folder)
        assert where == 'internal-client.conf'
        assert problem.startswith('the pipeline cannot be read: ')

    def test_file_without_a_pipeline(self, folder):
        (folder / 'object-expirer.conf').write_text('[object-expirer]\n')
        ((where, problem),) = findings(folder)
        assert where == 'object-expirer.conf'
        assert problem.startswith('the pipeline cannot be read: ')


@pytest.mark.parametrize(
    ('watchers', 'is_found'),
    [
        ('dark_data', True),
        ('swift#dark_data', True),
        ('mine#counts, egg:swift#dark_data', True),
        ('shardmw#dark_data, swift#other', False),
        ('', False),
    ],
)
def test_swifts_watcher_is_found_by_all_of_its_names(watchers, is_found):
    sections = {'object-auditor': {'watchers': watchers}}
    assert bool([*about_object_server('path', sections)]) is is_found
