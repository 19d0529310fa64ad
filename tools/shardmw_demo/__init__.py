# SPDX-License-Identifier: Apache-2.0
"""A demo: the console logs of a CI system in one sharded container.

``python -m shardmw_demo`` starts a Swift cluster on this machine and uses
shardmw as a log server would.
"""
