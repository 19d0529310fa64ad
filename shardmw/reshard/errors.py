# SPDX-License-Identifier: Apache-2.0
"""The error that makes a command fail."""

#: The exit code of a command that found a problem, or failed.
FOUND = 1


class AdminError(Exception):
    """A failure of a command. Its text is a line for the user."""
