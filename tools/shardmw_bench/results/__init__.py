# SPDX-License-Identifier: Apache-2.0
"""Figures and tables of loads, and the folder of results."""
