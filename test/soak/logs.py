# SPDX-License-Identifier: Apache-2.0
"""The errors in the logs of a cluster that have an explanation. Pure."""

import re
from collections import Counter
from collections.abc import Iterable

#: What a line with an error matches, and why it is none of a soak.
EXPLAINED = {
    r'DEBUG|INFO|WARNING': 'no error',
    r'shardmw: 503 for .* no turn for account': 'the account asks for more '
    'listings at once than it may',
    r'shardmw: 503 for .* (the layout has changed|another request has '
    r'changed)': 'a client met a change of layout, and repeats its request',
    r'Timeout|timed out|Client disconnected': 'the machine is busier than '
    "Swift's timeouts allow for",
    r'Error connecting to memcached|No more memcached servers': 'Swift gives '
    'up a connection to memcached when all are in use',
}

_LEVEL = re.compile(r'^\S+Z \d+ (\w+) ')
_TRACEBACK = re.compile(r'^Traceback')
_EXPLAINED = re.compile('|'.join(f'(?:{each})' for each in EXPLAINED))
_NUMBERS = re.compile(r'tx[0-9a-f-]+|\d[\d.:]*')


def unexplained(lines: Iterable[str]) -> Counter[str]:
    """Return the errors without an explanation, and how often they came.

    Numbers are left out of the text, so that the same errors count together.
    """
    found: Counter[str] = Counter()
    for line in lines:
        is_line = _LEVEL.match(line)
        if not is_line and not _TRACEBACK.match(line):
            continue  # a line of a traceback, or of no logger
        text = line
        if is_line:
            text = line[is_line.start(1) :]
        if not _EXPLAINED.search(text):
            found[_NUMBERS.sub('N', text.strip())] += 1
    return found
