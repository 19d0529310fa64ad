# SPDX-License-Identifier: Apache-2.0
"""The folder of results: JSON and CSV files of each experiment."""

import contextlib
import csv
import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from shardmw_bench.errors import BenchError
from shardmw_bench.results.provenance import Provenance

_FORMAT = 1

# Keys in the results of all versions.
_MARKS = frozenset({'format', 'command', 'experiment'})


@dataclass(frozen=True)
class Result:
    """The result of an experiment.

    :param command: of the benchmark, such as ``ratelimit``
    :param figures: as the experiment has them; tables are made of them
    :param complete: False if it was interrupted
    :param name: a word that the user chose, or ''
    :param time: when it was kept, if there was an earlier result, or ''
    :param seconds: how long it took; None if that is not known
    """

    command: str
    experiment: str
    provenance: Provenance
    parameters: Mapping[str, object]
    figures: Mapping[str, object]
    complete: bool = True
    name: str = ''
    time: str = ''
    seconds: float | None = None

    @property
    def words(self) -> str:
        """Return the name of its files, without a suffix."""
        return '-'.join(filter(None, (self.kind_words, self.time)))

    @property
    def kind_words(self) -> str:
        """Return the name that it has in common with earlier results."""
        words = self.command, self.experiment, self.name
        return '-'.join(filter(None, words))


def make(folder: Path) -> None:
    """Make the folder; raise BenchError if it cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise BenchError(f'{folder} cannot be made: {err.strerror}') from err
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BenchError(f'{folder} cannot be written to: choose another')


def save(
    folder: Path, result: Result, is_replacing: bool = False
) -> list[Path]:
    """Write a result as JSON, and its runs as CSV; return the files.

    The time is appended to their names if there is an earlier result, unless
    ``is_replacing``.

    :raises BenchError: if a file cannot be written
    """
    path = folder / f'{result.words}.json'
    if path.is_file() and not is_replacing:
        result = replace(result, time=time.strftime('%Y%m%d-%H%M%S'))
        path = folder / f'{result.words}.json'
    values = {'format': _FORMAT, **vars(result)}
    values['provenance'] = vars(result.provenance)
    write(path, json.dumps(values, indent=1, allow_nan=False) + '\n')
    files = [path]
    if entries := entries_of(result.figures):
        files.append(path.with_suffix('.csv'))
        write(files[-1], csv_text(entries))
    return files


def load(
    folder: Path, command: str, experiments: Sequence[str]
) -> list[Result]:
    """Return the newest results; raise BenchError if one is damaged."""
    newest = []
    for each in experiments:
        paths = folder.glob(f'{command}-{each}*.json')
        results = map(_read, sorted(paths, key=lambda path: path.stem))
        newest += [found for found in results if found.experiment == each][-1:]
    return newest


def load_all(folder: Path) -> list[Result]:
    """Return all results by file name; BenchError if one is damaged."""
    paths = sorted(folder.glob('*.json'))
    return [_read(path) for path in paths if not _is_of_others(path)]


def write(path: Path, text: str) -> None:
    """Write a file as a whole, or raise BenchError and leave it as it was."""
    draft = path.with_name(f'.{path.name}.new')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding='utf-8')
        os.replace(draft, path)
    except OSError as err:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise BenchError(f'{path} cannot be written: {err.strerror}') from err


def _is_of_others(path: Path) -> bool:
    try:
        values = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError):
        # it may be a damaged result
        return False
    return not (isinstance(values, dict) and values.keys() >= _MARKS)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f'{constant} is no figure')


def _read(path: Path) -> Result:
    try:
        text = path.read_text(encoding='utf-8')
        values = dict(json.loads(text, parse_constant=_refuse))
        if (version := values.pop('format')) != _FORMAT:
            raise ValueError(f'format {version}')
        origin = Provenance(**values.pop('provenance'))
        return Result(provenance=origin, **values)
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise BenchError(
            f'{path} is no result of this version ({err}): remove it if it '
            'is one of the benchmark, or choose another folder'
        ) from err


def entries_of(figures: Mapping) -> Sequence[Mapping]:
    """Return the runs or rows of an experiment's figures, if there are any."""
    return figures.get('runs') or figures.get('rows') or []


def flat(entry: Mapping, prefix: str = '') -> dict[str, object]:
    """Return numbers and words by dotted names; leave out series."""
    row: dict[str, object] = {}
    for name, value in entry.items():
        if isinstance(value, Mapping):
            row |= flat(value, f'{prefix}{name}.')
        elif not isinstance(value, list | tuple):
            row[f'{prefix}{name}'] = value
    return row


def csv_text(entries: Sequence[Mapping]) -> str:
    rows = [flat(each) for each in entries]
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, columns, lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
