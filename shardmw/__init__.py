# SPDX-License-Identifier: Apache-2.0
"""A paste filter that spreads one Swift container over many."""

__version__ = '0.1.0'
