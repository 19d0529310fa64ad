# SPDX-License-Identifier: Apache-2.0
"""Generate the builds of a CI system with their console logs. Pure.

The same number of builds gives the same archive in each run.
"""

import datetime
import gzip
import random
from collections.abc import Iterator
from typing import NamedTuple

FIRST_DAY = datetime.date(2026, 3, 23)
DAYS = 7

JOBS = (
    'docs',
    'functional',
    'integration-full',
    'integration-multinode',
    'lint',
    'packaging',
    'unit-py310',
    'unit-py312',
    'upgrade-from-stable',
)

#: The headers with which a browser shows a log that is stored compressed.
CONTENT_TYPE = 'text/html; charset=utf-8'
CONTENT_ENCODING = 'gzip'

_TEST_SUITES = ('api', 'auth', 'cache', 'cli', 'db', 'network', 'storage')
_TESTS_PER_LOG = 60


class Build(NamedTuple):
    """One run of one job.

    :param build: the id of the build, as hexadecimal digits
    """

    day: datetime.date
    job: str
    build: str

    @property
    def day_prefix(self) -> str:
        """Return the prefix of the names of all logs of the day."""
        return f'{self.day:%Y/%m/%d}/'

    @property
    def name(self) -> str:
        """Return the name of the object with the console log."""
        return f'{self.day_prefix}{self.job}/{self.build}/console.html.gz'


def builds(count: int) -> list[Build]:
    """Return the builds of a week, in the order in which they ran."""
    chance = random.Random(count)
    return [
        Build(
            FIRST_DAY + datetime.timedelta(days=i * DAYS // count),
            chance.choice(JOBS),
            f'{chance.getrandbits(40):010x}',
        )
        for i in range(count)
    ]


def console_log(build: Build) -> bytes:
    """Return the console log of a build: an HTML page, compressed."""
    page = '\n'.join(_lines(build))
    return gzip.compress(page.encode('utf-8'), mtime=0)


def _lines(build: Build) -> Iterator[str]:
    chance = random.Random(build.build)
    midnight = datetime.datetime.combine(build.day, datetime.time())
    now = midnight + datetime.timedelta(seconds=chance.randrange(80_000))

    def line(text: str) -> str:
        nonlocal now
        now += datetime.timedelta(milliseconds=chance.randrange(5, 2000))
        return f'{now:%Y-%m-%d %H:%M:%S} | {text}'

    yield f'<!DOCTYPE html><title>{build.job} {build.build}</title><pre>'
    yield line(f'Started build {build.build} of {build.job}')
    yield line(f'Running on node-{chance.randrange(1, 400):03d}')
    for _ in range(_TESTS_PER_LOG):
        suite = chance.choice(_TEST_SUITES)
        case = chance.getrandbits(16)
        seconds = chance.expovariate(2)
        yield line(f'{suite}.test_{case:05d} ... ok [{seconds:.3f}s]')
    yield line('Finished: SUCCESS')
    yield '</pre>'
