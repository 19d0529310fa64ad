# SPDX-License-Identifier: Apache-2.0
"""The benchmark: ``shardmw-bench``.

Loads come from client processes of many connections each, and go to a Swift
cluster: one of the benchmark's own, or one that somebody runs. What a command
measured is kept as JSON and CSV in a folder, and shown as tables and plots.

Packages
    ``load``
        what clients ask for (``sources``), what a load is (``definition``)
        and what came of it (``outcome``, ``samples``, ``progress``).
        ``connection`` is one client, ``process`` one client process,
        ``clients`` all of them; a ``stage`` runs loads for an experiment.
    ``targets``
        what loads go to: logging in (``auth``), accounts, databases,
        memcached, servers and their logs; of listings, ``shares`` says what
        they ask of shards; ``inprocess`` has the filter without a cluster.
    ``results``
        figures of loads (``figures``, ``fits``, ``summary``, ``runs``), their
        tables (``comparing``), and the ``folder`` that results are kept in,
        with their ``provenance``, and as CSV.
    ``workloads``, ``compare``, ``scenarios``, ``ratelimit``
        the experiments.
    ``drawing``, ``report``
        plots, and the page that has all results.

    Of the modules beside them, ``site`` is a cluster with containers to
    measure on, ``names`` are those of objects, ``kinds`` those of containers;
    ``options`` and ``command`` are what commands share, ``cli`` is the
    command line.

A load
    ::

        from shardmw.bench.load.clients import Clients
        from shardmw.bench.load.definition import Load
        from shardmw.bench.load.sources import Uploads
        from shardmw.bench.results.summary import summarize

        with Clients(processes=2) as clients:
            uploads = Uploads('/v1/AUTH_test/logs', size=4096)
            outcome = clients.run(
                Load(urls, token, uploads, clients=16, seconds=10)
            )
        summarize(outcome).admitted_rate
        for sample in outcome.samples: ...

    Another workload is another source of requests: see ``sources``.

Errors
    A :class:`shardmw.bench.errors.BenchError` says in one line what was wrong
    and what to do.
"""
