# SPDX-License-Identifier: Apache-2.0
"""What write rates do, and what they cost: ``shardmw-bench ratelimit``.

Each experiment is a module with two functions: ``measure(stage)`` gives its
figures, as JSON has them, and ``tables(parameters, figures)``, which is pure,
makes tables of these.
"""

#: What results are kept as.
COMMAND = 'ratelimit'
