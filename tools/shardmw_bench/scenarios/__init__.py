# SPDX-License-Identifier: Apache-2.0
"""The experiments that motivated this project: ``shardmw-bench scenario``.

``base`` has what all of them are, and ``rounds`` compares their figures. The
tables of a scenario are a template in Markdown: see
:mod:`shardmw_bench.templates`.
"""
