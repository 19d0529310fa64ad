# SPDX-License-Identifier: Apache-2.0
"""The operator's commands: ``shardmw-admin``."""
