# SPDX-License-Identifier: Apache-2.0
"""Take a container's settings from the headers of a PUT or POST. Pure."""

from collections.abc import Callable

from swift.common.swob import HTTPBadRequest, Request, Response


def remove_header_of(header: str) -> str:
    """Return the header that removes a setting, as Swift names it."""
    return header.replace('X-', 'X-Remove-', 1)


def is_sent(req: Request, header: str) -> bool:
    """Return True if a request sets or removes a setting."""
    return header in req.headers or remove_header_of(header) in req.headers


def take_setting(
    req: Request,
    header: str,
    sysmeta: str,
    stored: Callable[[str], str],
    fault: str,
) -> Response | None:
    """Replace the header of a setting by the sysmeta to store.

    An empty value removes the setting, and so does the ``X-Remove-`` header
    with any value.

    :param req: an authorized request to a container
    :param header: the header of the setting, ``X-Container-...``
    :param sysmeta: the header under which Swift stores it
    :param stored: returns what to store for a text that is not empty; raises
                   ValueError if it is invalid
    :param fault: the text of the 400 for an invalid value, with ``{}`` for
                  the value
    :returns: the 400 for an invalid value, None otherwise
    """
    if not is_sent(req, header):
        return None
    text = req.headers.get(header, '').strip()
    try:
        value = stored(text) if text else ''
    except ValueError:
        return HTTPBadRequest(
            request=req,
            content_type='text/plain',
            body=fault.format(ascii(text)),
        )
    for name in (header, remove_header_of(header)):
        req.headers.pop(name, None)
    req.headers[sysmeta] = value
    return None
