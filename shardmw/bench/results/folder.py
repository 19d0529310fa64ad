# SPDX-License-Identifier: Apache-2.0
"""The folder that results are kept in: JSON, a file for each experiment."""

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from shardmw.bench.errors import BenchError
from shardmw.bench.results.provenance import Provenance

_FORMAT = 1
_TIME = '%Y%m%d-%H%M%S'

# What every result has, of whichever version.
_MARKS = frozenset({'format', 'command', 'experiment'})


@dataclass(frozen=True)
class Result:
    """What came of one experiment.

    :param command: of the benchmark, such as ``ratelimit``
    :param experiment: which of the command's it was
    :param parameters: what it was made with, by name
    :param figures: what was measured, as the experiment shapes it; all that
                    its tables are made of
    :param complete: whether nothing broke it off
    :param name: a word that tells it from others of the same experiment;
                 mostly empty
    :param time: when it was kept, if an earlier result was there
    :param seconds: how long the experiment took; None if that is not known
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
        parts = (self.command, self.experiment, self.name)
        return '-'.join(filter(None, parts))


def make(folder: Path) -> None:
    """Make the folder, unless it's there.

    :raises BenchError: if it can't be made, or nothing can be put into it
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise BenchError(f'{folder} cannot be made: {err.strerror}') from err
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BenchError(f'{folder} cannot be written to: choose another')


def save(folder: Path, result: Result, is_replacing: bool = False) -> Path:
    """Keep a result, and return its file.

    If an earlier one is there, the name of the file ends with the time.

    :param is_replacing: True to replace an earlier one
    :raises BenchError: if the file cannot be written
    """
    path = folder / f'{result.words}.json'
    if path.is_file() and not is_replacing:
        result = replace(result, time=time.strftime(_TIME))
        path = folder / f'{result.words}.json'
    values = {
        'format': _FORMAT,
        'command': result.command,
        'experiment': result.experiment,
        'provenance': result.provenance.as_json(),
        'parameters': result.parameters,
        'figures': result.figures,
        'complete': result.complete,
        'name': result.name,
        'time': result.time,
        'seconds': result.seconds,
    }
    write(path, json.dumps(values, indent=1, allow_nan=False) + '\n')
    return path


def load(
    folder: Path, command: str, experiments: Sequence[str]
) -> list[Result]:
    """Return the newest result of each experiment that the folder has.

    :raises BenchError: if a file can't be understood
    """
    found = []
    for each in experiments:
        paths = sorted(
            folder.glob(f'{command}-{each}*.json'), key=lambda path: path.stem
        )
        found += map(_read, paths[-1:])
    return found


def load_all(folder: Path) -> list[Result]:
    """All that the folder has, by the names of its files.

    JSON of others is left out.

    :raises BenchError: if a file can't be understood
    """
    paths = sorted(folder.glob('*.json'))
    return [_read(path) for path in paths if not _is_of_others(path)]


def write(path: Path, text: str) -> None:
    """Write a file as a whole, or not at all.

    :raises BenchError: if it can't be written
    """
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
    """Whether it's whole, and clearly no result."""
    try:
        values = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError):
        # it may have been one
        return False
    return not (isinstance(values, dict) and values.keys() >= _MARKS)


def _refuse(constant: str) -> NoReturn:
    """Of what Python reads and writes as JSON, and :func:`save` does not."""
    raise ValueError(f'{constant} is no figure')


def _read(path: Path) -> Result:
    try:
        text = path.read_text(encoding='utf-8')
        values = json.loads(text, parse_constant=_refuse)
        if values['format'] != _FORMAT:
            raise ValueError(f'format {values["format"]}')
        return Result(
            values['command'],
            values['experiment'],
            Provenance.from_json(values['provenance']),
            values['parameters'],
            values['figures'],
            values.get('complete', True),
            values.get('name', ''),
            values.get('time', ''),
            values.get('seconds'),
        )
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise BenchError(
            f'{path} is no result of this version ({err}): remove it if it '
            'is one of the benchmark, or choose another folder'
        ) from err
