# SPDX-License-Identifier: Apache-2.0
"""What the audit watcher uses of Swift's own one."""

from swift.obj.watchers.dark_data import (
    ContainerError as ContainerError,
)
from swift.obj.watchers.dark_data import (
    DarkDataWatcher as DarkDataWatcher,
)
from swift.obj.watchers.dark_data import Ring as Ring
from swift.obj.watchers.dark_data import get_info_1 as get_info_1
