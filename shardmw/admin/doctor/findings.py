# SPDX-License-Identifier: Apache-2.0
"""Define what checks return: findings, and notes."""

from typing import NamedTuple

#: How the problem of a check begins that could not be made.
NOT_CHECKED = 'not checked: '


class Finding(NamedTuple):
    """A mistake, or a check that could not be made.

    :param where: the URL of a proxy, the path of a file, or a name
    :param problem: what is wrong
    :param remedy: what to do
    """

    where: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        """Return the finding in one line."""
        return f'{self.where}: {self.problem}: {self.remedy}'


class Note(NamedTuple):
    """Something that an operator may want to know, and need not change."""

    where: str
    text: str

    def __str__(self) -> str:
        """Return the note in one line."""
        return f'{self.where}: {self.text}'
