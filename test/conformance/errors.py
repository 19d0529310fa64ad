# SPDX-License-Identifier: Apache-2.0
"""What went wrong, for the one who runs the tests."""


class ConformanceError(Exception):
    """Says in one line what was wrong and what to do."""
