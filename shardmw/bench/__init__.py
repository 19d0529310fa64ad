# SPDX-License-Identifier: Apache-2.0
"""The benchmark: ``shardmw-bench``.

Loads come from client processes of many connections each, and go to a Swift
cluster: one of the benchmark's own, or one that somebody runs. What a command
measured is kept as JSON and CSV in a folder, and shown as tables and plots.

Modules, from the ground up
    *Figures and words*, all of them pure: ``chance``, ``units``, ``figures``,
    ``kinds``, ``names``, ``fits``, ``turns``, ``words``, ``tables`` and
    ``cuts``.

    *A load*: ``sources`` has its requests; ``load``, ``response``,
    ``samples``, ``progress``, ``summary`` and ``runs`` have what came of it.
    ``connection`` is one client, ``process`` a process of several clients,
    and ``clients`` all processes; ``signals`` delays Ctrl-C meanwhile.

    *The cluster*: ``urls`` checks URLs and certificates, ``asking`` sends
    single requests, ``auth`` logs in, ``account`` makes containers, and
    ``site`` is the cluster. ``databases``, ``preload``, ``pending``,
    ``native`` and ``replicas`` work on the disks of an own cluster.
    ``memcached`` and ``usage`` read what servers did. Without a cluster,
    ``shares`` computes what listings ask of shards, and ``inprocess`` runs
    the filter above an app that does nothing.

    *An experiment*: ``parameters`` are its options, ``stage`` runs its loads,
    ``screen`` shows it, ``results`` and ``csvfiles`` keep it, with its
    ``provenance``. ``workloads``, ``compare``, ``scenarios`` and
    ``ratelimit`` are the experiments.

    *Its description*: ``comparing`` makes tables, ``plots`` plots,
    ``experiments`` describes a result, and ``report`` puts all on a page.

    ``options`` and ``command`` are shared by all commands; ``cli`` is the
    command line.

A load
    ::

        from shardmw.bench.clients import Clients
        from shardmw.bench.load import Load
        from shardmw.bench.sources import Uploads
        from shardmw.bench.summary import summarize

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
