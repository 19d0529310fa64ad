# SPDX-License-Identifier: Apache-2.0
"""Compares containers of several kinds: ``shardmw-bench compare``."""

#: The command in the names of results.
COMMAND = 'compare'
