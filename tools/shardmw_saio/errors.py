# SPDX-License-Identifier: Apache-2.0
"""The error of a command that the user can act on."""


class SaioError(Exception):
    """One line for the user: what was wrong and what to do."""
