# SPDX-License-Identifier: Apache-2.0
"""Garbage collection that leaves out what lasts as long as the process.

Python looks for garbage among all objects whenever the older ones have become
a quarter more. In a Swift server this takes 25 to 80 ms, in which the process
does nothing else, and listings of many shards, which need thousands of objects
each, make it happen every few seconds. But nearly all of the objects are parts
of modules, which are never garbage.
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
