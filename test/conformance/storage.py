# SPDX-License-Identifier: Apache-2.0
"""A folder for a run's cluster, with room for the metadata of objects.

Swift's limits allow an object more metadata than the 4 KB that ext4 can store
in extended attributes, in particular if it is encrypted. XFS can store 64 KB,
and so can a tmpfs since Linux 6.6.
"""

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path('/dev/shm')
_ROOM_BYTES = 60_000
_TRIAL_XATTR = 'user.trial'


def make_folder(path: Path) -> None:
    """Make a folder for a cluster, in memory if metadata has no room here.

    If metadata has no room in memory either, the folder is made at the path.
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
