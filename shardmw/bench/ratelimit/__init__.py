# SPDX-License-Identifier: Apache-2.0
"""The write limits, measured: ``shardmw-bench ratelimit``."""

#: The command that results are kept as.
COMMAND = 'ratelimit'
