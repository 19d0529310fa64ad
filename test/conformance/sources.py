# SPDX-License-Identifier: Apache-2.0
"""Swift's tests, from its source package: they are not installed."""

import importlib.metadata
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from test.conformance.errors import ConformanceError

_TESTS = 'test'


def swift_version() -> str:
    """Return the version of the installed Swift."""
    return importlib.metadata.version('swift')


def swift_tests(cache: Path) -> Path:
    """Return a folder with the tests of the installed Swift, without its code.

    So the tests import the installed Swift.

    :param cache: where the folder is kept
    :raises ConformanceError: if the tests cannot be downloaded
    """
    version = swift_version()
    folder = cache / f'swift-{version}'
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        package = _download(version, Path(temporary))
        unpacked = Path(temporary) / 'unpacked'
        _unpack_tests(package, unpacked)
        unpacked.replace(folder)
    return folder


def _download(version: str, to: Path) -> Path:
    command = [
        *(sys.executable, '-m', 'pip', 'download', '--quiet', '--no-input'),
        *('--no-deps', '--no-binary', 'swift', '--dest', str(to)),
        f'swift=={version}',
    ]
    pip = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    packages = list(to.glob('*.tar.gz'))
    if pip.returncode or not packages:
        raise ConformanceError(
            f'pip cannot download the source package of Swift {version}, '
            f'which has the tests: {_reason(pip.stderr)}'
        )
    return packages[0]


def _reason(stderr: str) -> str:
    """Return the last error that pip has printed, without its advice."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith('ERROR: ')]
    return (errors or lines or ['it does not say why'])[-1]


def _unpack_tests(package: Path, to: Path) -> None:
    found = False
    with tarfile.open(package) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if not member.isfile() or path.parts[1:2] != (_TESTS,):
                continue
            if '..' in path.parts:
                raise ConformanceError(f'{package.name} is no source package')
            target = to.joinpath(*path.parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.extractfile(member).read())
            found = True
    if not found:
        raise ConformanceError(f'{package.name} has no tests')
