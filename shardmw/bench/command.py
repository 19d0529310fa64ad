# SPDX-License-Identifier: Apache-2.0
"""What all commands share: options of parameters, and doing experiments."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from shardmw.bench.errors import BenchError, failure_text
from shardmw.bench.experiments import describe, title
from shardmw.bench.load.clients import Clients
from shardmw.bench.load.stage import Stage
from shardmw.bench.options import REPLACING, Parsed
from shardmw.bench.parameters import Option, Parameters
from shardmw.bench.results import csvfiles, folder
from shardmw.bench.results.folder import Result
from shardmw.bench.results.provenance import Provenance, provenance
from shardmw.bench.screen import Screen
from shardmw.bench.words import about_text, duration_text

Figures = Mapping[str, object]
Keep = Callable[[Figures], None]

#: Client processes of an experiment whose parameters don't say.
_PROCESSES = 2


@dataclass(frozen=True)
class Experiment:
    """Something to do, and to keep.

    :param command: what the result is kept as, with ``name``
    :param measure: see :mod:`shardmw.bench.scenarios`
    :param word: tells its result from others of the same experiment
    :param seconds: about how long it takes; None if that is not known
    :param check: raises a BenchError if what it came to, which is kept and
                  shown, is a failure
    """

    command: str
    name: str
    parameters: Parameters
    measure: Callable[[Stage, Keep], Figures]
    word: str = ''
    check: Callable[[Figures], None] = lambda figures: None
    seconds: float | None = None


class InOrder(click.Group):
    """Commands in the order in which they were added."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


def parameter_options(
    parameters: type[Parameters], **defaults: object
) -> Callable[[Callable], Callable]:
    """A decorator: the options that the fields of parameters are.

    :param defaults: by name, in the place of those of the fields
    """

    def decorate(command: Callable) -> Callable:
        options = parameters.options()
        for name, (default, chosen) in reversed(options.items()):
            default = defaults.get(name, default)
            command = _option(name, default, chosen)(command)
        return command

    return decorate


def chosen_parameters(
    parameters: type[Parameters], values: Mapping[str, object]
) -> Parameters:
    """The parameters that somebody chose, by what click read.

    :raises UsageError: if they make no sense
    """
    options = parameters.options()
    chosen = parameters(
        **{
            name: dict(value)
            if isinstance(options[name][0], Mapping)
            else value
            for name, value in values.items()
            if name in options
        }
    )
    with usage_errors():
        chosen.check()
    return chosen


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """What a function refuses (ValueError) is told as bad usage."""
    try:
        yield
    except ValueError as err:
        raise click.UsageError(str(err)) from err


def perform(
    experiments: Sequence[Experiment], output: Path, screen: Screen
) -> list[Path]:
    """Do experiments one after the other, show and keep what comes of them.

    What one has when it's broken off, by whatever, is shown and kept, too.
    Where one fails, others go on.

    :param output: the folder for results
    :returns: the files of results
    :raises BenchError: at the end, if some failed; if there's only one, what
                        it raised
    :raises Interrupted: if somebody ended it
    """
    origin = provenance()
    if origin.is_machine_busy:
        screen.warning(
            f'other work takes {origin.busy_cores:.1f} of {origin.cores} '
            'cores: the figures will be those of a busy machine'
        )
    times = [each.seconds for each in experiments]
    if len(times) > 1 and None not in times:
        screen.line(f'all of it takes {about_text(sum(times))}')
    if len(experiments) == 1:
        return [_perform(experiments[0], origin, output, screen)]
    files, failed = [], []
    for each in experiments:
        try:
            files.append(_perform(each, origin, output, screen))
        except Exception as err:
            text = failure_text(err)
            if text is None:
                raise
            screen.warning(f'{each.name} failed: {text}')
            failed.append(each.name)
    if failed:
        raise BenchError(f'failed, see above: {", ".join(failed)}')
    return files


def _perform(
    experiment: Experiment, origin: Provenance, output: Path, screen: Screen
) -> Path:
    kept: dict[str, Figures] = {}

    def keep(figures: Figures) -> None:
        kept['figures'] = figures

    result = Result(
        experiment.command,
        experiment.name,
        origin,
        experiment.parameters.as_json(),
        {},
        name=experiment.word,
    )
    screen.heading(title(result))
    screen.line(_expected_text(experiment, output))
    began = time.monotonic()
    processes = getattr(experiment.parameters, 'processes', _PROCESSES)
    try:
        with Clients(processes) as clients:
            stage = Stage(experiment.parameters, clients, screen)
            figures = experiment.measure(stage, keep)
    except BaseException:
        if kept:
            part = _with_figures(result, kept['figures'])
            part = dataclasses.replace(part, complete=False)
            _publish(part, output, screen)
        raise
    result = dataclasses.replace(result, seconds=time.monotonic() - began)
    path = _publish(_with_figures(result, figures), output, screen)
    experiment.check(figures)
    return path


def _expected_text(experiment: Experiment, output: Path) -> str:
    """Return how long an experiment takes: measured earlier, or estimated."""
    earlier: list[Result] = []
    # a damaged one is no reason to measure nothing
    with contextlib.suppress(BenchError):
        earlier = folder.load(output, experiment.command, [experiment.name])
    parameters = experiment.parameters
    for each in earlier:
        before = type(parameters).from_json(each.parameters)
        if each.seconds is not None and before == parameters:
            return f'took {duration_text(each.seconds)} the last time'
    if experiment.seconds is None:
        return 'the time depends on the machine'
    return f'takes {about_text(experiment.seconds)}'


def _with_figures(result: Result, figures: Figures) -> Result:
    """A result, once it's known what came of it, and where."""
    cluster = figures.get('cluster')
    origin = result.provenance
    if cluster is not None:
        origin = dataclasses.replace(
            origin, cluster=cluster['url'], swift=cluster['swift']
        )
    return dataclasses.replace(result, figures=figures, provenance=origin)


def _publish(result: Result, output: Path, screen: Screen) -> Path:
    """Keep a result, and show it, also if it can't be kept."""
    try:
        path = folder.save(output, result, _is_replacing())
    finally:
        for table in describe(result).tables:
            screen.table(table)
    if not result.complete:
        screen.warning('broken off: these are the figures of what was done')
    files = [path]
    entries = csvfiles.entries_of(result.figures)
    if entries:
        files.append(path.with_suffix('.csv'))
        folder.write(files[-1], csvfiles.csv_text(entries))
    screen.line(f'kept in {" and ".join(map(str, files))}')
    return path


def _is_replacing() -> bool:
    """Return True if the command was told to replace earlier results."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(REPLACING, False)


def _option(
    name: str, default: object, option: Option
) -> Callable[[Callable], Callable]:
    flag = name.replace('_', '-')
    if option.kind is bool:
        names = (name, *option.flags, f'--{flag}/--no-{flag}')
    else:
        names = (name, *option.flags, f'--{flag}')
    if any(each.startswith('--') for each in option.flags):
        names = (name, *option.flags)
    return click.option(
        *names,
        type=None if option.kind is bool else option.kind,
        default=None if option.multiple else _typed(option.kind, default),
        show_default=default not in (None, '', ()) and not option.multiple,
        multiple=option.multiple,
        envvar=option.environment,
        help=option.text,
    )


def _typed(kind: object, default: object) -> object:
    """A default as one would type it."""
    if default is not None and isinstance(kind, Parsed):
        return kind.typed(default)
    return default
