# SPDX-License-Identifier: Apache-2.0
"""Rate limits: what counts, against which counter, and which requests wait.

``accounting`` decides what counts and against which counter. ``limiter`` makes
requests wait or refuses them. ``slots`` reserves slots of counters in
memcached, by the time of ``clock``. ``worker_state`` is pure, like
:mod:`shardmw.core.gcra`.
``rate_header`` is the rate that an operator gives to one container,
``account_rate`` the account's rate of Swift's own ratelimit filter.
"""
