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
    """Exclude all present objects from future garbage collections.

    Processes call it when they first work on several shards, with all modules
    loaded. Objects of requests that are in a reference cycle at that time are
    never freed. They are few, since all calls but the first do nothing.
    """
    gc.collect()
    gc.freeze()
