# SPDX-License-Identifier: Apache-2.0
"""Listings of sharded containers: the rows of several shards in one page.

``request`` reads the root and the shards; the pages of :mod:`shardmw.core`
decide which rows of which shard to read, and merge them. ``params`` parses the
client's query, and ``long_queries`` shortens those that do not fit into a
request line. ``container_order`` and ``max_age`` are settings of a container:
whether its listings may be unordered, and how old they may be. ``kept_pages``
keeps pages for that time.
"""
