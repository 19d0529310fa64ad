# SPDX-License-Identifier: Apache-2.0
"""Archives to upload in bulk."""

import io
import tarfile
from collections.abc import Mapping


def archive_of(
    files: Mapping[str, bytes], mode: str = 'w', prefix: str = ''
) -> bytes:
    """Return a tar archive of some files."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=mode) as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return archive.getvalue()
