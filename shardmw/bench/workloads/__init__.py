# SPDX-License-Identifier: Apache-2.0
"""Single kinds of work: ``shardmw-bench write``, ``read`` and so on.

``parameters`` are their options, ``works`` says what each one asks for, and
``measuring`` does it; ``report`` is what's said of it, and ``command`` makes
the commands. ``place`` is the cluster that somebody chose.
"""

#: What results are kept as.
COMMAND = 'workload'
