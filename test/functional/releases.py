# SPDX-License-Identifier: Apache-2.0
"""Skip tests of what older releases of Swift lack."""

import pytest
import swift
from packaging.version import Version

RELEASE = Version(swift.__version__)


def needs(release: str, what: str) -> pytest.MarkDecorator:
    """Skip a test on older releases of Swift.

    :param what: what Swift does from this release on
    """
    return pytest.mark.skipif(
        Version(release) > RELEASE, reason=f'Swift {what} from {release} on'
    )


#: In S3 and in Swift's own API.
PART_NUMBERS = needs('2.34', 'reads one part of a large object')
PART_COPIES = needs('2.35', 'compares the ETag of a part copy with its source')
EXPIRED_OBJECTS = needs('2.34', 'shows expired objects to their owner')
COUNT_QUOTAS = needs('2.34', 'limits the objects of an account')
LABELS = needs('2.36', 'sends metrics with labels')
CONDITIONAL_PUTS = needs('2.36', 'puts S3 objects on a condition')
