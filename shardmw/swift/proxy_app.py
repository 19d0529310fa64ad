# SPDX-License-Identifier: Apache-2.0
"""Use the proxy app's own code."""

from collections.abc import Callable, Iterable
from urllib.parse import quote

from swift.common.bufferedhttp import BufferedHTTPResponse
from swift.common.ring import Ring
from swift.common.swob import Request, Response
from swift.proxy.controllers import base
from swift.proxy.controllers.container import ContainerController
from swift.proxy.controllers.obj import BaseObjectController
from swift.proxy.server import Application

from shardmw.core.paths import Place

get_account_info = base.get_account_info
get_container_info = base.get_container_info
clear_info_cache = base.clear_info_cache
headers_to_account_info = base.headers_to_account_info
headers_to_container_info = base.headers_to_container_info

#: What the loader gives to every app of a pipeline.
_FINAL_APP = '_pipeline_final_app'


class _Whitelist(list):
    """The accounts without a limit of containers, and all of some kind.

    :param includes: returns True for further accounts
    """

    def __init__(
        self, accounts: Iterable[str], includes: Callable[[str], bool]
    ) -> None:
        super().__init__(accounts)
        self._includes = includes

    def __contains__(self, account: object) -> bool:
        return self._includes(account) or super().__contains__(account)


def proxy_app_of(app: Callable) -> Application:
    """Return the proxy app at the end of a pipeline.

    :param app: any app of the pipeline
    """
    return getattr(app, _FINAL_APP, app)


def allow_any_number_of_containers(
    app: Application, accounts: Callable[[str], bool]
) -> None:
    """Exempt accounts from ``max_containers_per_account``.

    An operator's list of exempt accounts cannot name the hidden accounts:
    there is one for each account that has a sharded container.

    :param accounts: returns True for the accounts to exempt
    """
    if not isinstance(app.max_containers_whitelist, _Whitelist):
        app.max_containers_whitelist = _Whitelist(
            app.max_containers_whitelist, accounts
        )


def autocreate_account(app: Application, env: dict, account: str) -> None:
    """Create an account as the proxy does before the first write into it."""
    base.Controller(app).autocreate_account(Request(env), account)


def with_cors(
    app: Application,
    req: Request,
    account: str,
    container: str,
    resp: Response,
) -> Response:
    """Return an answer of the filter with the CORS headers of a container."""
    controller = ContainerController(app, quote(account), quote(container))
    return base.cors_validation(lambda _controller, _req: resp)(
        controller, req
    )


def update_target(
    app: Application, env: dict, place: Place, name: str
) -> Place | None:
    """Return the container to which the proxy sends the row of an object.

    :param env: the environment of a request for the object
    :param place: the object's own container
    :returns: None for the object's own container
    """
    controller = BaseObjectController(app, *place, name)
    namespace = controller._get_update_shard(Request(env), *place, name)
    return Place(*namespace.name.split('/', 1)) if namespace else None


def replicas_in_order(
    app: Application, ring: Ring, part: int
) -> Iterable[dict]:
    """Return the servers of a container in the order to read them.

    The first ones are its primaries, then come handoffs. Those that have made
    many errors recently are left out, as the proxy does it.
    """
    # The request is used for its headers only.
    return base.NodeIter('container', app, ring, part, app.logger, Request({}))


def close_connection(response: BufferedHTTPResponse) -> None:
    """Close the connection of an answer that was not read to its end."""
    base.close_swift_conn(response)


def pass_timestamps_on() -> None:
    """Have the proxy pass on the X-Timestamp of a container's PUT or POST.

    Swift does so from 2.37 on; for 2.36, this extends the list of a class.
    A client's X-Timestamp does not come here: the gatekeeper removes it.
    """
    headers = ContainerController.pass_through_headers
    if 'x-timestamp' not in headers:
        headers.append('x-timestamp')
