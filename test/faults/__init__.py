# SPDX-License-Identifier: Apache-2.0
"""The fault matrix: what clients see of containers while parts of Swift fail.

A cell of the matrix says what fails, how it fails, and what is under way
meanwhile (:mod:`test.faults.matrix`). It runs on an embedded Swift with three
replicas on separate servers and devices, two proxies, two memcacheds, and all
daemons (:mod:`test.faults.site`). In the cells of the network, they have hosts
of their own (:mod:`test.faults.network`). Clients work on a plain and on a
sharded container at the same time (:mod:`test.faults.clients`), and every
response is checked against last-write-wins (:mod:`test.history`).
"""
