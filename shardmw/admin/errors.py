# SPDX-License-Identifier: Apache-2.0
"""The error that makes a command fail."""


class AdminError(Exception):
    """A command cannot do what was asked. Its text is a line for the user."""
