# SPDX-License-Identifier: Apache-2.0
"""A search for wrong histories on an embedded Swift, for as long as one likes.

Processes of clients write, read and list a few names of one container through
two proxies whose memcacheds differ. Meanwhile the layout of the container
changes at random, changes are cancelled, and what changes the layout and
servers are killed or paused. Every answer is recorded with its times and
checked in the end (:mod:`test.history`).
"""
