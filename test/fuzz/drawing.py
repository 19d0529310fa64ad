# SPDX-License-Identifier: Apache-2.0
"""Draw structured values from the bytes of a fuzzer's input."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar('T')


class Draw:
    """Draws values from bytes, and zeros when there are none left.

    :param data: the fuzzer's input
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def rest(self) -> bytes:
        """Return the bytes that are left."""
        rest, self._data = self._data, b''
        return rest

    def number(self, below: int) -> int:
        """Return a number from 0 up to a limit of at most 65,536."""
        size = 1 if below <= 256 else 2
        taken, self._data = self._data[:size], self._data[size:]
        return int.from_bytes(taken, 'big') % below

    def chance(self) -> bool:
        """Return True or False."""
        return self.number(2) == 1

    def choice(self, options: Sequence[T]) -> T:
        """Return one of some values, the first one when no bytes are left."""
        return options[self.number(len(options))]

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Return up to `most` values; an option may come several times."""
        return [self.choice(options) for _ in range(self.number(most + 1))]

    def text(self, characters: Sequence[str], most: int) -> str:
        """Return a text of up to `most` of these characters or words."""
        return ''.join(self.some(characters, most))
