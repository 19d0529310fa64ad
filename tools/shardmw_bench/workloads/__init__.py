# SPDX-License-Identifier: Apache-2.0
"""Single kinds of work: ``shardmw-bench write``, ``read`` and so on.

``works`` has their options and requests; ``measuring`` does the work, and
``report`` has the tables. ``place`` is the chosen cluster.
"""
