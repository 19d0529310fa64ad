# SPDX-License-Identifier: Apache-2.0
"""Read the configuration files of this machine, as Swift reads them."""

import configparser
import dataclasses
from pathlib import Path
from typing import NamedTuple

from swift.common.utils import readconf, search_tree

from shardmw.admin.doctor.files import (
    DAEMON,
    PROXY,
    RESHARDER,
    PipelineFile,
    about_container_server,
    about_object_server,
)
from shardmw.admin.doctor.findings import NOT_CHECKED, Finding
from shardmw.backend.config import ConfigError, parse_options
from shardmw.backend.digests import Digests
from shardmw.proxy.pipeline import SHARDMW, check_pipeline, read_pipeline
from shardmw.reshard.swift_folder import in_one_line
from shardmw.swift.memcached import servers_in

CACHE = 'memcache'
INTERNAL_CLIENT = 'internal-client'

#: The option with which a daemon names the file of its internal client.
CLIENT_OPTION = 'internal_client_conf_path'


class Reader(NamedTuple):
    """A program that needs the filter in a pipeline.

    :param file: the name of the file with its options, without the ending
    :param section: the section of its options
    :param kind: PROXY, RESHARDER or DAEMON
    :param names_client: True if the section may name the file with the
                         pipeline
    :param default: the name of that file if the section names none; None for
                    the file with the section
    """

    file: str
    section: str
    kind: str = DAEMON
    names_client: bool = False
    default: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the program."""
        return self.file if self.kind == PROXY else self.section


READERS = (
    Reader('proxy-server', 'pipeline:main', PROXY),
    Reader('object-expirer', 'object-expirer', DAEMON, True),
    Reader('object-server', 'object-expirer', DAEMON, True, INTERNAL_CLIENT),
    Reader('container-reconciler', 'container-reconciler'),
    Reader(
        *('container-server', 'container-sync'),
        *(DAEMON, True, INTERNAL_CLIENT),
    ),
    Reader(
        *('container-server', 'container-sharder'),
        *(DAEMON, True, INTERNAL_CLIENT),
    ),
    Reader('shardmw-resharder', 'shardmw-resharder', RESHARDER),
)

#: The checks of sections other than pipelines, by the name of the file.
CHECKS = {
    'container-server': about_container_server,
    'object-server': about_object_server,
}


class LocalFiles(NamedTuple):
    """The files of this machine.

    :param pipelines: those with a pipeline that must have the filter
    :param findings: what is wrong with others
    :param paths: the paths of all files that were read
    :param missing: the names of those that do not exist, which is no mistake
    """

    pipelines: list[PipelineFile]
    findings: list[Finding]
    paths: list[str]
    missing: list[str]


def read_files(swift_dir: Path, digests: Digests) -> LocalFiles:
    """Read the files in a folder, and those that they name."""
    folder = str(swift_dir.absolute())
    named = {each.file: _files(folder, each.file) for each in READERS}
    sections, findings = _sections_in(named)
    clients = {path: (DAEMON, []) for path in _files(folder, INTERNAL_CLIENT)}
    for reader in READERS:
        for path in named[reader.file]:
            if reader.section in sections.get(path, {}):
                client = _client_file(reader, sections[path], path, folder)
                _, users = clients.setdefault(client, (reader.kind, []))
                users.append(reader.name)
    pipelines = []
    for path, (kind, users) in clients.items():
        if Path(path).exists():
            programs = tuple(dict.fromkeys(users)) or ('internal clients',)
            pipelines.append(
                _pipeline_file(path, kind, programs, folder, digests)
            )
        else:
            findings.append(_absent(path, users))
    paths = {*sections, *(each.path for each in pipelines)}
    missing = [f'{name}.conf' for name, found in named.items() if not found]
    return LocalFiles(pipelines, findings, sorted(paths), missing)


def _sections_in(
    named: dict[str, list[str]],
) -> tuple[dict[str, dict], list[Finding]]:
    """Return the sections of files by path, and what is wrong with them.

    :param named: the paths of files by their names
    """
    sections, findings = {}, []
    for name, paths in named.items():
        check = CHECKS.get(name)
        for path in paths:
            try:
                sections[path] = readconf(path, raw=True)
            except (OSError, ValueError, configparser.Error) as err:
                findings.append(_unreadable(path, err))
                continue
            findings += check(path, sections[path]) if check else ()
    return sections, findings


def _files(folder: str, name: str) -> list[str]:
    """Return the files of a name, and the folders that stand for one file."""
    return search_tree(folder, f'{name}*', '.conf', dir_ext='.conf.d')


def _client_file(
    reader: Reader, sections: dict, path: str, folder: str
) -> str:
    """Return the path of the file that has the pipeline of a program.

    :param sections: the sections of the file with the program's options
    :param path: the path of that file
    """
    named = sections[reader.section].get(CLIENT_OPTION)
    if reader.names_client and named:
        return str(Path(named).absolute())
    if reader.default:
        return str(Path(folder) / f'{reader.default}.conf')
    return path


def _unreadable(path: str, err: Exception) -> Finding:
    return Finding(
        path,
        f'{NOT_CHECKED}it cannot be read: {in_one_line(err)}',
        'correct it, or run the command as a user who may read it',
    )


def _absent(path: str, users: list[str]) -> Finding:
    problem = f'no such file, which {" and ".join(users)} must have'
    if 'container-sync' in users:
        problem += (
            ". Without one, container-sync uses Swift's own pipeline, which "
            'lacks the filter'
        )
    return Finding(
        path, problem, f'create it, from {INTERNAL_CLIENT}.conf-sample'
    )


def _pipeline_file(
    path: str, kind: str, users: tuple[str, ...], folder: str, digests: Digests
) -> PipelineFile:
    file = PipelineFile(path, kind, users, _sample(path))
    try:
        pipeline = read_pipeline({'__file__': path})
    except Exception as err:  # of the package of any filter
        problem = f'the pipeline cannot be read: {in_one_line(err)}'
        return dataclasses.replace(file, problem=problem)
    if pipeline is None:
        return dataclasses.replace(file, problem='it has no [pipeline:main]')
    filters = {each.kind: each.conf for each in pipeline.filters}
    if SHARDMW not in filters:
        return dataclasses.replace(file, has_filter=False)
    conf = {**filters[SHARDMW], '__file__': path}
    try:
        options = check_pipeline(conf, parse_options(conf))
        servers = servers_in({'swift_dir': folder, **filters[CACHE]})
    except (ConfigError, OSError, ValueError) as err:
        return dataclasses.replace(file, problem=in_one_line(err))
    return dataclasses.replace(
        file,
        options=options,
        options_digest=digests.of_options(options),
        memcached=digests.of_memcached(servers),
    )


def _sample(path: str) -> str:
    """Return the name of the sample for a file with a pipeline."""
    for reader in READERS:
        if Path(path).name.startswith(reader.file):
            return f'{reader.file}.conf-sample'
    return f'{INTERNAL_CLIENT}.conf-sample'
