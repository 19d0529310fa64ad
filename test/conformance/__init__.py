# SPDX-License-Identifier: Apache-2.0
"""Swift's own functional tests, with every container sharded.

``python -m test.conformance`` runs the tests that come with the installed
Swift against two embedded clusters, a plain one and one in which shardmw
shards whatever container the tests create, and compares test by test. What
passes on the first has to pass on the second. Nothing is exempt.

    sources      Swift's tests, from the source package of its version
    variants     what is tried: shards, encryption, replicas, proxies
    suites       which tests, and which settings of the cluster they expect
    jobs         which runs a choice of variants takes
    schedule     some runs at the same time; screen: how far they are
    running      one run: a cluster, the accounts that the tests want to find
                 (accounts), one address for many proxies (balancer, framing),
                 what tells the tests where it is (settings), and pytest
                 (pytests)
    storage      where a run's cluster is
    databases    the containers that a run has left on the devices
    census       which of them were sharded
    shares       how many requests each proxy has had
    outcomes     what became of each test, and what sharding changed
    verdict      all that is to be said about a variant
    provenance   what code a result is of; store, results: where they are kept
    report       tables and lists, for the terminal and doc/conformance.md
"""
