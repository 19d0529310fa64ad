# SPDX-License-Identifier: Apache-2.0
"""The folder of a cluster: its paths and its stored state."""

import contextlib
import errno
import fcntl
import json
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shardmw_saio.config import Place
from shardmw_saio.errors import SaioError
from shardmw_saio.options import ClusterOptions
from shardmw_saio.topology import Device

_STATE = 'saio.json'
_LOCK = 'saio.lock'
_FORMAT = 1

# Swift splits an object's metadata into attributes of the size that the file
# system allows. Tests need no larger attributes than this one.
_XATTR = ('user.swift.metadata', b'x' * 1024)


@dataclass(frozen=True)
class State:
    """The stored state: a cluster's options and the ports of its servers."""

    options: ClusterOptions
    ports: Mapping[str, int]


class Folder:
    """The files of a cluster.

    :param path: the folder; it need not exist yet
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path).resolve()
        self.etc = self.path / 'etc'
        self.devices = self.path / 'devices'
        self.log = self.path / 'log'
        self.cache = self.path / 'cache'
        self._unfinished_state = self.path / f'{_STATE}.new'

    def place(self) -> Place:
        """Return the folders and the user for the configuration files.

        :raises SaioError: if this user has no name
        """
        try:
            user = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            raise SaioError(
                f'user {os.geteuid()} has no name and Swift needs one: add '
                'the user to the password database'
            ) from None
        return Place(str(self.etc), str(self.devices), str(self.cache), user)

    def claim(self) -> None:
        """Make the folder, or check that it is empty or a cluster's.

        :raises SaioError: if the folder cannot be used for a cluster
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            entries = {entry.name for entry in self.path.iterdir()}
        except OSError as err:
            raise SaioError(
                f'{self.path} cannot be used as a folder ({err.strerror}): '
                'name another one'
            ) from None
        known = {_LOCK, self._unfinished_state.name}
        if _LOCK in entries:
            # A first start that failed has left its logs.
            known.add(self.log.name)
        if entries - known and _STATE not in entries:
            raise SaioError(
                f'{self.path} is not empty and not a cluster: name another '
                'folder'
            )
        self._check_xattrs()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the cluster; other commands on it wait."""
        with (self.path / _LOCK).open('a') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def has_lock(self) -> bool:
        """Return True if the folder has been locked before.

        Otherwise it has never had a cluster.
        """
        return (self.path / _LOCK).exists()

    def load(self) -> State | None:
        """Return the stored state, or None if there is no cluster.

        :raises SaioError: if the state cannot be read
        """
        try:
            text = (self.path / _STATE).read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            state = json.loads(text)
            if state['format'] != _FORMAT:
                raise ValueError(f'format {state["format"]}')
            options = ClusterOptions.from_json(state['options'])
            return State(options, state['ports'])
        except (ValueError, KeyError, TypeError) as err:
            raise SaioError(
                f'{self.path / _STATE} cannot be read ({err}): remove '
                f'{self.path} and start over'
            ) from None

    def save(self, state: State) -> None:
        """Store a state."""
        text = json.dumps(
            {
                'format': _FORMAT,
                'options': state.options.as_json(),
                'ports': dict(state.ports),
            },
            indent=2,
        )
        _replace(self.path / _STATE, text + '\n')

    def forget(self) -> None:
        """Delete a cluster that could not be started, except its logs."""
        for each in (self.etc, self.devices, self.cache):
            shutil.rmtree(each, ignore_errors=True)
        (self.path / _STATE).unlink(missing_ok=True)

    def remove(self) -> list[str]:
        """Delete the cluster, and the folder if nothing else is in it.

        The state is deleted last, so that an interrupted removal can be
        repeated.

        :returns: the names of other files in the folder
        :raises SaioError: if one of its folders is a symbolic link. Nothing is
                           deleted then
        """
        folders = (self.devices, self.cache, self.log, self.etc)
        for each in folders:
            if each.is_symlink():
                raise SaioError(
                    f'{each} is a symbolic link: remove it, and what it leads '
                    'to, and try again'
                )
        for each in folders:
            if each.exists():
                shutil.rmtree(each)
        for name in (_STATE, self._unfinished_state.name, _LOCK):
            (self.path / name).unlink(missing_ok=True)
        others = sorted(each.name for each in self.path.iterdir())
        if not others:
            self.path.rmdir()
        return others

    def make_rooms(self, devices: list[Device]) -> None:
        """Make the folders that the servers need."""
        self.etc.mkdir(exist_ok=True)
        self.log.mkdir(exist_ok=True)
        for device in devices:
            node = str(device.node)
            (self.cache / node).mkdir(parents=True, exist_ok=True)
            device_path = self.devices / node / device.name
            device_path.mkdir(parents=True, exist_ok=True)

    def changed_confs(self, texts: Mapping[str, str]) -> set[str]:
        """Return the names of the texts that differ from the files."""
        return {
            name
            for name, text in texts.items()
            if _read(self.etc / name) != text
        }

    def write_confs(self, texts: Mapping[str, str]) -> None:
        """Write configuration files."""
        for name, text in texts.items():
            _replace(self.etc / name, text)

    def log_path(self, name: str) -> Path:
        """Return the path of the log of a server or daemon."""
        return self.log / f'{name}.log'

    def _check_xattrs(self) -> None:
        try:
            trial = tempfile.TemporaryFile(dir=self.path)  # noqa: SIM115
        except OSError as err:
            raise SaioError(
                f'{self.path} cannot be written to ({err.strerror}): name '
                'another folder'
            ) from None
        with trial:
            try:
                os.setxattr(trial.fileno(), *_XATTR)
            except OSError as err:
                if err.errno not in (errno.ENOTSUP, errno.ENOSPC):
                    raise
                raise SaioError(
                    f'{self.path} is on a file system without room for '
                    'extended attributes: choose a folder on ext4 or xfs'
                ) from None


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def _replace(path: Path, text: str) -> None:
    """Replace a file in one step: readers never see a part of it."""
    unfinished = path.with_name(f'{path.name}.new')
    unfinished.write_text(text)
    unfinished.replace(path)
