# SPDX-License-Identifier: Apache-2.0
"""Listings of sharded containers: many GETs, one page.

``request`` sends the GETs, ``merge`` and ``unordered`` decide which GETs a
page needs and merge what they return, ``brief`` shortens queries that are too
long for a container server, ``rows`` cuts JSON into rows, and ``params``
parses and writes queries. ``kept_pages`` keeps pages for some seconds where
``max_age`` says that listings may be old.
"""
