# SPDX-License-Identifier: Apache-2.0
"""The benchmark: ``shardmw-bench``.

Loads come from client processes of many connections each, and go to Swift
clusters of the benchmark's own. What a command measured is kept as JSON in a
folder, and shown as tables, which a page can have, too.

Rooms, from the ground up
    ``chance``, ``units``, ``figures``, ``wire``, ``samples``, ``sources``,
    ``load``, ``progress``, ``summary``, ``tables`` and ``page`` are pure.
    ``connection`` is one client, ``loop`` one client process, ``clients`` all
    of them; ``signals`` holds back Ctrl-C while they are talked to.
    ``account`` makes containers and looks into them; ``memcached`` reads its
    counters; ``results`` is the folder. ``ratelimit`` has the experiments
    of a command. ``cli`` is the command line.

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
