# SPDX-License-Identifier: Apache-2.0
"""Errors that are shown to whoever runs the tests."""


class ConformanceError(Exception):
    """Says in one line what was wrong and what to do."""
