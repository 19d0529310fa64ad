# SPDX-License-Identifier: Apache-2.0
"""The unexplained errors in the logs of a cluster. Pure."""

import re
from collections import Counter
from collections.abc import Iterable

#: Patterns of lines with an error, and the explanation of each.
EXPLAINED = {
    r'shardmw: 503 for .* no turn for account': 'the account asks for more '
    'listings at once than it may',
    r'shardmw: 503 for .* (the layout has changed|another request has '
    r'changed)': 'a client met a change of layout, and repeats its request',
    r'Timeout|timed out|Client disconnected': 'the machine is busier than '
    "Swift's timeouts allow for",
    r'ERROR 503 .*Trying to \w+ \S+ From Object Server|'
    r'Object \w+ returning 503 for [([]503': 'an object server refuses one of '
    'two requests for an object that meet, of which one writes it',
    r'Error connecting to memcached|No more memcached servers': 'Swift gives '
    'up a connection to memcached when all are in use',
}

_ERROR = re.compile(r'(?:\S+Z \d+ )?(ERROR|CRITICAL|Traceback)')
_EXPLAINED = re.compile('|'.join(f'(?:{each})' for each in EXPLAINED))
_NUMBERS = re.compile(r'tx[0-9a-f-]+|\d[\d.:]*')


def unexplained(lines: Iterable[str]) -> Counter[str]:
    """Return the errors without an explanation, and how often they occur.

    Numbers are masked, so that equal errors count together.
    """
    found: Counter[str] = Counter()
    for line in lines:
        is_error = _ERROR.match(line)
        if is_error and not _EXPLAINED.search(line):
            text = line[is_error.start(1) :].strip()
            found[_NUMBERS.sub('N', text)] += 1
    return found
