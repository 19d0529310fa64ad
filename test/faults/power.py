# SPDX-License-Identifier: Apache-2.0
"""Disks whose power can be cut."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from test.functional.operating import wait_until

#: How often everything becomes durable: as often as the journal of ext4. That
#: of XFS may take 30 s.
FLUSH_SECONDS = 5


def why_not() -> str:
    """Return why no disk can be mounted, '' if one can."""
    if os.access('/dev/fuse', os.W_OK):
        return ''
    return '/dev/fuse is missing, or not for this user'


class Disk:
    """A mounted file system that loses what is not synced.

    :param mount: the folder where it is mounted, which is created
    :param store: the folder for its files, see :mod:`test.faults.disk`
    :param share: the share of writes that are durable at once
    :param flush_seconds: how often everything becomes durable
    """

    def __init__(
        self,
        mount: Path,
        store: Path,
        share: float = 0,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self.mount, self.store = mount, store
        self._arguments = [
            str(each) for each in (mount, store, share, flush_seconds)
        ]
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> 'Disk':
        self.on()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.off()

    def on(self) -> None:
        """Mount it with what is durable."""
        self.mount.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'test.faults.disk', *self._arguments],
            start_new_session=True,  # the runner ends it after its servers
        )
        wait_until(lambda: os.path.ismount(self.mount))

    def freeze(self) -> None:
        """Answer nothing any more, so that nothing becomes durable."""
        self._process.send_signal(signal.SIGSTOP)

    def off(self) -> None:
        """Cut the power. Open files fail, and the folder is empty."""
        self._process.kill()
        self._process.wait()
        subprocess.run(['umount', '--lazy', self.mount], check=True)

    def cut(self) -> None:
        """Cut the power for a moment."""
        self.off()
        self.on()


class Disks:
    """The disks of the storage nodes of a cluster, which cells may use.

    :param devices: the folder with a folder for each node
    :param store: the folder for the files of the disks
    """

    def __init__(self, devices: Path, store: Path) -> None:
        self._devices, self._store = devices, store
        self._disks: dict[int, Disk] = {}

    def use(self, folders: Iterable[Path], **options: float) -> None:
        """Mount a disk below the devices of each node.

        :param folders: the folders of devices, in the folders of their nodes
        :param options: see :class:`Disk`
        """
        for folder in folders:
            node = int(folder.parent.name)
            if node not in self._disks:
                store = self._store / str(node)
                self._disks[node] = Disk(folder.parent, store, **options)
                self._disks[node].on()
            folder.mkdir()

    def remove(self) -> None:
        """Unmount the disks, and remove their files."""
        for disk in self._disks.values():
            disk.off()
        self._disks = {}
        shutil.rmtree(self._store, ignore_errors=True)

    @contextlib.contextmanager
    def off(self, nodes: Iterable[int]) -> Iterator[None]:
        """Cut the power of nodes at the end of the block, at one moment.

        During the block, nothing becomes durable.
        """
        disks = [self._disks[node] for node in nodes]
        for disk in disks:
            disk.freeze()
        yield
        for disk in disks:
            disk.off()

    def on(self, nodes: Iterable[int]) -> None:
        """Switch the disks of nodes on again."""
        for node in nodes:
            self._disks[node].on()
