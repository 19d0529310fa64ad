# SPDX-License-Identifier: Apache-2.0
"""The benchmark: ``shardmw-bench``.

Loads come from client processes of many connections each, and go to a Swift
cluster: one of the benchmark's own, or one that somebody runs. What a command
measured is kept as JSON and CSV in a folder, and shown as tables and plots.

Rooms, from the ground up
    *What is said*: ``chance``, ``units``, ``figures``, ``kinds``, ``names``,
    ``fits``, ``turns``, ``words``, ``tables`` and ``cuts``; all of them
    pure.

    *A load*: ``sources`` says what to ask for, ``load`` what it is and what
    came of it, ``wire`` how it looks, ``samples``, ``progress``, ``summary``
    and ``runs`` what was measured; pure. ``connection`` is one client,
    ``loop`` one client process, ``clients`` all of them; ``signals`` holds
    back Ctrl-C while they are talked to.

    *Where it goes*: ``asking`` sends single requests, ``tls`` says whom to
    trust, ``auth`` logs in, ``account`` makes containers and looks into them,
    and ``site`` is the cluster. Of an own one, ``databases`` reads the disks;
    ``preload`` (``rows``), ``pending``, ``native`` and ``replicas`` change
    them. ``memcached`` reads counters, ``usage`` what servers use, and
    ``serverlog`` what they answered. Without a cluster, ``shares`` says what
    listings ask of shards, and ``inprocess`` has the filter above an app that
    does nothing.

    *An experiment*: ``parameters`` are its options, ``stage`` is what it has
    at hand; ``screen`` shows it, ``results`` and ``csvfiles`` keep
    it, with its ``provenance``. ``workloads``, ``compare``, ``scenarios`` and
    ``ratelimit`` have them.

    *What comes of it*: ``comparing`` makes tables, ``plots`` makes and
    draws plots, ``experiments`` describes a result, and ``report`` has all on
    a page.

    ``options`` and ``command`` are what commands share, and ``cli`` is the
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
