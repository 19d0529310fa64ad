# SPDX-License-Identifier: Apache-2.0
"""The same work on containers of several kinds: ``shardmw-bench compare``.

It is measured as the workloads are; ``report`` has the ratios.
"""

#: What results are kept as.
COMMAND = 'compare'
