# SPDX-License-Identifier: Apache-2.0
"""Hostile requests to plain and to sharded containers.

``python -m test.hostile --requests 100000`` starts an embedded Swift and sends
each random request twice, to a plain and to a sharded container with the same
contents. It reports undocumented differences between the two responses, and
errors in logs that only the sharded container causes. ``corpus.jsonl`` has
requests that once failed; `make test` plays them.
"""
