# SPDX-License-Identifier: Apache-2.0
"""Loads: what clients ask for, how they ask, and what they record."""
