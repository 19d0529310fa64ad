# SPDX-License-Identifier: Apache-2.0
"""Which tests of Swift's are run, and what they expect of the cluster.

Every test is in one suite. Where a setting lets one test run and skips
another, the suites differ in it.
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
    :param without: what of them another suite has
    :param settings: the cluster's, as in
                     :class:`~shardmw.saio.ClusterOptions`
    """

    name: str
    paths: tuple[str, ...]
    without: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


# An object's metadata at Swift's usual limits is more than ext4 has room for
# in extended attributes. With few headers allowed, some beyond the limit are
# still to be read, or they would be refused for another reason.
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
