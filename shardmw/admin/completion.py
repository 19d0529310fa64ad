# SPDX-License-Identifier: Apache-2.0
"""Completion of the arguments of commands by a shell."""


def completion_help(name: str) -> str:
    """Return the help text on shell completion for a command."""
    variable = f'_{name.upper().replace("-", "_")}_COMPLETE'
    return (
        # After \\b, click keeps the lines as they are.
        '\b\nCompletion in bash; for zsh, write zsh_source:\n'
        f'  eval "$({variable}=bash_source {name})"'
    )
