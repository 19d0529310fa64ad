# SPDX-License-Identifier: Apache-2.0
"""``python -m test.mutants``: do unit tests notice small changes of rules?"""

import argparse
import importlib
import importlib.util
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from test.mutants import MODULES
from test.mutants.making import change, mutants

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name('survivors.txt')

#: The least part of the mutants of all modules that tests have to kill.
LEAST_KILLED = 0.95

#: The tests of a mutant may take so many times the CPU time of the tests of
#: the module, and so many seconds more.
SLOWER, MORE_SECONDS = 2, 3

#: What a mutant that never ends may allocate.
MOST_BYTES = 4 << 30

#: Imported once, for all mutants. These modules import none of shardmw.
IMPORTED = ('orjson', 'swift.container.server', 'swift.proxy.server')


def main() -> int:
    """Print the mutants that survive; return 1 if they are not the listed."""
    parser = argparse.ArgumentParser(
        'python -m test.mutants', description=__doc__
    )
    parser.add_argument('names', nargs='*', help='modules, such as core/gcra')
    names = parser.parse_args().names or [*MODULES]
    _prepare()
    tried, survivors = 0, Counter()
    for name in names:
        began = time.monotonic()
        count, survived = _try_mutants(name)
        tried += count
        survivors.update(survived)
        print(
            f'{name}: {count - len(survived)} of {count} mutants killed in '
            f'{time.monotonic() - began:.0f} s',
            flush=True,
        )
    killed = tried - survivors.total()
    print(f'{killed} of {tried} mutants killed: {killed / tried:.1%}')
    listed = Counter(each for each in _listed() if each.split(':')[0] in names)
    wrong = [f'not listed: {each}' for each in survivors - listed]
    wrong += [f'listed, but killed: {each}' for each in listed - survivors]
    print(*wrong, sep='\n')
    is_low = {*names} == {*MODULES} and killed < LEAST_KILLED * tried
    return int(bool(wrong) or is_low)


def _prepare() -> None:
    """Import what is not changed, and set the number of examples."""
    os.chdir(ROOT)
    os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'
    os.environ['HYPOTHESIS_PROFILE'] = 'mutants'
    settings.register_profile(
        'mutants',
        max_examples=50,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    settings.load_profile('mutants')
    for name in IMPORTED:
        importlib.import_module(name)


def _listed() -> list[str]:
    """Return the mutants that may survive."""
    lines = SURVIVORS.read_text().splitlines()
    return [line for line in lines if line and not line.startswith('#')]


def _try_mutants(name: str) -> tuple[int, list[str]]:
    """Run the tests of a module with each of its mutants.

    :returns: the number of mutants, and those that survive
    """
    text = (ROOT / 'shardmw' / f'{name}.py').read_text()
    passed, seconds = _tested(name, text)
    if not passed:
        raise RuntimeError(f'the tests of {name} fail')
    limit = round(SLOWER * seconds + MORE_SECONDS)
    tried, survivors = 0, []
    for mutant in mutants(text, MODULES[name].names):
        tried += 1
        passed, _ = _tested(name, mutant, limit)
        if passed:
            survivors.append(f'{name}: {change(text, mutant)}')
            print(f'    {survivors[-1]}', flush=True)
    return tried, survivors


def _tested(
    name: str, text: str, limit: int = resource.RLIM_INFINITY
) -> tuple[bool, float]:
    """Run the tests of a module with a text for it, in a new process.

    :param limit: the longest CPU time in seconds
    :returns: True if the tests pass, and their CPU time in seconds
    """
    process = os.fork()
    if not process:
        status = 1
        try:
            _silence()
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
            _put(name, text)
            status = pytest.main(_arguments(name))
        finally:
            os._exit(status)
    _, status, usage = os.wait4(process, 0)
    return status == 0, usage.ru_utime + usage.ru_stime


def _silence() -> None:
    """Drop all output of this process."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _put(name: str, text: str) -> None:
    """Import a module with another text."""
    full_name = f'shardmw.{name.replace("/", ".")}'
    spec = importlib.util.find_spec(full_name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    exec(compile(text, spec.origin, 'exec'), vars(module))
    package, _, last = full_name.rpartition('.')
    setattr(sys.modules[package], last, module)


def _arguments(name: str) -> list[str]:
    """Return the arguments of pytest for the tests of a module."""
    first, *more = MODULES[name].tests
    # Tests of the core use none of the fixtures, whose imports take longer
    # than the tests.
    alone = ['--noconftest'] if name.startswith('core/') else []
    flags = ['-x', '-q', '-p', 'no:cacheprovider', *alone]
    return [*flags, f'test/unit/{first}', *more]


if __name__ == '__main__':
    sys.exit(main())
