# SPDX-License-Identifier: Apache-2.0
"""The report: all results of a folder, as a page to look at.

``sections`` decides what is said of a result, ``html`` and ``markdown`` how;
``command`` is ``shardmw-bench report``.
"""
