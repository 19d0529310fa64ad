# SPDX-License-Identifier: Apache-2.0
"""The benchmark: ``shardmw-bench``.

Client processes with many connections each send loads to a Swift cluster: a
temporary cluster of the benchmark, or one that an operator runs. A command
keeps its results as JSON and CSV in a folder and shows them as tables; the
report has plots, too.

``load``
    what clients ask for (``sources``), a load (``definition``), its result
    (``outcome``, ``samples``), and the clients (``clients``, ``process``,
    ``connection``). A ``stage`` runs loads for an experiment.
``targets``
    accounts, logins, databases, memcached and servers of a cluster;
    ``inprocess`` runs the filter without a cluster.
``results``
    figures, tables and the folder of results.
``workloads``, ``scenarios``, ``ratelimit``
    the experiments. Each is a :class:`shardmw_bench.scenarios.base.Scenario`:
    a dataclass whose fields are the options of its command. Its tables are a
    template in ``markdown``.
``plots``, ``report``
    plots, and the page with all results.

``site`` is a cluster with containers to measure; ``options`` and ``command``
are shared by the commands; ``cli`` is the command line.

Errors that a user can act on are :class:`shardmw_bench.errors.BenchError`.
"""
