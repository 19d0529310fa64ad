# SPDX-License-Identifier: Apache-2.0
"""Garbage collection that leaves out what lasts as long as the process.

Python looks for garbage among all objects whenever the number of long-lived
ones has grown by a quarter. In a Swift server this takes 25 to 80 ms, in which
the process does nothing else. Listings of many shards need thousands of
objects each, so they make it happen every few seconds. But nearly all objects
are parts of modules, which are never garbage.
"""

import gc
from functools import cache


@cache
def leave_out_lasting_objects() -> None:
    """Never look again for garbage among the objects that there are now.

    Processes call it when they are loaded and first work on several shards.
    What then belongs to a request and to a reference cycle is never freed. It
    is little, since all calls but the first do nothing.
    """
    gc.collect()
    gc.freeze()
