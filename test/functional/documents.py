# SPDX-License-Identifier: Apache-2.0
"""Run the commands in the documentation exactly as they are printed.

Blocks marked ``sh`` or ``python`` are run. Commands that cannot run on an
embedded Swift, such as the installation of a package, are marked ``console``.
"""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from shardmw_saio import Cluster

from test.functional.operating import SETTLE_SECONDS
from test.functional.realclients import FOREIGN_VARIABLES

PROJECT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120

BLOCK = re.compile(
    r'^(?P<indent> *)```(?P<language>sh|python)\n'
    r'(?P<text>.*?)^(?P=indent)```$',
    re.MULTILINE | re.DOTALL,
)
SHELLS = {
    'sh': ['bash', '-e', '-o', 'pipefail', '-c'],
    'python': [sys.executable, '-c'],
}

#: The account of the examples.
ACCOUNT = 'AUTH_ci'

#: Wrappers of commands that must find an embedded Swift. Changes settle there
#: in a second instead of a day.
COMMANDS = {
    'shardmw-admin': f"""#!/bin/sh
case $1 in
reshard | cancel) set -- "$@" --settle-seconds {SETTLE_SECONDS} ;;
esac
exec shardmw-saio admin "$@"
""",
    'swift-get-nodes': """#!/bin/sh
exec {commands}/swift-get-nodes --swift-dir {swift_dir} "$@"
""",
    'swift-account-info': """#!{commands}/python
import sys
from swift.common.utils import set_swift_dir
set_swift_dir('{swift_dir}')
from swift.cli.info import print_info
print_info('account', sys.argv[1], '{swift_dir}')
""",
}


class Block(NamedTuple):
    """A block of a page.

    :param line: the number of its first line
    """

    page: str
    line: int
    language: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page that can be run."""
    text = (PROJECT / page).read_text(encoding='utf-8')
    for found in BLOCK.finditer(text):
        line = text.count('\n', 0, found.start('text')) + 1
        block = textwrap.dedent(found['text'])
        yield Block(page, line, found['language'], block)


class Reader:
    """A user who types the commands of the pages.

    :param account: the account to use instead of the one in the examples
    :param folder: an empty folder to work in
    """

    def __init__(self, cluster: Cluster, account: str, folder: Path) -> None:
        self._folder = folder
        self._replaced = {
            ACCOUNT: account,
            '/etc/swift': str(cluster.swift_dir),
            '/srv/node': f'{cluster.devices_path}/1',
        }
        (folder / 'README.md').write_text('a file to upload\n')
        proxies = '\n'.join(cluster.proxy_urls)
        (cluster.swift_dir / 'proxies').write_text(proxies)
        commands = Path(sys.executable).parent
        own_commands = folder / 'bin'
        own_commands.mkdir()
        for name, text in COMMANDS.items():
            command = own_commands / name
            command.write_text(
                text.format(commands=commands, swift_dir=cluster.swift_dir)
            )
            command.chmod(0o755)
        path = [str(own_commands), str(commands)]
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(FOREIGN_VARIABLES)
        }
        self._environment = {
            **own,
            **cluster.environment(),
            'LC_ALL': 'C.UTF-8',
            'PATH': os.pathsep.join([*path, own['PATH']]),
        }

    def run(self, block: Block) -> str:
        """Run a block to its end; return what went wrong, or ''."""
        text = block.text
        for name, value in self._replaced.items():
            text = text.replace(name, value)
        try:
            ran = subprocess.run(
                [*SHELLS[block.language], text],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=self._environment,
                text=True,
                timeout=PATIENCE_SECONDS,
            )
        except subprocess.TimeoutExpired as err:
            return f'{err}: {err.output}'
        if ran.returncode == 0:
            return ''
        return f'exit code {ran.returncode}: {ran.stdout}'
