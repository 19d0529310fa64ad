# SPDX-License-Identifier: Apache-2.0
"""Requests of hostile shape, on plain and on sharded containers.

``python -m test.hostile --requests 100000`` starts an embedded Swift and sends
each random request twice, to a plain and to a sharded container of the same
contents. A difference between the two answers that is not documented, and an
error in a log that only the sharded container causes, is reported.
``corpus.jsonl`` has requests that once failed; `make test` plays them.
"""
