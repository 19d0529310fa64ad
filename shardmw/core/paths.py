# SPDX-License-Identifier: Apache-2.0
"""The paths of requests, and the places of rows: pure.

The proxy hands over paths as WSGI strings. The filter parses each path once
and uses native strings from then on.
"""

from typing import NamedTuple

from shardmw.core.bounded import cached_if_short

#: How many parsed paths to keep. The sub-requests of one client request name
#: the same few paths again and again.
CACHED_PATHS = 1024

#: The API version in the paths of requests that no client has sent.
API_VERSION = 'v1'


class Place(NamedTuple):
    """An account and a container whose database has rows, such as a shard.

    Its text is ``account/container``, as Swift writes it.
    """

    account: str
    container: str

    def __str__(self) -> str:
        """Return ``account/container``."""
        return f'{self.account}/{self.container}'

    @property
    def path(self) -> 'Path':
        """Return the path of the container."""
        return Path(API_VERSION, *self)


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

    @property
    def place(self) -> Place:
        """Return the account and the container."""
        return Place(self.account, self.container)

    def of_container(self, container: str) -> 'Path':
        """Return the path of a container of the same account."""
        return Path(self.version, self.account, container)

    def to_wsgi(self) -> str:
        """Return the unquoted path as a WSGI string."""
        parts = (part for part in self if part is not None)
        return wsgi_of('/' + '/'.join(parts))


def wsgi_of(text: str) -> str:
    """Return a native string as a WSGI string, with a byte per character."""
    return text.encode('utf-8', 'surrogateescape').decode('latin-1')


def native(text: str) -> str:
    """Return a WSGI string as a native string."""
    return text.encode('latin-1').decode('utf-8', 'surrogateescape')


@cached_if_short(CACHED_PATHS)
def parse_path(path: str) -> Path:
    """Split the path of a request to an account, a container or an object.

    :param path: the unquoted path, a WSGI string
    :raises ValueError: if the path names none of these
    """
    first, *parts = native(path).split('/', 4)
    # An empty part is allowed at the end of the path of a container or object.
    if first or len(parts) < 2 or not all([*parts[:2], *parts[:-1]]):
        raise ValueError(f'not the path of an account: {path!r}')
    return Path(*parts)
