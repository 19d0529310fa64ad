# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, said in one line."""


class BenchError(Exception):
    """What was wrong and what to do, in one line for the user's eyes."""
