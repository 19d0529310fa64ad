# SPDX-License-Identifier: Apache-2.0
"""The seam: all that shardmw uses of Swift without a promise to plug-ins.

No other room imports the proxy's controllers, the container and object servers
or eventlet, or touches a name of Swift that begins with an underscore; ``make
lint`` checks that. ``test/contract`` has a test for each part that is used
here, and says why.
"""

#: The states of a container that Swift's own sharder has split.
SPLIT_STATES = ('sharding', 'sharded')

#: The state of a root whose shard ranges it has all shrunk into the root.
COLLAPSED = 'collapsed'
