# SPDX-License-Identifier: Apache-2.0
"""Requests to backing containers, roots and rows, for all processes.

The options and the metrics are here, too.
"""
