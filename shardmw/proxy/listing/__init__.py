# SPDX-License-Identifier: Apache-2.0
"""Listings of sharded containers: the rows of several shards in one page.

In the proxy, ``request`` reads the root and the shards. ``merge`` and
``unordered`` decide which rows of which shard a page needs, and merge them.
``brief`` shortens queries that do not fit into a request line, ``rows`` cuts
JSON into rows, and ``params`` parses and writes queries. ``container_order``
and ``max_age`` are settings of a container: whether its listings may be
unordered, and how old they may be. ``kept_pages`` keeps pages for that time.

In the container server, ``database`` lists the rows of one database.
"""
