# SPDX-License-Identifier: Apache-2.0
"""The configuration of Swift's tests: the URL of the cluster, users. Pure."""

from collections.abc import Mapping

from shardmw_saio.config import STORAGE_DOMAIN

#: The users, by the role that the tests give to each of them.
OWNER = 'test:tester'
OTHER_ACCOUNTS_OWNER = 'test2:tester2'
UNPRIVILEGED = 'test:tester3'
SERVICE = 'test5:tester5'
RESELLER_ADMIN = 'admin:admin'

#: A second owner of the first account, which only the tests of S3 need.
SECOND_OWNER = 'test:tester2'

#: Accounts that exist before the first test.
ACCOUNTS = ('AUTH_test', 'AUTH_test2')

# The fourth user is Keystone's.
_ROLES = {
    '': OWNER,
    '2': OTHER_ACCOUNTS_OWNER,
    '3': UNPRIVILEGED,
    '5': SERVICE,
    '6': RESELLER_ADMIN,
}
_S3_ROLES = {1: OWNER, 2: SECOND_OWNER, 3: UNPRIVILEGED}

_REGION = 'us-east-1'


def config_text(url: str, users: Mapping[str, str]) -> str:
    """Return the text of the file that SWIFT_TEST_CONFIG_FILE names.

    :param url: the URL of the cluster
    :param users: ``{'account:user': key}``
    """
    sections = {
        'func_test': {
            'auth_uri': f'{url}/auth/v1.0',
            's3_storage_url': f'{url}/',
            's3_region': _REGION,
            'storage_domain': STORAGE_DOMAIN,
            'service_prefix': 'SERVICE',
            'collate': 'C',
            **_roles(users),
            **_s3_roles(users),
        },
        's3api_test': {
            'endpoint': url,
            'region': _REGION,
            's3_acl_tests_enabled': 'true',
            **_boto3_roles(users),
        },
    }
    blocks = []
    for name, section in sections.items():
        lines = [f'{option} = {value}' for option, value in section.items()]
        blocks.append('\n'.join([f'[{name}]', *lines]))
    return '\n\n'.join(blocks) + '\n'


def _roles(users: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for number, account_and_user in _ROLES.items():
        account, _, user = account_and_user.partition(':')
        options[f'account{number}'] = account
        options[f'username{number}'] = user
        options[f'password{number}'] = users[account_and_user]
    return options


def _s3_roles(users: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for number, user in _S3_ROLES.items():
        suffix = '' if number == 1 else str(number)
        options[f's3_access_key{suffix}'] = user
        options[f's3_secret_key{suffix}'] = users[user]
    return options


def _boto3_roles(users: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for number, user in _S3_ROLES.items():
        options[f'access_key{number}'] = user
        options[f'secret_key{number}'] = users[user]
    return options
