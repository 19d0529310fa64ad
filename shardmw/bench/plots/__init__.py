# SPDX-License-Identifier: Apache-2.0
"""Plots: their content (``plot``, ``runs``) and their look (``drawing``).

Import ``drawing`` late: it imports matplotlib, which takes a second.
"""
