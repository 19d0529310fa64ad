# SPDX-License-Identifier: Apache-2.0
"""The clients of the log server: python-swiftclient and boto3, unchanged."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from swiftclient import Connection

from shardmw_demo.archive import (
    CONTENT_ENCODING,
    CONTENT_TYPE,
    Build,
    console_log,
)

TIMEOUT_SECONDS = 60
RETRIES = 1


def swift_client(environment: Mapping[str, str]) -> Connection:
    """Return a client of Swift.

    :param environment: what :meth:`shardmw_saio.Cluster.environment` returns
    """
    return Connection(
        environment['ST_AUTH'],
        environment['ST_USER'],
        environment['ST_KEY'],
        retries=RETRIES,
        timeout=TIMEOUT_SECONDS,
    )


def s3_client(environment: Mapping[str, str]) -> BaseClient:
    """Return a client of S3, for the same account.

    :param environment: what :meth:`shardmw_saio.Cluster.environment` returns
    """
    return boto3.client(
        's3',
        endpoint_url=environment['AWS_ENDPOINT_URL'],
        aws_access_key_id=environment['AWS_ACCESS_KEY_ID'],
        aws_secret_access_key=environment['AWS_SECRET_ACCESS_KEY'],
        region_name=environment['AWS_DEFAULT_REGION'],
        config=Config(
            s3={'addressing_style': 'path'}, read_timeout=TIMEOUT_SECONDS
        ),
    )


def upload_log(swift: Connection, container: str, build: Build) -> None:
    """Upload the console log of a build so that a browser can show it."""
    swift.put_object(
        container,
        build.name,
        console_log(build),
        content_type=CONTENT_TYPE,
        headers={'Content-Encoding': CONTENT_ENCODING},
    )


def upload_all(
    connect: Callable[[], Connection],
    container: str,
    builds: Sequence[Build],
    clients: int,
    on_stored: Callable[[], None],
) -> None:
    """Upload console logs from many clients concurrently.

    :param connect: returns a new client
    :param clients: the number of clients
    :param on_stored: called after each upload
    """
    own = threading.local()

    def start() -> None:
        own.swift = connect()

    def upload(build: Build) -> None:
        upload_log(own.swift, container, build)

    with ThreadPoolExecutor(clients, initializer=start) as pool:
        try:
            uploads = [pool.submit(upload, build) for build in builds]
            for done in as_completed(uploads):
                done.result()
                on_stored()
        finally:
            pool.shutdown(cancel_futures=True)
