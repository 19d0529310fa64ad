# SPDX-License-Identifier: Apache-2.0
"""Use Swift's own watcher of dark data, for the one that extends it."""

from swift.common.ring import Ring
from swift.obj.watchers import dark_data

ContainerError = dark_data.ContainerError
DarkDataWatcher = dark_data.DarkDataWatcher
get_info_1 = dark_data.get_info_1


def account_ring(swift_dir: str) -> Ring:
    """Return the ring of accounts, as the watcher loads that of containers."""
    return dark_data.Ring(swift_dir, ring_name='account')
