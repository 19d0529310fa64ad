# SPDX-License-Identifier: Apache-2.0
"""The paths of requests: pure.

The proxy hands over paths as WSGI strings. The filter parses each path once
and uses native strings from then on.
"""

from typing import NamedTuple

from swift.common.swob import str_to_wsgi, wsgi_to_str
from swift.common.utils import split_path

from shardmw.core.bounded import cached_if_short

#: How many parsed paths to keep. The sub-requests of one client request name
#: the same few paths again and again.
CACHED_PATHS = 1024


class Path(NamedTuple):
    """The parts of a request's path, as native strings.

    :param version: the API version, such as ``v1``
    :param container: None in the path of an account
    :param name: the object's name, None in the path of a container
    """

    version: str
    account: str
    container: str | None = None
    name: str | None = None

    def of_container(self, container: str) -> 'Path':
        """Return the path of a container of the same account."""
        return Path(self.version, self.account, container)

    def to_wsgi(self) -> str:
        """Return the unquoted path as a WSGI string."""
        parts = (part for part in self if part is not None)
        return str_to_wsgi('/' + '/'.join(parts))


@cached_if_short(CACHED_PATHS)
def parse_path(path: str) -> Path:
    """Split the path of a request to an account, a container or an object.

    :param path: the unquoted path, a WSGI string
    :raises ValueError: if the path names none of these
    """
    return Path(*split_path(wsgi_to_str(path), 2, 4, True))
