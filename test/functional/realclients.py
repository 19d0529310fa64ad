# SPDX-License-Identifier: Apache-2.0
"""The clients that people use, set up for the tests' cluster.

The module also has the files that they upload.
"""

import base64
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import boto3
from boto3.resources.base import ServiceResource
from botocore.awsrequest import AWSRequest
from botocore.client import BaseClient
from botocore.config import Config
from packaging.version import Version
from shardmw_saio import Cluster

from test.functional.client import Client
from test.functional.conftest import (
    SHARD_COUNT_HEADER,
    SHARDS,
    STORED_BODY,
    USER,
)
from test.functional.releases import RELEASE

SWIFT = Path(sys.executable).with_name('swift')
PATIENCE_SECONDS = 60

#: The headers that create a container of each kind.
COUNTS = {'plain': {}, 'sharded': {SHARD_COUNT_HEADER: str(SHARDS)}}

#: A tree of files with names of all sorts, in the order of listings.
FILES = {
    'blob': bytes(range(256)) * 12,
    'dir/one': b'1',
    'dir/sub/three.txt': b'333',
    'dir/two.html': b'<p>two</p>',
    'empty': b'',
    'per%cent/a?b#c&d': b'punctuation',
    'top.txt': b'top level\n',
    'with space/a b.txt': b'spaced',
    'ü/☃.txt': b'a snowman',
}

#: Prefixes of variables that could lead a client to another cluster.
FOREIGN_VARIABLES = ('AWS_', 'OS_', 'ST_')


class SwiftProgram:
    """The program ``swift`` of python-swiftclient.

    :param variables: the environment variables with the credentials
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(FOREIGN_VARIABLES)
        }
        self._environment = {**own, 'LC_ALL': 'C.UTF-8', **variables}

    @classmethod
    def for_owner(cls, cluster: Cluster) -> 'SwiftProgram':
        """Return the program for the tests' user; each command logs in."""
        return cls(cluster.environment())

    @classmethod
    def with_token(cls, client: Client) -> 'SwiftProgram':
        """Return the program for a user who has a token for some account."""
        return cls(
            {
                'OS_AUTH_TOKEN': client.token,
                'OS_STORAGE_URL': client.storage_url,
            }
        )

    def run(
        self, *arguments: str, cwd: Path | None = None, sent: bytes = b''
    ) -> subprocess.CompletedProcess:
        """Run a command to its end, whether it succeeds or fails.

        :param sent: the standard input
        """
        return subprocess.run(
            [SWIFT, *arguments],
            capture_output=True,
            cwd=cwd,
            env=self._environment,
            input=sent,
            timeout=PATIENCE_SECONDS,
        )

    def __call__(self, *arguments: str, **kwargs) -> bytes:
        """Run a command that must succeed; return its output."""
        done = self.run(*arguments, **kwargs)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def lines(self, *arguments: str, **kwargs) -> list[str]:
        """Run a command that must succeed; return its output as lines."""
        return self(*arguments, **kwargs).decode().splitlines()

    def stat(self, *arguments: str) -> dict[str, str]:
        """Return the output of ``swift stat``, by its titles."""
        pairs = (line.split(':', 1) for line in self.lines('stat', *arguments))
        return {title.strip(): value.strip() for title, value in pairs}


def s3_settings(cluster: Cluster, user: str = USER, **config) -> dict:
    """Return the arguments for a user's boto3 client or resource."""
    return {
        'endpoint_url': cluster.s3_url,
        'aws_access_key_id': user,
        'aws_secret_access_key': cluster.users[user],
        'region_name': 'us-east-1',
        'config': Config(
            s3={'addressing_style': 'path'},
            retries={'max_attempts': 1},
            **config,
        ),
    }


def s3_client(
    cluster: Cluster, user: str = USER, url: str | None = None, **config
) -> BaseClient:
    """Return boto3's S3 client for a user.

    :param url: the proxy's URL, if it is not the first proxy
    :param config: options of botocore's ``Config`` to change
    """
    settings = s3_settings(cluster, user, **config)
    client = boto3.client(
        's3', **{**settings, 'endpoint_url': url or cluster.s3_url}
    )
    _add_digests(client)
    return client


def s3_resource(cluster: Cluster) -> ServiceResource:
    """Return boto3's S3 resource for the tests' user."""
    resource = boto3.resource('s3', **s3_settings(cluster))
    _add_digests(resource.meta.client)
    return resource


def _add_digests(client: BaseClient) -> None:
    """Have S3's multi-delete send the digest that Swift needs before 2.35.

    botocore has sent another one since 1.36.
    """
    if Version('2.35') > RELEASE:
        event = 'before-sign.s3.DeleteObjects'
        client.meta.events.register(event, _add_digest)


def _add_digest(request: AWSRequest, **_: object) -> None:
    digest = hashlib.md5(request.body).digest()
    request.headers['Content-MD5'] = base64.b64encode(digest).decode()


def code_of(error) -> str:
    """Return S3's code of an error that a test expected."""
    return error.value.response['Error']['Code']


def keys_of(listing: Mapping) -> list[str]:
    return [row['Key'] for row in listing.get('Contents', [])]


def prefixes_of(listing: Mapping) -> list[str]:
    return [row['Prefix'] for row in listing.get('CommonPrefixes', [])]


def pages_of(
    s3: BaseClient, operation: str, page_size: int, **params
) -> list[dict]:
    """Return all pages of a paginator."""
    paginator = s3.get_paginator(operation)
    config = {'PageSize': page_size}
    return list(paginator.paginate(PaginationConfig=config, **params))


def store(client: Client, container: str, *names: str) -> None:
    """Store small objects."""
    for name in names:
        assert client.put(container, name, STORED_BODY).status == 201


def names_in(client: Client, container: str) -> list[str]:
    """Return the names that a container lists."""
    return client.listing(container).names()


def timestamp_of(client: Client, container: str, name: str) -> str:
    """Return an object's timestamp, which changes if it is stored again."""
    return client.head(container, name).headers['x-timestamp']


def path_of(url: str) -> str:
    """Return a URL's path and query exactly as they are sent."""
    return '/' + url.split('/', 3)[3]


def write_tree(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, by their paths below a folder."""
    for name, body in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def read_tree(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, by their paths."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob('*')
        if path.is_file()
    }
