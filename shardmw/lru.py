# SPDX-License-Identifier: Apache-2.0
"""A dictionary of bounded size: pure."""

from collections import OrderedDict


class LRU(OrderedDict):
    """Keep the entries that were set last and drop the others.

    :param count: how many entries to keep
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def __setitem__(self, key, value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self.count:
            self.popitem(last=False)
