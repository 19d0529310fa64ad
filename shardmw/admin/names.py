# SPDX-License-Identifier: Apache-2.0
"""The names that commands take: pure."""

from urllib.parse import unquote

from shardmw.reshard.errors import AdminError


def parse_name(text: str, parts: int) -> tuple[str, ...]:
    """Return the account, the container and the object that a text names.

    An object's name may have slashes. A text without percent escapes is used
    unchanged.

    :param text: such as ``AUTH_ci/logs``, quoted or not, with or without a
                 slash at its beginning
    :param parts: how many names are wanted, 1 to 3
    :raises AdminError: if the text has another number of names, or is not
                        UTF-8
    """
    try:
        unquoted = unquote(text, errors='strict')
        unquoted.encode()
    except UnicodeError as err:
        raise AdminError(f'{ascii(text)}: not UTF-8') from err
    names = tuple(unquoted.removeprefix('/').split('/', parts - 1))
    wanted = '/'.join(('ACCOUNT', 'CONTAINER', 'OBJECT')[:parts])
    is_container = parts < 3
    if (
        len(names) < parts
        or not all(names)
        or (is_container and '/' in names[-1])
    ):
        raise AdminError(f'{text}: not a name like {wanted}')
    return names
