# SPDX-License-Identifier: Apache-2.0
"""The folder that Swift's modules read ``swift.conf`` in.

Swift's modules read the file when they are imported, those imported before
the folder is known from ``/etc/swift``. So this module imports few of them.
"""

import configparser
from pathlib import Path

from swift.common import utils

from shardmw.admin.errors import AdminError


def use_swift_dir(swift_dir: Path) -> None:
    """Have Swift's modules read ``swift.conf`` in a folder.

    :raises AdminError: if the folder has no such file, or a wrong one
    """
    swift_conf = swift_dir / 'swift.conf'
    if not swift_conf.is_file():
        raise AdminError(
            f'{swift_conf}: no such file: name its folder with --swift-dir, '
            'in a file of the daemon with swift_dir'
        )
    try:
        is_other = utils.set_swift_dir(str(swift_dir.absolute()))
        # The import fails if the file is wrong.
        from swift.common import constraints, storage_policy

        if is_other:
            constraints.reload_constraints()
            storage_policy.reload_storage_policies()
    except (OSError, LookupError, ValueError, configparser.Error) as err:
        raise AdminError(f'{swift_conf}: {in_one_line(err)}') from err


def in_one_line(err: Exception) -> str:
    """Return the text of an error. Those of parsers have several lines."""
    return ' '.join(str(err).split())
