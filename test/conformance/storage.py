# SPDX-License-Identifier: Apache-2.0
"""Where a run's cluster is: where an object's metadata has room.

Swift's limits allow an object more metadata than ext4 has room for in its
extended attributes, 4 KB, most of all if it is encrypted. XFS has 64 KB, and
so has a tmpfs, from Linux 6.6 on.
"""

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path('/dev/shm')
_ROOM_BYTES = 60_000
_TRIAL_XATTR = 'user.trial'


def make_folder(path: Path) -> None:
    """Make a folder for a cluster, in memory if need be.

    Where memory has no room for metadata either, it is where it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if _has_room(path.parent) or not _has_room(_MEMORY):
        path.mkdir()
    else:
        path.symlink_to(tempfile.mkdtemp(prefix='shardmw-', dir=_MEMORY))


def remove_folder(path: Path) -> None:
    """Remove what :func:`make_folder` made, and all that is in it."""
    shutil.rmtree(path.resolve(), ignore_errors=True)
    path.unlink(missing_ok=True)


def _has_room(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as trial:
            os.setxattr(trial.fileno(), _TRIAL_XATTR, b'x' * _ROOM_BYTES)
    except OSError:
        return False
    return True
