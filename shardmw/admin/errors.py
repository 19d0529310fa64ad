# SPDX-License-Identifier: Apache-2.0
"""The error that makes a command fail."""

#: The exit code of a command that found something, or failed.
FOUND = 1


class AdminError(Exception):
    """A command cannot do what was asked. Its text is a line for the user."""
