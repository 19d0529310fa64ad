# SPDX-License-Identifier: Apache-2.0
"""More load, and for longer, than tests have time for.

In ``python -m test.soak.overload``, many clients list a container of many
shards at the same time. ``python -m test.soak`` runs for an hour and samples
the memory and the files of servers. Both start an embedded Swift.
"""
