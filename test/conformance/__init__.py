# SPDX-License-Identifier: Apache-2.0
"""Swift's own functional tests, with every container sharded.

``python -m test.conformance`` runs the tests that come with the installed
Swift against two embedded clusters, a plain one and one in which shardmw
shards every container that the tests create, and compares test by test. What
passes on the first must pass on the second. Nothing is exempt.

    sources      Swift's tests, from the source package of its version
    variants     the clusters: shards, encryption, replicas, proxies
    suites       the tests, and the settings of the cluster that they expect
    jobs         the runs that the chosen variants need
    schedule     runs at the same time; screen: shows their progress
    running      one run: a cluster, the accounts that the tests expect
                 (accounts), one address for many proxies (balancer, framing),
                 the configuration of the tests (settings), and pytest
                 (pytests)
    storage      the folder of a run's cluster
    databases    the container databases that a run has left on the devices
    census       which containers were sharded
    shares       the share of the requests that each proxy got
    outcomes     the outcome of each test, and what sharding changed
    verdict      the verdict on a variant
    provenance   the code that a result belongs to; store, results: keep them
    report       tables and lists, for the terminal and doc/conformance.md
"""
