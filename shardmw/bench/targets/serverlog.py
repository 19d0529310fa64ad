# SPDX-License-Identifier: Apache-2.0
"""What container servers answered, by their logs. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from shardmw.bench.errors import BenchError

# As Swift writes it by default: "GET /device/partition/account/container"
# 200 5300 "referer" ...
_GET = re.compile(r'"GET /[^/ ]+/\d+/([^/ "]+)/([^/ "]+)" (\d{3}) (\d+|-) ')


class Answered(NamedTuple):
    """An answer to a GET of a container.

    :param account: by its name
    :param container: by its name, as it is stored
    """

    account: str
    container: str
    status: int
    body_bytes: int


def container_gets(lines: Iterable[str]) -> Iterator[Answered]:
    """The GETs of containers in a container server's log."""
    for line in lines:
        match = _GET.search(line)
        if match:
            account, container, status, length = match.groups()
            yield Answered(
                unquote(account),
                unquote(container),
                int(status),
                0 if length == '-' else int(length),
            )


def rows_in(body_bytes: int, row_bytes: int) -> int:
    """How many rows a listing has whose rows are of one length.

    In JSON as Swift writes it, so ``[`` and ``]`` take as much as the comma
    and the space that follow all rows but the last.

    :param row_bytes: of one row, and two more
    :raises BenchError: if they are not of that length
    """
    if body_bytes <= 2:
        return 0
    rows, rest = divmod(body_bytes, row_bytes)
    if rest:
        raise BenchError(
            f'a listing of {body_bytes} bytes is none of rows of '
            f'{row_bytes - 2} bytes: use names of one length'
        )
    return rows
