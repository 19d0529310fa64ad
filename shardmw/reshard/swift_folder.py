# SPDX-License-Identifier: Apache-2.0
"""The folder from which Swift's modules read ``swift.conf``.

They read the file when they are imported: from ``/etc/swift``, if the folder
is not known yet. So this module imports few of them.
"""

import configparser
from pathlib import Path

from swift.common import utils

from shardmw.reshard.errors import AdminError


def use_swift_dir(swift_dir: Path) -> None:
    """Make Swift's modules read ``swift.conf`` from a folder.

    :raises AdminError: if the file is missing or invalid
    """
    swift_conf = swift_dir / 'swift.conf'
    if not swift_conf.is_file():
        raise AdminError(
            f'{swift_conf}: no such file: name its folder with --swift-dir, '
            'in a file of the daemon with swift_dir'
        )
    try:
        is_other = utils.set_swift_dir(str(swift_dir.absolute()))
        # The import fails if the file is invalid.
        from swift.common import constraints, storage_policy

        if is_other:
            constraints.reload_constraints()
            storage_policy.reload_storage_policies()
    except (OSError, LookupError, ValueError, configparser.Error) as err:
        raise AdminError(f'{swift_conf}: {in_one_line(err)}') from err


def in_one_line(err: Exception) -> str:
    """Return the text of an error with its lines joined."""
    return ' '.join(str(err).split())
