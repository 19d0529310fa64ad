# SPDX-License-Identifier: Apache-2.0
"""The seam to Swift.

Code that depends on Swift's less public parts is in this package only: the
keys of the info cache, requests to container servers, memcached and green
threads.
"""
