# SPDX-License-Identifier: Apache-2.0
"""Comparisons of containers: see :mod:`shardmw.bench.workloads.command`."""

#: The command in the names of results.
COMMAND = 'compare'
