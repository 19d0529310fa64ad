# SPDX-License-Identifier: Apache-2.0
"""Build shardmw-tools, which has the version of the shardmw beside it."""

import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent

#: The files with the version: the first is in a source distribution only, the
#: second in a checkout only.
VERSIONS = {
    HERE / 'PKG-INFO': r'^Version: (.+)$',
    HERE.parent / 'shardmw' / '__init__.py': r"^__version__ = '(.+)'$",
}


def find_version() -> str:
    """Return the version of shardmw."""
    path = next(filter(Path.exists, VERSIONS))
    text = path.read_text(encoding='utf-8')
    return re.search(VERSIONS[path], text, re.MULTILINE)[1]


version = find_version()
setup(
    version=version,
    install_requires=[
        f'shardmw=={version}',
        'boto3',
        'httptools>=0.6',
        'jinja2>=3.1',
        'markdown-it-py>=2.2',
        'matplotlib>=3.7',
        'numpy>=1.24',
        'psutil',
        'python-swiftclient',
        'requests',
        'rich>=13',
        'urllib3>=2',
    ],
)
