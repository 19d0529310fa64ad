# SPDX-License-Identifier: Apache-2.0
"""The seam to Swift.

What reaches into Swift's less public parts is in this room and nowhere else:
the keys of the info cache, requests to container servers, memcached and green
threads.
"""
