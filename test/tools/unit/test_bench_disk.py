# SPDX-License-Identifier: Apache-2.0
"""A folder whose files are served like those of a disk."""

import http.client
from urllib.parse import urlsplit

from shardmw_bench.targets.disk import served, write_files


def test_files_are_served_over_one_connection(tmp_path):
    folder = tmp_path / 'files'
    write_files(folder, ('a', 'b'), 100_000)
    with served(folder) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        answers = []
        for name in ('a', 'b', 'c'):
            connection.request('GET', f'/{name}')
            answer = connection.getresponse()
            answers.append((answer.status, answer.read()))
        connection.close()
    content = (folder / 'a').read_bytes()
    assert len(content) == 100_000
    assert answers[:2] == [(200, content)] * 2
    assert answers[2][0] == 404
