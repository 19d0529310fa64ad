# SPDX-License-Identifier: Apache-2.0
"""The write limits, measured: ``shardmw-bench ratelimit``."""
