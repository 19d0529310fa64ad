# SPDX-License-Identifier: Apache-2.0
"""The archive of a CI's console logs, in one sharded container.

``python -m shardmw.demo`` brings up a Swift of its own and uses shardmw as a
log server would.
"""
