# SPDX-License-Identifier: Apache-2.0
"""The paths of requests: pure."""

import functools
from typing import NamedTuple

from swift.common.swob import wsgi_to_str
from swift.common.utils import split_path

#: Of how many requests at a time the path is split once only.
REQUESTS_AT_A_TIME = 1024


class Path(NamedTuple):
    """What a request names, in native strings.

    :param version: the API version, such as ``v1``
    :param container: None in an account's path
    :param name: the object's, None in a container's path
    """

    version: str
    account: str
    container: str | None
    name: str | None


@functools.lru_cache(maxsize=REQUESTS_AT_A_TIME)
def parse_path(path: str) -> Path:
    """Split the path of a request to an account or to what is in it.

    :param path: unquoted, a WSGI string
    :raises ValueError: if it is none
    """
    return Path(*split_path(wsgi_to_str(path), 2, 4, True))
