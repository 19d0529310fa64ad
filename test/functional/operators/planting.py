# SPDX-License-Identifier: Apache-2.0
"""Plant the mistakes of a rollout: proxies and files that are not right."""

import configparser
import contextlib
import shutil
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from time import time

from shardmw_saio import Cluster

from test.functional.extra_proxy import running_proxy

OLD_VERSION = '0.0.9'
LATE_SECONDS = 60


def old_version_factory(global_conf: dict, **local_conf: str) -> Callable:
    """Return a filter with which shardmw takes itself for an old version.

    The factories of a pipeline are called from left to right.
    """
    from shardmw.proxy import filter as shardmw

    shardmw.__version__ = OLD_VERSION
    return lambda app: app


def late_clock_factory(global_conf: dict, **local_conf: str) -> Callable:
    """Return a filter with which the proxy shows the time of a late clock."""

    def late(app: Callable) -> Callable:
        def shown(env: dict, start_response: Callable):
            def start(status: str, headers: list, *args):
                date = formatdate(time() - LATE_SECONDS, usegmt=True)
                return start_response(
                    status, [*headers, ('Date', date)], *args
                )

            return app(env, start)

        return shown

    return late


@contextlib.contextmanager
def proxy_with_options(cluster: Cluster, **options: str) -> Iterator[str]:
    """Run a proxy with other options of the filter; yield its URL."""

    def change(conf: configparser.RawConfigParser) -> None:
        conf['filter:shardmw'].update(options)

    with running_proxy(cluster, 'other-options-proxy', change) as url:
        yield url


@contextlib.contextmanager
def proxy_with_filter(cluster: Cluster, factory: Callable) -> Iterator[str]:
    """Run a proxy with one more filter, on the left; yield its URL."""

    def change(conf: configparser.RawConfigParser) -> None:
        path = f'{factory.__module__}:{factory.__name__}'
        conf['filter:planted'] = {'paste.filter_factory': path}
        pipeline = conf['pipeline:main']
        pipeline['pipeline'] = f'planted {pipeline["pipeline"]}'

    with running_proxy(cluster, factory.__name__, change) as url:
        yield url


@contextlib.contextmanager
def proxy_of_folder(cluster: Cluster, folder: Path) -> Iterator[str]:
    """Run a proxy with the swift.conf of another folder; yield its URL."""

    def change(conf: configparser.RawConfigParser) -> None:
        conf['DEFAULT']['swift_dir'] = str(folder)

    with running_proxy(cluster, 'other-folder-proxy', change) as url:
        yield url


class Machine:
    """The configuration of a machine, in a folder that tests may change.

    It has the files of a cluster, under the names that they have in
    production.

    :param path: the folder, which must not exist
    """

    NAMES = {
        'container-1.conf': 'container-server.conf',
        'object-1.conf': 'object-server.conf',
        'proxy-1.conf': 'proxy-server.conf',
    }

    def __init__(self, cluster: Cluster, path: Path) -> None:
        self.path = path
        shutil.copytree(cluster.swift_dir, path)
        for name, usual in self.NAMES.items():
            (path / name).rename(path / usual)
        folder = str(path)
        for section in ('container-sync', 'container-sharder'):
            self.set(
                'container-server',
                section,
                internal_client_conf_path=f'{folder}/internal-client.conf',
            )

    def file(self, name: str) -> str:
        """Return the path of a file, named without its ending."""
        return str(self.path / f'{name}.conf')

    def set(self, name: str, section: str, **options: str) -> None:
        """Set options in a file."""
        self._change(name, lambda conf: conf[section].update(options))

    def remove(self, name: str, section: str, option: str) -> None:
        """Remove an option from a file."""
        self._change(name, lambda conf: conf[section].pop(option))

    def reorder(self, name: str, change: Callable[[list], list]) -> None:
        """Change the pipeline in a file."""

        def changed(conf: configparser.RawConfigParser) -> None:
            pipeline = conf['pipeline:main']
            names = change(pipeline['pipeline'].split())
            pipeline['pipeline'] = ' '.join(names)

        self._change(name, changed)

    def take_filter_out(self, name: str) -> None:
        """Remove the filter from the pipeline in a file."""
        self.reorder(name, lambda names: [x for x in names if x != 'shardmw'])

    def split(self, name: str) -> str:
        """Replace a file by a folder of files; return the folder's path."""
        whole = Path(self.file(name))
        folder = whole.with_name(f'{name}.conf.d')
        folder.mkdir()
        whole.rename(folder / '10-all.conf')
        return str(folder)

    def _change(self, name: str, change: Callable) -> None:
        conf = configparser.RawConfigParser(strict=False)
        conf.optionxform = str
        path = self.file(name)
        conf.read(path)
        change(conf)
        with open(path, 'w') as file:
            conf.write(file)
