# SPDX-License-Identifier: Apache-2.0
"""What a worker remembers, of which there may be any number."""

from collections import OrderedDict


class Recent(OrderedDict):
    """A dictionary of what was set last; the rest is given up.

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
