# SPDX-License-Identifier: Apache-2.0
"""Plots: what they show (``plot``, ``runs``) and how (``drawing``).

``drawing`` imports matplotlib, which takes a second: import it when there is
something to draw.
"""
