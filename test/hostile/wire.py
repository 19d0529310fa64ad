# SPDX-License-Identifier: Apache-2.0
"""A client that sends requests byte by byte, valid or not."""

import http.client
import socket
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from test.functional.client import Answer
from test.hostile.making import Hostile

#: Shorter than the 60 s after which a proxy closes a silent connection.
TIMEOUT_SECONDS = 30

#: Instead of a status: the proxy closed the connection, or did not answer.
CLOSED, SILENT = 0, -1

FRAMING = ('content-length', 'transfer-encoding')


class Sender:
    """A client with one connection.

    :param url: the URL of the proxy, ``http://host:port``
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname, parts.port)
        self._host = parts.netloc
        self._socket: socket.socket | None = None

    def send(self, request: Hostile, authorization: dict) -> Answer:
        """Send a request and return the response.

        :param authorization: headers to add
        :returns: a response with the status CLOSED or SILENT if none comes
        """
        if request.sent is not None:
            # Such a request may leave the connection in any state.
            self.close()
        data = _head(request, self._host, authorization)
        data += request.body.encode('latin-1')[: request.sent]
        answer = self._exchange(request, data)
        if answer.status == CLOSED and request.sent is None:
            # The proxy may have closed the connection after its last response.
            answer = self._exchange(request, data)
        return answer

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, request: Hostile, data: bytes) -> Answer:
        try:
            if self._socket is None:
                self._socket = socket.create_connection(
                    self._address, TIMEOUT_SECONDS
                )
            self._socket.sendall(data)
            if request.sent is not None:
                self._socket.shutdown(socket.SHUT_WR)
            return self._receive(request)
        except TimeoutError:
            self.close()
            return Answer(SILENT, {}, b'')
        except (OSError, http.client.HTTPException):
            self.close()
            return Answer(CLOSED, {}, b'')

    def _receive(self, request: Hostile) -> Answer:
        response = http.client.HTTPResponse(
            self._socket, method=request.method
        )
        response.begin()
        body = response.read()
        headers = {k.lower(): v for k, v in response.getheaders()}
        if (
            response.will_close
            or request.sent is not None
            or _frames_body(request)
        ):
            self.close()
        return Answer(response.status, headers, body)


def s3_authorization(
    request: Hostile, url: str, user: str, key: str
) -> dict[str, str]:
    """Return the headers that sign a request for S3; none if that fails."""
    given = dict(request.headers)
    try:
        signed = AWSRequest(
            request.method,
            url + request.target,
            data=request.body.encode('latin-1'),
            headers={
                name: given[name]
                for name in given
                if name.lower().startswith('x-amz-') and given[name].isascii()
            },
        )
        signer = S3SigV4Auth(Credentials(user, key), 's3', 'us-east-1')
        signer.add_auth(signed)
    except (UnicodeError, ValueError, KeyError):
        return {}
    return {
        name: value
        for name, value in signed.headers.items()
        if name not in given
    }


def _frames_body(request: Hostile) -> bool:
    """Return True if a request has headers that say where its body ends.

    If they are wrong, the rest of the body looks like another request.
    """
    names = {name.lower() for name, _ in request.headers}
    return not names.isdisjoint(FRAMING)


def _head(request: Hostile, host: str, authorization: dict) -> bytes:
    names = {name.lower() for name, _ in request.headers}
    headers = list(request.headers)
    headers += [
        (name, value)
        for name, value in authorization.items()
        if name.lower() not in names
    ]
    if 'host' not in names:
        headers.insert(0, ('Host', host))
    if request.body and not _frames_body(request):
        headers.append(('Content-Length', str(len(request.body))))
    lines = [f'{request.method} {request.target} HTTP/1.1']
    lines += [f'{name}: {value}' for name, value in headers]
    return '\r\n'.join([*lines, '', '']).encode('latin-1')
