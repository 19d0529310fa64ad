# SPDX-License-Identifier: Apache-2.0
"""Single kinds of work: ``shardmw-bench write``, ``read`` and so on.

``parameters`` are their options, ``works`` their requests; ``measuring`` does
the work, and ``report`` has the tables. ``place`` is the chosen cluster.
"""

#: The command in the names of results.
COMMAND = 'workload'
