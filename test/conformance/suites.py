# SPDX-License-Identifier: Apache-2.0
"""The tests of Swift that are run, and the settings that they expect.

Every test is in one suite. Tests that need different values of a setting are
in different suites.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_OPEN_EXPIRED_DISABLED = (
    'test/functional/test_object.py'
    '::TestObject::test_allow_open_expired_disabled'
)
_ACCOUNT_PUT_REFUSED = 'test/functional/tests.py::TestAccount::testPUTError'
_ACCOUNT_PUT_REFUSED_UTF8 = (
    'test/functional/tests.py::TestAccountUTF8::testPUTError'
)
_OF_SWIFT_IN_S3 = (
    _OPEN_EXPIRED_DISABLED,
    _ACCOUNT_PUT_REFUSED,
    _ACCOUNT_PUT_REFUSED_UTF8,
)


@dataclass(frozen=True)
class Suite:
    """Tests that run one after another, on a cluster of their own.

    :param paths: files, folders and tests, in Swift's source tree
    :param without: tests among them that are in another suite
    :param settings: the settings of the cluster, as in
                     :class:`~shardmw_saio.ClusterOptions`
    """

    name: str
    paths: tuple[str, ...]
    without: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


# With Swift's usual limits, the metadata of an object can be too large for
# the extended attributes of ext4. extra_header_count lets servers read more
# headers than metadata may have: tests that exceed the limit of metadata would
# otherwise be refused for another reason.
_SMALL_METADATA = {
    'swift-constraints.max_meta_count': '20',
    'swift-constraints.max_meta_overall_size': '1024',
    'swift-constraints.extra_header_count': '150',
}

_ALL = (
    Suite(
        'features',
        ('test/functional',),
        without=(
            'test/functional/tests.py',
            'test/functional/s3api',
            _OPEN_EXPIRED_DISABLED,
        ),
    ),
    Suite(
        'basics',
        ('test/functional/tests.py',),
        without=(_ACCOUNT_PUT_REFUSED, _ACCOUNT_PUT_REFUSED_UTF8),
        settings=_SMALL_METADATA,
    ),
    Suite(
        's3',
        (*_OF_SWIFT_IN_S3, 'test/functional/s3api', 'test/s3api'),
        settings={
            's3api.s3_acl': 'true',
            's3api.check_bucket_owner': 'true',
            'proxy-server.allow_open_expired': 'false',
            'proxy-server.allow_account_management': 'false',
        },
    ),
)

#: By name, the longest first.
SUITES = {each.name: each for each in _ALL}
