# SPDX-License-Identifier: Apache-2.0
"""The interface to Swift.

Most code that depends on Swift's less public parts is in this package: the
keys of the info cache, requests to container servers, memcached and green
threads.
"""
