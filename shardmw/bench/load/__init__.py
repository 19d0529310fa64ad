# SPDX-License-Identifier: Apache-2.0
"""Loads: what clients ask for, how they do, and what they recorded."""
