# SPDX-License-Identifier: Apache-2.0
"""The sample configurations and the package that operators install."""

import configparser
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml
from swift.common.wsgi import loadapp

from shardmw import __version__
from shardmw.admin.cli import main as admin_command
from shardmw.backend.config import OPTION_NAMES, OPTION_PREFIXES, parse_options
from shardmw.container_server.filter import ContainerFilter
from shardmw.core.placement import object_key, shard_key, shard_of
from shardmw.proxy import filter as middleware
from shardmw.proxy import listings_filter as listing_bypass
from shardmw.proxy.pipeline import (
    Filter,
    Pipeline,
    check_order,
    read_pipeline,
)

PROJECT = Path(__file__).parents[2]
ETC = PROJECT / 'etc'
CONTAINER_SAMPLE = ETC / 'container-server.conf-sample'
#: The samples with the filter shardmw.
SAMPLES = sorted({*ETC.glob('*.conf-sample')} - {CONTAINER_SAMPLE})
SAMPLE = ETC / 'proxy-server.conf-sample'
DESIGN = PROJECT / 'doc' / 'design.md'
UNIT = ETC / 'shardmw-resharder.service'
DEPLOY = ETC / 'deploy'
DOCTOR_UNIT = ETC / 'shardmw-doctor.service'
PACKAGING = PROJECT / 'packaging'
#: Where the unit expects the commands, as pip installs them.
PIP_BIN = '/usr/local/bin/'
SECTION = 'filter:shardmw'

#: Each of these stands for any number of options. None is set by default.
RATE_LIMITS = {f'{prefix}SIZE' for prefix in OPTION_PREFIXES}

#: The samples for internal clients, with the filters of Swift's own samples.
INTERNAL_CLIENTS = {
    'container-reconciler': 'catch_errors proxy_logging memcache',
    'internal-client': 'catch_errors proxy_logging memcache symlink',
    'object-expirer': 'catch_errors memcache',
}

#: The keys of the whole proxy's configuration that the filter reads.
PROXY_OPTIONS = {'workers'}


class RecordingConf(dict):
    """A section of a configuration file that records which keys are read."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.names_read = set()

    def get(self, name, default=None):
        self.names_read.add(name)
        return super().get(name, default)


def documented_options() -> dict[str, str]:
    """Return the options that the sample comments out, with defaults."""
    section = SAMPLE.read_text().partition(f'\n[{SECTION}]\n')[2]
    section = section.partition('\n[')[0]
    return dict(re.findall(r'^# (\w+) = ?(.*)$', section, re.MULTILINE))


def test_the_sample_names_exactly_the_options_that_exist():
    assert {*documented_options()} == {*OPTION_NAMES} | RATE_LIMITS


def test_all_options_are_read():
    conf = RecordingConf()
    parse_options(conf)
    assert conf.names_read - PROXY_OPTIONS == {*OPTION_NAMES}


def test_the_sample_has_the_defaults():
    documented = documented_options()
    for name in RATE_LIMITS:
        del documented[name]
    assert parse_options(documented) == parse_options({})


def options_of(path: Path) -> dict[str, str]:
    """Return the options that a sample sets in the filter's section."""
    parser = configparser.ConfigParser(default_section=None)
    parser.read(path)
    options = dict(parser[SECTION])
    assert options.pop('use') == 'egg:shardmw#shardmw'
    return options


@pytest.mark.parametrize('name', INTERNAL_CLIENTS)
def test_samples_of_daemons_create_no_shards_and_keep_no_pages(name):
    assert options_of(ETC / f'{name}.conf-sample') == {
        'max_shards': '0',
        'listing_kept_megabytes': '0',
    }


@pytest.mark.parametrize('name', ['proxy-server', 'shardmw-resharder'])
def test_other_samples_set_no_options_of_the_filter(name):
    assert options_of(ETC / f'{name}.conf-sample') == {}


@pytest.mark.parametrize('path', SAMPLES, ids=lambda path: path.name)
def test_samples_have_a_pipeline_that_the_filter_accepts(path):
    middleware.filter_factory({'__file__': str(path)})


def test_the_sample_can_have_the_listings_filter_where_it_says(tmp_path):
    text = SAMPLE.read_text()
    section = '[filter:shardmw-listings]\nuse = egg:shardmw#shardmw_listings'
    commented = section.replace('[', '# [').replace('use', '# use')
    assert commented in text
    text = text.replace(commented, section)
    place = 'cache shardmw-listings listing_formats'
    assert f'... proxy-logging {place} ...' in text
    path = tmp_path / 'proxy-server.conf'
    path.write_text(text.replace('cache listing_formats', place))
    assert 'shardmw_listings' in read_pipeline({'__file__': str(path)}).kinds
    listing_bypass.filter_factory({'__file__': str(path)})


def test_container_servers_have_one_more_filter_than_swifts(tmp_path):
    text = CONTAINER_SAMPLE.read_text()
    assert '# devices = /srv/node\n' in text
    path = tmp_path / 'container-server.conf'
    path.write_text(
        text.replace('# devices = /srv/node', f'devices = {tmp_path}')
    )
    assert isinstance(loadapp(str(path)).app.app, ContainerFilter)


@pytest.mark.parametrize('name', INTERNAL_CLIENTS)
def test_internal_clients_have_one_more_filter_than_swifts(name):
    path = ETC / f'{name}.conf-sample'
    pipeline = read_pipeline({'__file__': str(path)})
    assert pipeline.kinds == [*INTERNAL_CLIENTS[name].split(), 'shardmw']
    assert pipeline.is_internal_client


def unit_of(path: Path) -> configparser.RawConfigParser:
    """Return the sections of a systemd unit."""
    unit = configparser.RawConfigParser()
    unit.optionxform = str
    unit.read(path)
    return unit


def scripts_named(command: str) -> set[str]:
    """Return the functions that a command of a unit runs."""
    assert Path(command).is_absolute()
    scripts = entry_points(group='console_scripts', name=Path(command).name)
    return {each.value for each in scripts}


def test_the_unit_starts_the_daemon_with_the_configuration_of_its_sample():
    service = unit_of(UNIT)['Service']
    command, conf = service['ExecStart'].split()
    assert scripts_named(command) == {'shardmw.reshard.daemon:main'}
    assert f'as {conf}.' in (ETC / f'{Path(conf).name}-sample').read_text()
    assert service['User'] == 'swift'


#: The tags of Jinja and Go. What is between "if" and "end" stays.
TEMPLATE_TAG = re.compile(r'{[%{].*?[%}]}')

#: The options that deployment tools set in the filter's section.
PROXY = {'use': 'egg:shardmw#shardmw', 'max_shards': '0'}
INTERNAL_CLIENT = {**PROXY, 'listing_kept_megabytes': '0'}
RESHARDER = {'use': 'egg:shardmw#shardmw'}


def deployed(name: str) -> dict:
    return yaml.safe_load((DEPLOY / name).read_text())


def operator_files() -> dict[str, configparser.ConfigParser]:
    """Return the files that swift-operator.yaml makes, without tags."""
    template = deployed('swift-operator.yaml')['spec']['swift']['template']
    files = {}
    for part in template.values():
        for name, text in part['defaultConfigOverwrite'].items():
            files[name] = configparser.ConfigParser(default_section=None)
            files[name].read_string(TEMPLATE_TAG.sub('', text))
    return files


def deployed_pipelines() -> dict[str, str]:
    """Return the pipelines of deployment tools, with all optional filters."""
    ansible = deployed('openstack-ansible.yml')
    client = ansible['shardmw_internal_client']
    pipelines = {
        'swift_middleware_list': ' '.join(ansible['swift_middleware_list']),
        'shardmw_internal_client': client['pipeline:main']['pipeline'],
    }
    for name, value in deployed('puppet-swift.yaml').items():
        if name.endswith('::pipeline'):
            pipelines[name] = ' '.join(value)
    for name, conf in operator_files().items():
        pipelines[name] = conf['pipeline:main']['pipeline']
    return pipelines


def named_filter(name: str) -> Filter:
    kind = 'memcache' if name == 'cache' else name.replace('-', '_')
    return Filter(name, kind, {})


def test_deployment_tools_have_ten_pipelines():
    assert len(deployed_pipelines()) == 10


@pytest.mark.parametrize('name', deployed_pipelines())
def test_deployment_tools_have_pipelines_that_the_filter_accepts(name):
    text = TEMPLATE_TAG.sub('', deployed_pipelines()[name])
    *filters, app = text.split()
    assert app == 'proxy-server'
    check_order(Pipeline([*map(named_filter, filters)]))


def test_openstack_ansible_sets_the_options_of_the_samples():
    ansible = deployed('openstack-ansible.yml')
    sections = (
        ansible['swift_proxy_server_conf_overrides'],
        ansible['shardmw_internal_client'],
    )
    assert [
        {name: str(value) for name, value in section[SECTION].items()}
        for section in sections
    ] == [PROXY, INTERNAL_CLIENT]


def test_puppet_swift_sets_the_options_of_the_samples():
    text = (DEPLOY / 'puppet-swift.pp').read_text()
    resources = re.findall(r'(swift_\w+_config) {(.*?)\n  }', text, re.DOTALL)
    option = re.compile(r"'filter:shardmw/(\w+)': +value => '(.*)';")
    assert {
        name: dict(option.findall(body))
        for name, body in resources
        if option.search(body)
    } == {
        'swift_proxy_config': PROXY,
        'swift_internal_client_config': INTERNAL_CLIENT,
        'swift_object_expirer_config': INTERNAL_CLIENT,
        'swift_container_reconciler_config': INTERNAL_CLIENT,
    }


def test_swift_operator_sets_the_options_of_the_samples():
    files = operator_files()
    assert {name: dict(files[name][SECTION]) for name in files} == {
        '01-proxy-server.conf': PROXY,
        '01-object-expirer.conf': INTERNAL_CLIENT,
        'internal-client.conf': INTERNAL_CLIENT,
        'shardmw-resharder.conf': RESHARDER,
    }


def test_the_deployment_mounts_files_that_the_operator_makes():
    path = DEPLOY / 'swift-operator-resharder.yaml'
    deployment, _ = yaml.safe_load_all(path.read_text())
    pod = deployment['spec']['template']['spec']
    volumes = {each['name']: each for each in pod['volumes']}
    *_, configured = volumes['etc-swift']['projected']['sources']
    keys = {each['key'] for each in configured['configMap']['items']}
    assert keys < {*operator_files()}


@pytest.mark.parametrize(
    'name', ['openstack-ansible-resharder.yml', 'puppet-swift.pp']
)
def test_deployment_tools_copy_files_that_the_wheel_has(name):
    text = (DEPLOY / name).read_text()
    copied = {*re.findall(r'samples(?: }}|})/([\w.-]+)', text)}
    assert copied == {'shardmw-resharder.conf-sample', UNIT.name}
    assert copied < {each.name for each in ETC.iterdir()}


def test_deployment_tools_install_this_release():
    wheel = deployed('openstack-ansible.yml')['shardmw_wheel']
    assert Path(wheel).name == f'shardmw-{__version__}-py3-none-any.whl'
    text = (DEPLOY / 'puppet-swift.pp').read_text()
    assert re.findall(r"\$version += '(.*)'", text) == [__version__]


def test_the_timer_starts_the_doctor():
    assert DOCTOR_UNIT.with_suffix('.timer').exists()
    service = unit_of(DOCTOR_UNIT)['Service']
    command, *arguments = service['ExecStart'].split()
    assert scripts_named(command) == {'shardmw.admin.cli:main'}
    assert arguments[0] in admin_command.commands
    assert service['Type'] == 'oneshot'
    assert service['User'] == 'swift'


#: A row of the table of placements: name (and repetitions), key, shards.
PROMISE = re.compile(
    r'^\| `([^`]+)`(?: × (\d+))? \| (\w{16}) \| ([\d |]+) \|$', re.MULTILINE
)
PROMISED_COUNTS = (1, 2, 8, 32, 64, 512)

#: A row of the table of depths: name, depth, shard key, key and shards.
DEPTH_PROMISE = re.compile(
    r'^\| `([^`]+)` \| (\d+) \| `([^`]+)` \| (\w{16}) \| ([\d |]+) \|$',
    re.MULTILINE,
)
DEPTH_COUNTS = (8, 32, 512)


def promised_placements() -> list[tuple[str, str, list[int]]]:
    """Return ``(name, key, shards by PROMISED_COUNTS)`` from the page."""
    text = DESIGN.read_text(encoding='utf-8')
    return [
        (name * int(times or 1), key, [*map(int, shards.split('|'))])
        for name, times, key, shards in PROMISE.findall(text)
    ]


@pytest.mark.parametrize(('name', 'key', 'shards'), promised_placements())
def test_placement_keeps_the_promise_of_the_page(name, key, shards):
    assert object_key(name) == int(key, 16)
    assert [shard_of(name, count) for count in PROMISED_COUNTS] == shards


def test_the_page_promises_five_placements():
    assert len(promised_placements()) == 5


def promised_depths() -> list[tuple[str, ...]]:
    """Return the rows of the page's table of depths."""
    text = DESIGN.read_text(encoding='utf-8')
    return DEPTH_PROMISE.findall(text)


@pytest.mark.parametrize(
    ('name', 'depth', 'directory', 'key', 'shards'), promised_depths()
)
def test_placement_by_depth_keeps_the_promise_of_the_page(
    name, depth, directory, key, shards
):
    assert shard_key(name, int(depth)) == directory
    assert object_key(name, int(depth)) == int(key, 16)
    found = [shard_of(name, count, int(depth)) for count in DEPTH_COUNTS]
    assert found == [*map(int, shards.split('|'))]


def test_the_page_promises_eight_placements_by_depth():
    assert len(promised_depths()) == 8


TEXTS = ('README.md', 'CHANGELOG.md', 'LICENSE')
BUILT_FROM = ('setup.py', 'setup.cfg', 'pyproject.toml', *TEXTS)
SHARED = 'share/doc/shardmw/'


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    """Return a copy of the project, which builds may change."""
    copy = tmp_path_factory.mktemp('source')
    for name in BUILT_FROM:
        shutil.copy(PROJECT / name, copy)
    for name in ('shardmw', 'etc', 'tools'):
        shutil.copytree(PROJECT / name, copy / name)
    return copy


def build_wheel(source: Path, built: Path) -> zipfile.ZipFile:
    """Return the wheel of a folder or a source distribution.

    :param built: an empty folder for it
    """
    subprocess.run(
        [
            *(sys.executable, '-m', 'pip', 'wheel', '--quiet'),
            *('--no-deps', '--no-build-isolation', '--wheel-dir'),
            *(built, source),
        ],
        check=True,
    )
    (path,) = built.iterdir()
    return zipfile.ZipFile(path)


@pytest.fixture(scope='module')
def wheel(source, tmp_path_factory):
    with build_wheel(source, tmp_path_factory.mktemp('built')) as archive:
        yield archive


@pytest.fixture(scope='module')
def tools_wheel(source, tmp_path_factory):
    """Build the wheel of the tools as for an upload: from their sdist."""
    sdists = tmp_path_factory.mktemp('sdists')
    subprocess.run(
        [
            *(sys.executable, 'setup.py', '--quiet'),
            *('sdist', '--dist-dir', sdists),
        ],
        cwd=source / 'tools',
        check=True,
    )
    (sdist,) = sdists.iterdir()
    with build_wheel(sdist, tmp_path_factory.mktemp('tools')) as archive:
        yield archive


def test_a_wheel_has_all_modules_and_nothing_else(wheel):
    modules = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / 'shardmw').rglob('*')
        if path.suffix == '.py'
    }
    packed = {
        name
        for name in wheel.namelist()
        if '.dist-info/' not in name and '.data/' not in name
    }
    assert packed == modules


def test_a_wheel_has_the_samples(wheel):
    packed = {
        name.partition(SHARED)[2]: wheel.read(name)
        for name in wheel.namelist()
        if f'.data/data/{SHARED}' in name
    }
    samples = {
        str(path.relative_to(ETC)): path.read_bytes()
        for path in ETC.rglob('*')
        if path.is_file()
    }
    changelog = (PROJECT / 'CHANGELOG.md').read_bytes()
    assert packed == {**samples, 'CHANGELOG.md': changelog}


def test_a_wheel_has_the_filter_and_the_commands(wheel):
    packed = configparser.ConfigParser()
    (path,) = (n for n in wheel.namelist() if n.endswith('entry_points.txt'))
    packed.read_string(wheel.read(path).decode('utf-8'))
    assert dict(packed['paste.filter_factory']) == {
        'shardmw': 'shardmw.proxy.filter:filter_factory',
        'shardmw_container': 'shardmw.container_server.filter:filter_factory',
        'shardmw_listings': 'shardmw.proxy.listings_filter:filter_factory',
    }
    assert dict(packed['console_scripts']) == {
        'shardmw-admin': 'shardmw.admin.cli:main',
        'shardmw-resharder': 'shardmw.reshard.daemon:main',
    }


def test_a_wheel_has_the_license(wheel):
    assert any(name.endswith('/LICENSE') for name in wheel.namelist())


def metadata_of(wheel: zipfile.ZipFile) -> str:
    (path,) = (n for n in wheel.namelist() if n.endswith('/METADATA'))
    return wheel.read(path).decode('utf-8')


def test_a_wheel_needs_little(wheel):
    text = metadata_of(wheel)
    needed = re.findall(r'^Requires-Dist: ([\w-]+)', text, re.MULTILINE)
    assert sorted(needed) == ['click', 'orjson', 'swift']


def test_the_tools_are_those_of_this_release(tools_wheel):
    lines = metadata_of(tools_wheel).splitlines()
    assert f'Version: {__version__}' in lines
    assert f'Requires-Dist: shardmw=={__version__}' in lines


def test_the_wheel_of_the_tools_has_the_license(tools_wheel):
    assert any(name.endswith('/LICENSE') for name in tools_wheel.namelist())


@pytest.mark.parametrize(
    ('path', 'pattern'),
    [
        ('CHANGELOG.md', r'^## ([\d.]+)'),
        ('packaging/debian/changelog', r'^shardmw \((.+)-\d+\)'),
        ('packaging/rpm/shardmw.spec', r'^Version: +(.+)$'),
    ],
)
def test_the_newest_version_of_each_recipe_is_this_one(path, pattern):
    text = (PROJECT / path).read_text(encoding='utf-8')
    assert re.search(pattern, text, re.MULTILINE)[1] == __version__


@pytest.mark.parametrize(
    ('path', 'pattern'),
    [
        ('debian/control', r'^ python3-(\w+) \(>= ([\d.]+)\)'),
        ('rpm/shardmw.spec', r'^Requires: +python3-(\w+) >= ([\d.]+)$'),
    ],
)
def test_each_recipe_needs_what_the_wheel_needs(path, pattern):
    config = configparser.ConfigParser()
    config.read(PROJECT / 'setup.cfg')
    needed = config['options']['install_requires'].split()
    text = (PACKAGING / path).read_text(encoding='utf-8')
    found = re.findall(pattern, text, re.MULTILINE)
    assert sorted(map('>='.join, found)) == sorted(needed)


def test_recipes_find_the_command_of_the_unit_where_they_replace_it():
    assert f'ExecStart={PIP_BIN}shardmw-resharder ' in UNIT.read_text()
    for path in ('debian/rules', 'rpm/shardmw.spec'):
        assert f's,{PIP_BIN},' in (PACKAGING / path).read_text()
