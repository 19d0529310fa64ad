# SPDX-License-Identifier: Apache-2.0
"""Load for longer, and more of it, than tests can have.

``python -m test.soak.overload`` lists a container of many shards by many
clients at once. ``python -m test.soak`` works for an hour and looks at what
servers hold. Both start an embedded Swift.
"""
