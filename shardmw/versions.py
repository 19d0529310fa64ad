# SPDX-License-Identifier: Apache-2.0
"""What object versioning stores on behalf of an upload.

With versioning on, what a client uploads goes into the hidden container of
versions, and only a link into the client's own. If that one is sharded, its
quotas are held here. Swift does so before anything is stored; here more has
been done by then, so what is refused is taken back.
"""

from swift.common.swob import Request, Response

from shardmw.backend import (
    INFOCACHE_ENV,
    Backend,
    LogicalContainer,
    is_uploaded_version,
)
from shardmw.placement import is_reserved, versions_owner
from shardmw.quotas import Quotas

#: In a request's info cache: where what an upload replaces was copied to.
COPY_KEY = 'shardmw/copy{path}'


class VersionUploads:
    """Holds versions against the quotas of their sharded container."""

    def __init__(self, backend: Backend, quotas: Quotas) -> None:
        self.backend = backend
        self.quotas = quotas

    def watches(self, req: Request) -> bool:
        """Whether a request stores a version that a quota is held against."""
        owner = self._owner(req)
        return owner is not None and self.quotas.hold_for(owner)

    def refusal(self, req: Request) -> Response | None:
        """The 413 for a version that there is no room for, or None.

        :param req: a request to an object of any container
        """
        owner = self._owner(req)
        refusal = owner and self.quotas.refusal_of_version(req, owner)
        if refusal:
            self._take_back_copy(req)
        return refusal

    def refusal_of_stored(self, req: Request, env: dict) -> Response | None:
        """The same for one whose size shows only when it is stored.

        :param env: the environment in which it was stored
        """
        owner = self._owner(req)
        if owner is None or not self.quotas.hold_for(owner):
            return None
        if not is_uploaded_version(req):
            req.environ[INFOCACHE_ENV][_copy_key(req)] = env
            return None
        refusal = self.quotas.refusal_of_stored(req, owner)
        if refusal:
            self.backend.take_back(env)
            self._take_back_copy(req)
        return refusal

    def _take_back_copy(self, req: Request) -> None:
        """Delete the version that the object from before was copied to."""
        env = req.environ[INFOCACHE_ENV].pop(_copy_key(req), None)
        if env:
            self.backend.take_back(env)

    def _owner(self, req: Request) -> LogicalContainer | None:
        """The sharded container for which a version is being stored."""
        if req.method != 'PUT' or not is_reserved(req.path_info):
            return None
        version, account, container, _name = req.split_path(4, 4, True)
        owner = versions_owner(container)
        if owner is None:
            return None
        return self.backend.container_at(req, f'/{version}/{account}/{owner}')


def _copy_key(req: Request) -> str:
    """The same key for all versions of an object."""
    path, _separator, _version_id = req.path_info.rpartition('\0')
    return COPY_KEY.format(path=path)
