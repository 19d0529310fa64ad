# SPDX-License-Identifier: Apache-2.0
"""The files that shardmw-admin export writes."""

import csv
import io
import itertools
import json
from datetime import datetime, timezone

import pytest
from pyarrow import parquet

from shardmw.admin import inventory
from shardmw.reshard.errors import AdminError

ABOUT = {'container': 'a/c', 'prefix': ''}


def row(name: str) -> dict:
    return {
        'name': name,
        'bytes': 3,
        'hash': 'abc; slo_etag=def',
        'last_modified': '2026-11-30T01:02:03.456780',
        'content_type': 'text/plain',
    }


NAMES = ['a', 'b"b', 'c\nc', 'd,d', 'e\re', 'z', 'ä', '☃ 50%']

#: Two places that list them, as a walk finds their rows.
PLACED = [(str(i % 2), row(name)) for i, name in enumerate(NAMES)]


def rows_after(after):
    return (
        (place, row)
        for place, row in PLACED
        if row['name'] > after.get(place, '')
    )


def written(form: str) -> bytes:
    file = io.BytesIO()
    inventory.write_all(iter(PLACED), form, file)
    return file.getvalue()


class TestFormats:
    def test_of_names_end_each(self):
        assert written('null').decode().split('\0') == [*NAMES, '']
        assert written('lines').decode() == '\n'.join(NAMES) + '\n'

    def test_csv_has_columns(self):
        head, *rows = csv.reader(io.StringIO(written('csv').decode()))
        assert tuple(head) == inventory.COLUMNS
        assert [each[0] for each in rows] == NAMES
        assert rows[0] == [
            *('a', '3', 'abc', '2026-11-30T01:02:03.456780', 'text/plain')
        ]

    def test_json_has_rows_of_listings(self):
        lines = written('json').decode().splitlines()
        assert [json.loads(line) for line in lines] == [
            row for _, row in PLACED
        ]

    def test_encrypted_etags_are_left_out(self):
        encrypted = {**row('a'), 'hash': 'abc; swift_meta=x'}
        assert inventory.columns_of(encrypted)[2] == ''

    def test_parquet_has_columns(self, tmp_path):
        path = tmp_path / 'out'
        inventory.write_parquet(iter(PLACED), path)
        table = parquet.read_table(path)
        assert tuple(table.column_names) == inventory.COLUMNS
        assert table['name'].to_pylist() == NAMES
        assert table['time'].to_pylist()[0] == datetime(
            2026, 11, 30, 1, 2, 3, 456780, tzinfo=timezone.utc
        )


class Killed(Exception):
    """Stands for the end of a process."""


@pytest.fixture(params=inventory.FORMATS)
def form(request) -> str:
    return request.param


def write(path, form: str, rows=rows_after, about=ABOUT, serial='1') -> None:
    inventory.write_parts(rows, form, path, about, serial)


def until_killed(after):
    yield from itertools.islice(rows_after(after), 3)
    raise Killed


class TestParts:
    @pytest.mark.parametrize('end', range(len(NAMES) + 1))
    def test_go_on_where_a_run_has_ended(
        self, tmp_path, monkeypatch, form, end
    ):
        monkeypatch.setattr(inventory, 'ROWS_A_PART', 2)
        path = tmp_path / 'out'

        def until_killed(after):
            for i, placed in enumerate(rows_after(after)):
                if i == end:
                    raise Killed
                yield placed
            raise Killed

        with pytest.raises(Killed):
            write(path, form, until_killed)
        assert not path.exists()
        write(path, form)
        assert path.read_bytes() == written(form)
        assert [each.name for each in tmp_path.iterdir()] == ['out']

    def test_of_another_export_are_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(inventory, 'ROWS_A_PART', 2)
        path = tmp_path / 'out'
        with pytest.raises(Killed):
            write(path, 'csv', until_killed)
        before = (tmp_path / 'out.part').read_bytes()
        with pytest.raises(AdminError, match='remove the file'):
            write(path, 'csv', about={**ABOUT, 'prefix': 'x'})
        assert (tmp_path / 'out.part').read_bytes() == before

    def test_of_another_layout_begin_anew(self, tmp_path, monkeypatch):
        monkeypatch.setattr(inventory, 'ROWS_A_PART', 2)
        path = tmp_path / 'out'
        with pytest.raises(Killed):
            write(path, 'csv', until_killed)
        asked = []

        def rows(after):
            asked.append(after)
            return rows_after(after)

        write(path, 'csv', rows, serial='2')
        assert asked == [{}]
        assert path.read_bytes() == written('csv')

    @pytest.mark.parametrize('lost', ['out.part', 'out.state'])
    def test_begin_anew_if_one_of_the_two_files_is_gone(
        self, tmp_path, monkeypatch, lost
    ):
        monkeypatch.setattr(inventory, 'ROWS_A_PART', 2)
        path = tmp_path / 'out'
        with pytest.raises(Killed):
            write(path, 'csv', until_killed)
        (tmp_path / lost).unlink()
        write(path, 'csv')
        assert path.read_bytes() == written('csv')
