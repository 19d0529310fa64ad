# SPDX-License-Identifier: Apache-2.0
"""The report: all results of a folder on one page."""
