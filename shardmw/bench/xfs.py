# SPDX-License-Identifier: Apache-2.0
"""Whether extended attributes lie in an XFS inode, by its format. Pure.

An inode is its core, then the literal area, which the data fork and the
attribute fork share. Attributes that don't fit there go to a block of their
own, which is another read, of another place of the disk.

From Linux' ``fs/xfs/libxfs``:

- ``xfs_format.h``: the core has 100 bytes in a v4 file system and 176 in v5
  (``struct xfs_dinode``, the latter with checksums), whose inodes have 512
  bytes or more; a fork that may become a B+tree keeps room for its root, a
  header of 4 bytes and a key and a pointer of 8 each for at least
  ``MINDBTPTRS`` = 3 records (``XFS_BMDR_SPACE_CALC``); an extent is 16 bytes.
- ``xfs_attr_leaf.c``, ``xfs_attr_shortform_bytesfit``: how far the attribute
  fork can grow; the forks meet at a multiple of 8 bytes.
- ``xfs_da_format.h``, ``xfs_attr_sf_hdr`` and ``xfs_attr_sf_entry``: such
  attributes have a header of 4 bytes, and each of them 3 besides its name,
  which goes without ``user.``, and its value.
- ``xfs_attr_sf.h`` and ``xfs_attr.c``: ``XFS_ATTR_SF_ENTSIZE_MAX`` is 255,
  since lengths are a byte, and what is as long or longer never lies in the
  inode, however large that is.
- ``xfs_da_format.h``, ``xfs_attr_leaf_entsize_local_max``: a value lies in
  the attributes' own block if it takes less than three quarters of it.

Other attributes, such as SELinux labels, would take room, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

#: A value or name of so many bytes is too long for any inode.
TOO_LONG = 255

#: A value of so many bytes takes more than one block of 4,096.
LEAF_BYTES = 3072

_CORE_BYTES = {4: 100, 5: 176}
_LEAST_INODE_BYTES = {4: 256, 5: 512}
_EXTENT_BYTES = 16
_ROOT_HEADER_BYTES = 4
_ROOT_RECORD_BYTES = 16
_LEAST_ROOT_RECORDS = 3
_ALIGNMENT = 8
_HEADER_BYTES = 4
_ENTRY_BYTES = 3
_USER = 'user.'


@dataclass(frozen=True)
class Inode:
    """An inode of a file system.

    :param size: in bytes, as ``mkfs.xfs -i size=`` has it
    :param version: of the file system's format: 5, or 4 for one without
                    checksums
    """

    size: int
    version: int = 5

    def __post_init__(self) -> None:
        least = _LEAST_INODE_BYTES[self.version]
        if self.size < least:
            raise ValueError(
                f'{self.size}-byte inodes: v{self.version} has {least} bytes '
                'or more'
            )

    @property
    def label(self) -> str:
        """For people."""
        return f'{self.size} (v{self.version})'

    def room(self, extents: int = 1) -> int:
        """Bytes that the attribute fork can have.

        :param extents: of the file's data
        """
        root = _ROOT_HEADER_BYTES + _LEAST_ROOT_RECORDS * _ROOT_RECORD_BYTES
        data = _aligned(max(extents * _EXTENT_BYTES, root))
        return max(0, self.size - _CORE_BYTES[self.version] - data)

    def holds(self, attributes: Mapping[str, int], extents: int = 1) -> bool:
        """Whether all attributes lie in it.

        :param attributes: the length of each value, by name
        """
        return not any(
            length >= TOO_LONG or len(_stored(name)) >= TOO_LONG
            for name, length in attributes.items()
        ) and fork_bytes(attributes) <= self.room(extents)

    def longest(self, name: str, others: Mapping[str, int]) -> int:
        """The longest value that an attribute can have in it.

        :param others: that lie there, too
        :returns: below 0 if there's no room for it at all
        """
        rest = self.room() - fork_bytes({**others, name: 0})
        return min(TOO_LONG - 1, rest)


def fork_bytes(attributes: Mapping[str, int]) -> int:
    """What attributes take in an inode, by the lengths of their values."""
    return _HEADER_BYTES + sum(
        _ENTRY_BYTES + len(_stored(name)) + length
        for name, length in attributes.items()
    )


#: Those that operators may have chosen: the smallest is of v4 only.
INODES = (Inode(256, 4), Inode(512), Inode(1024), Inode(2048))


def _stored(name: str) -> bytes:
    return name.removeprefix(_USER).encode()


def _aligned(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT
