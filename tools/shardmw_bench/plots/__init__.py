# SPDX-License-Identifier: Apache-2.0
"""Plots: their content (``plot``, ``runs``) and their look (``drawing``)."""
