# SPDX-License-Identifier: Apache-2.0
"""The programs that tools/measure-clients measures.

A program is a command line, in which ``{container}`` and ``{tree}`` (a folder
of files) are replaced, or a function.
"""

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import urllib3

ACCOUNT, USER = 'AUTH_test', 'test:tester'
TIMEOUT_SECONDS = 600

#: Objects in a directory of the container that is listed.
PER_DIRECTORY = 100

#: The pages of a walk, their names, and visits of a small web page.
PAGES, PAGE, VISITS = 20, 100, 10

#: GETs a path below the container.
Get = Callable[[str], bytes]

#: A command line, or a function of the round's number.
Work = str | Callable[[Get, int], bytes]


def walk(get: Get, number: int) -> bytes:
    """Get pages one after the other.

    Each round has other pages, so that none has been read ahead.
    """
    marker = f'd{number * PAGES * PAGE // PER_DIRECTORY:04d}/'
    text = b''
    for _ in range(PAGES):
        page = get(f'?limit={PAGE}&marker={quote(marker)}')
        if not page:
            break
        marker = page.decode().split()[-1]
        text += page
    return text


def visit(path: str, times: int) -> Work:
    """Return a program that gets a page so many times."""
    return lambda get, number: b''.join(get(path) for _ in range(times))


#: The programs of each store: what a container has that they work with.
PROGRAMS: dict[str, dict[str, Work]] = {
    'rclone': {
        'rclone sync, first': 'rclone sync {tree} saio:{container}',
        'rclone sync, again': 'rclone sync {tree} saio:{container}',
        'rclone sync --fast-list, again': (
            'rclone sync --fast-list {tree} saio:{container}'
        ),
    },
    'aws': {
        'aws s3 sync, first': 'aws s3 sync --quiet {tree} s3://{container}',
        'aws s3 sync, again': 'aws s3 sync --quiet {tree} s3://{container}',
    },
    'objects': {
        'rclone lsf -R': 'rclone lsf -R saio:{container}',
        'aws s3 ls --recursive': 'aws s3 ls --recursive s3://{container}',
        'swift list': 'swift list {container}',
        'swift list, the directories': 'swift list -d / {container}',
        'swift list, a directory': 'swift list -p d0001/ -d / {container}',
        f'{PAGES} pages of {PAGE}': walk,
    },
    'packs': {
        'restic list packs': 'restic list packs',
        'restic backup': 'restic backup --quiet {tree}',
        'restic snapshots': 'restic snapshots --compact',
    },
    'site': {
        'browser, the directories': visit('/', 1),
        f'browser, a directory, {VISITS} times': visit('/d0001/', VISITS),
    },
}

#: Stores that are empty before each round.
SYNCED = ('rclone', 'aws')


def get(url: str) -> bytes:
    """GET a URL without a token."""
    response = urllib3.request(
        'GET', url, retries=False, timeout=TIMEOUT_SECONDS
    )
    if response.status not in (200, 204):
        raise RuntimeError(f'GET {url}: {response.status}')
    return response.data


def environment(
    url: str, key: str, container: str, home: Path
) -> dict[str, str]:
    """Return the variables of a program: none of the user's own.

    :param url: of the proxy
    :param home: where the program may write
    """
    return {
        'PATH': os.environ['PATH'],
        'HOME': str(home),
        'LC_ALL': 'C.UTF-8',
        'ST_AUTH': f'{url}/auth/v1.0',
        'ST_USER': USER,
        'ST_KEY': key,
        'AWS_ACCESS_KEY_ID': USER,
        'AWS_SECRET_ACCESS_KEY': key,
        'AWS_DEFAULT_REGION': 'us-east-1',
        'AWS_ENDPOINT_URL': url,
        'AWS_EC2_METADATA_DISABLED': 'true',
        'RESTIC_PASSWORD': 'restic',
        'RESTIC_REPOSITORY': f's3:{url}/{container}',
        'RCLONE_CONFIG': str(home / 'rclone.conf'),
        'RCLONE_CONFIG_SAIO_TYPE': 's3',
        'RCLONE_CONFIG_SAIO_PROVIDER': 'Other',
        'RCLONE_CONFIG_SAIO_ENV_AUTH': 'true',
        'RCLONE_CONFIG_SAIO_ENDPOINT': url,
    }
