# SPDX-License-Identifier: Apache-2.0
"""The output of the commands."""

import pytest

from shardmw.admin.names import parse_name
from shardmw.admin.printing import printable
from shardmw.reshard.cluster import open_cluster
from shardmw.reshard.errors import AdminError

#: A name that would add a row to a table, and one that clears the screen.
FORGED = 'AUTH_ci/a\nAUTH_ci/b  4'
CLEARING = 'AUTH_ci/\x1b[2J'


@pytest.mark.parametrize(
    ('name', 'shown'),
    [
        ('AUTH_ci/plain ü', 'AUTH_ci/plain ü'),
        ('AUTH_ci/\0versions\0c', 'AUTH_ci/%00versions%00c'),
        (FORGED, 'AUTH_ci/a%0AAUTH_ci/b  4'),
        (CLEARING, 'AUTH_ci/%1B[2J'),
        ('AUTH_ci/\x9b2J', 'AUTH_ci/%C2%9B2J'),
        ('AUTH_ci/\u2028', 'AUTH_ci/%E2%80%A8'),
    ],
)
def test_control_characters_of_names_are_quoted(name, shown):
    assert printable(name) == shown


def test_a_name_is_taken_as_it_is_shown():
    for parts, name in (3, FORGED), (2, CLEARING):
        assert '/'.join(parse_name(printable(name), parts)) == name


def test_a_wrong_configuration_is_reported_in_one_line(tmp_path):
    conf = tmp_path / 'internal-client.conf'
    conf.write_text('[pipeline:main]\nproxy-server\n')
    with pytest.raises(AdminError, match='parsing errors') as raised:
        open_cluster(conf, tmp_path)
    assert '\n' not in str(raised.value)
