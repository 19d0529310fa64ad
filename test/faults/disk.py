# SPDX-License-Identifier: Apache-2.0
"""A disk that loses power: a file system that keeps only what was synced.

    python -m test.faults.disk MOUNT STORE SHARE FLUSH_SECONDS

The file system is a folder that programs use, ``STORE/live``, and what is on
its disk, ``STORE/durable``. To cut the power, kill the process (SIGKILL) and
unmount. The next start begins with what was durable.

What is durable:

- The content, length and extended attributes of a file, as they were at its
  last fsync.
- The names in a folder, as they were at the last fsync of the folder. The
  fsync of a file makes its own name durable. All earlier changes that a change
  needs are durable with it: those of the same names, and the creation of the
  folders above. Other changes are not, so changes of unrelated files may
  become durable in another order, as if each folder were on its own device.
- Everything, every few seconds: a kernel writes back what nobody has synced.
  With a share of writes that are durable at once, any file may also be ahead
  of others.

If the power is cut during an fsync, parts of the file are durable. There are
no links. Locks and memory maps are those of the kernel.
"""

import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mfusepy import FUSE, Operations

#: How long the kernel may cache attributes and names: nobody else uses the
#: folders.
CACHE_SECONDS = 3600

LIVE, DURABLE = 'live', 'durable'

#: The name that the library gives to an open file that is removed begins with
#: it. Such files are in a folder of this name, beside the other two.
HIDDEN = '.fuse_hidden'


@dataclass(slots=True)
class Unsynced:
    """Keep what was written to a file since its last fsync.

    :ivar size: the least length since then
    :ivar parts: the offsets and lengths of what was written
    """

    size: int
    parts: list[tuple[int, int]] = field(default_factory=list)


class Change(NamedTuple):
    """A change of names.

    :param call: carries it out on absolute paths
    :param paths: the names that it changes
    :param mode: the mode of a new file or folder
    :param needs: other names whose earlier changes are durable with this one
    """

    call: Callable
    paths: tuple[str, ...]
    mode: tuple[int, ...]
    needs: frozenset[str]

    def replay(self, root: str) -> None:
        """Carry it out below a folder."""
        self.call(*(root + path for path in self.paths), *self.mode)


class FileSystem(Operations):
    """The operations of the file system.

    A path is relative to the mount, with a slash before it. The library
    renames an open file that is removed, or replaced, to a name that begins
    with HIDDEN, and removes it when it is closed. It has no path (None) when
    its folder has been removed.

    :param store: the folder of both folders
    :param share: the share of writes that are durable at once
    :param flush_seconds: how often everything becomes durable
    """

    use_ns = True

    def __init__(
        self, store: Path, share: float, flush_seconds: float
    ) -> None:
        self._live, self._durable = str(store / LIVE), str(store / DURABLE)
        self._hidden = str(store / HIDDEN)
        self._share, self._flush_seconds = share, flush_seconds
        self._changes: list[Change] = []
        self._unsynced: dict[str, Unsynced] = {}
        self._lock = threading.RLock()

    def init_with_config(self, _connection: object, config: object) -> None:
        config.kernel_cache = 1
        config.attr_timeout = config.entry_timeout = CACHE_SECONDS
        threading.Thread(target=self._flush_always, daemon=True).start()

    def flush_all(self) -> None:
        """Make everything durable."""
        with self._lock:
            self._commit(lambda _change: True)
            for path in list(self._unsynced):
                self._write_back(path)

    # Changes of names

    def create(self, path: str, mode: int, flags: int) -> int:
        with self._lock:
            self._change(_create, (path,), mode)
            self._unsynced[path] = Unsynced(0)
        return self.open(path, flags & ~os.O_EXCL)

    def mkdir(self, path: str, mode: int) -> None:
        self._change(os.mkdir, (path,), mode)

    def unlink(self, path: str) -> None:
        with self._lock:
            if _is_hidden(path):
                os.unlink(self._at(path))
                return
            self._change(os.unlink, (path,))
            self._unsynced.pop(path, None)

    def rmdir(self, path: str) -> None:
        with self._lock:
            self._change(os.rmdir, (path,), needs=self._names_in(path))

    def rename(self, old: str, new: str) -> None:
        with self._lock:
            if _is_hidden(new):
                os.link(self._live + old, self._at(new))
                self.unlink(old)
                return
            is_folder = os.path.isdir(self._live + old)
            if is_folder:
                self.flush_all()
            self._change(os.rename, (old, new))
            if is_folder:
                self.flush_all()
            self._unsynced.pop(new, None)
            if unsynced := self._unsynced.pop(old, None):
                self._unsynced[new] = unsynced

    # Changes of content

    def open(self, path: str, flags: int) -> int:
        with self._lock:
            if flags & os.O_TRUNC:
                self._unsynced_of(path).size = 0
            # The kernel gives the offset of what is appended.
            return os.open(self._at(path), flags & ~os.O_APPEND)

    def write(
        self, path: str | None, data: bytes, offset: int, fh: int
    ) -> int:
        with self._lock:
            self._unsynced_of(path).parts.append((offset, len(data)))
            written = os.pwrite(fh, data, offset)
            if random.random() < self._share:
                self._sync(path)
            return written

    def truncate(self, path: str, length: int) -> None:
        with self._lock:
            unsynced = self._unsynced_of(path)
            unsynced.size = min(unsynced.size, length)
            os.truncate(self._at(path), length)

    def setxattr(self, path: str, name: str, value: bytes, flags: int) -> None:
        with self._lock:
            self._unsynced_of(path)
            os.setxattr(self._at(path), name, value, flags)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self._at(path), mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        os.chown(self._at(path), uid, gid)

    def utimens(self, path: str, times: tuple[int, int]) -> None:
        os.utime(self._at(path), ns=times)

    # Making them durable

    def fsync(self, path: str | None, _is_data_only: int, _fh: int) -> None:
        with self._lock:
            self._sync(path)

    def fsyncdir(self, path: str, _is_data_only: int, _fh: int) -> None:
        with self._lock:
            self._commit_names({path, *self._names_in(path)})

    # Reading

    def read(
        self, _path: str | None, size: int, offset: int, fh: int
    ) -> bytes:
        return os.pread(fh, size, offset)

    def release(self, _path: str | None, fh: int) -> None:
        os.close(fh)

    def getattr(self, path: str | None, fh: int | None = None) -> dict:
        found = os.fstat(fh) if path is None else os.lstat(self._at(path))
        values = {name: getattr(found, name) for name in STAT}
        times = ('st_atime', 'st_mtime', 'st_ctime')
        return values | {name: getattr(found, f'{name}_ns') for name in times}

    def readdir(self, path: str, _fh: int) -> Iterable[str]:
        return ['.', '..', *os.listdir(self._live + path)]

    def statfs(self, path: str) -> dict:
        found = os.statvfs(self._live + path)
        return {name: getattr(found, name) for name in STATFS}

    def getxattr(self, path: str, name: str) -> bytes:
        return os.getxattr(self._at(path), name)

    def listxattr(self, path: str) -> list[str]:
        return os.listxattr(self._at(path))

    def _at(self, path: str) -> str:
        """Return where the live file or folder of a path is."""
        if _is_hidden(path):
            return f'{self._hidden}/{os.path.basename(path)}'
        return self._live + path

    # What is not durable yet

    def _change(
        self,
        call: Callable,
        paths: tuple[str, ...],
        *mode: int,
        needs: Iterable[str] = (),
    ) -> None:
        above = map(os.path.dirname, paths)
        change = Change(call, paths, mode, frozenset([*needs, *above]))
        with self._lock:
            change.replay(self._live)
            self._changes.append(change)

    def _names_in(self, folder: str) -> set[str]:
        """Return the names in a folder that have changed."""
        names = {path for change in self._changes for path in change.paths}
        return {name for name in names if os.path.dirname(name) == folder}

    def _unsynced_of(self, path: str) -> Unsynced:
        if path not in self._unsynced:
            if _is_hidden(path):
                return Unsynced(0)
            size = os.path.getsize(self._live + path)
            self._unsynced[path] = Unsynced(size)
        return self._unsynced[path]

    def _sync(self, path: str) -> None:
        if not _is_hidden(path):
            self._commit_names({path})
            self._write_back(path)

    def _commit_names(self, names: set[str]) -> None:
        """Make changes of names durable, and earlier ones that they need."""

        def is_due(change: Change) -> bool:
            if names.isdisjoint(change.paths):
                return False
            names.update(change.paths, change.needs)
            return True

        self._commit(is_due)

    def _commit(self, is_due: Callable[[Change], bool]) -> None:
        """Carry out changes on the durable folder.

        :param is_due: called for each change, the last one first
        """
        due, later = [], []
        for change in reversed(self._changes):
            (due if is_due(change) else later).append(change)
        self._changes = later[::-1]
        for change in reversed(due):
            change.replay(self._durable)

    def _write_back(self, path: str) -> None:
        """Make the content and attributes of a file durable."""
        live, durable = self._live + path, self._durable + path
        if unsynced := self._unsynced.pop(path, None):
            with open(live, 'rb') as source, open(durable, 'r+b') as target:
                target.truncate(min(unsynced.size, os.path.getsize(durable)))
                for offset, length in unsynced.parts:
                    part = os.pread(source.fileno(), length, offset)
                    os.pwrite(target.fileno(), part, offset)
                target.truncate(os.path.getsize(live))
        shutil.copystat(live, durable)

    def _flush_always(self) -> None:
        while True:
            time.sleep(self._flush_seconds)
            self.flush_all()


STAT = ('st_mode', 'st_nlink', 'st_uid', 'st_gid', 'st_size', 'st_blocks')
STATFS = ('f_bsize', 'f_frsize', 'f_blocks', 'f_bfree', 'f_bavail')
STATFS += ('f_files', 'f_ffree', 'f_favail', 'f_namemax')


def _create(path: str, mode: int) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


def _is_hidden(path: str | None) -> bool:
    return path is None or os.path.basename(path).startswith(HIDDEN)


def main(mount: str, store: str, share: str, flush_seconds: str) -> None:
    """Mount the file system with what was durable, until it is unmounted."""
    folder = Path(store)
    (folder / DURABLE).mkdir(parents=True, exist_ok=True)
    for name in (LIVE, HIDDEN):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / HIDDEN).mkdir()
    shutil.copytree(folder / DURABLE, folder / LIVE)
    os.umask(0)
    files = FileSystem(folder, float(share), float(flush_seconds))
    FUSE(files, mount, foreground=True, nothreads=True, fsname='faults-disk')


if __name__ == '__main__':
    main(*sys.argv[1:])
