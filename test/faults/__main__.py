# SPDX-License-Identifier: Apache-2.0
"""``python -m test.faults``"""

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import closing
from itertools import count, groupby
from pathlib import Path

from shardmw_bench.results.provenance import provenance

from test.faults import network, power
from test.faults.histories import keep
from test.faults.matrix import CELLS, NET, POWER, Cell, chosen
from test.faults.mutations import MUTATIONS
from test.faults.network_site import NetworkSite
from test.faults.page import KINDS, mutation_table, put_in, table
from test.faults.plan import Pair, allowances
from test.faults.run import CLIENTS, Run
from test.faults.site import Site, temporary_folder

RESULTS = Path('.faults/results.jsonl')
MUTATION_RESULTS = 'mutations.jsonl'


def main() -> int:
    # SIGTERM must end the cluster, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = _options()
    if options.list:
        print(*CELLS, sep='\n')
        return 0
    if options.page:
        return _write_page(options.page, options.results)
    return run_all(chosen(options.cells), options)


def run_all(
    cells: list[Cell] | list[Pair], options: argparse.Namespace
) -> int:
    """Run cells and write their results; return 1 if one of them failed."""
    options.results.parent.mkdir(parents=True, exist_ok=True)
    results = read(options.results) if options.resume else []
    last = {each['cell']: each for each in results}
    done = {cell for cell, each in last.items() if each['is_good']}
    cells = possible([cell for cell in cells if str(cell) not in done])
    bad = 0
    is_new = not (options.resume or options.cells)
    with (
        options.results.open('w' if is_new else 'a') as file,
        temporary_folder(options.dir) as folder,
        closing(_results(cells, folder, options)) as results,
    ):
        for number, result in enumerate(results, 1):
            print(f'{number}/{len(cells)} {text_of(result)}', flush=True)
            if KINDS[0] in result:
                print(json.dumps(result), file=file, flush=True)
            bad += not result['is_good']
    return bool(bad)


def _results(
    cells: list[Cell] | list[Pair], folder: Path, options: argparse.Namespace
) -> Iterator[dict]:
    """Run cells, each on a cluster of the kind that it needs.

    After a cell that breaks off, which has no result, the next one runs on a
    new cluster.
    """
    numbers = count(1)
    for is_net, group in groupby(cells, _is_net):
        left = [*group]
        while left:
            path = folder / f'site-{next(numbers)}'
            path.mkdir()
            with NetworkSite(path) if is_net else Site(path) as site:
                is_whole = True
                while left and is_whole:
                    result = _result(site, left.pop(0), options)
                    is_whole = KINDS[0] in result
                    yield result


def _result(
    site: Site, cell: Cell | Pair, options: argparse.Namespace
) -> dict:
    try:
        return carry_out(
            site,
            cell,
            options.seed,
            options.seconds,
            options.clients,
            options.histories,
        )
    except Exception:
        text = traceback.format_exc()
        return {'cell': str(cell), 'is_good': False, 'texts': [text]}


def _is_net(cell: Cell | Pair) -> bool:
    return any(fault.what == NET for fault in cell.faults)


def _is_power(cell: Cell | Pair) -> bool:
    return any(fault.what in POWER for fault in cell.faults)


def possible(cells: list[Cell] | list[Pair]) -> list[Cell] | list[Pair]:
    """Return the cells that can run here; print why others cannot."""
    for name, is_such, why_not in (
        (NET, _is_net, network.why_not),
        ('power', _is_power, power.why_not),
    ):
        others = [cell for cell in cells if not is_such(cell)]
        if others != cells and (reason := why_not()):
            print(f'{name} is left out: {reason}')
            cells = others
    return cells


def carry_out(
    site: Site,
    cell: Cell | Pair,
    seed: int,
    seconds: int,
    clients: int = CLIENTS,
    histories: Path | None = None,
) -> dict:
    """Run a cell on a clean cluster; return its result as JSON values.

    :param histories: the folder for the histories of the cell, if they are
                      kept
    """
    began = time.monotonic()
    site.wipe()
    run = Run(site, cell, seed, seconds, clients)
    outcomes = run.outcomes()
    for kind, history in run.histories.items() if histories else ():
        keep(history, histories / f'{cell}.{kind}.jsonl.gz')
    return {
        'cell': str(cell),
        'commit': provenance().commit,
        'seed': seed,
        'seconds': round(time.monotonic() - began),
        'changes': run.changes,
        'phase': run.phase,
        'allowances': allowances(cell),
        'is_good': all(each.is_good for each in outcomes.values()),
        **{kind: each._asdict() for kind, each in outcomes.items()},
        'texts': run.texts,
    }


def text_of(result: dict) -> str:
    """Return the text of a result."""
    if KINDS[0] not in result:
        return '\n'.join([f'{result["cell"]} broke off', *result['texts']])
    phase = result['phase'] and f', the fault began in {result["phase"]!r}'
    lines = [
        f'{result["cell"]}: {result["seconds"]} s, '
        f'{result["changes"]} changes{phase}'
    ]
    for kind in KINDS:
        found = result[kind]
        lines.append(
            f'  {kind:7}: {found["operations"]} operations, '
            f'{found["acknowledged"]} acknowledged, '
            f'{sum(found["refused"].values())} refused, '
            f'{found["lost"]} lost, {found["wrong"]} wrong, '
            f'{found["stale"]} stale, {found["unlisted"]} rows lost, '
            f'well after {found["well_seconds"]} s'
        )
        lines += [f'    {problem}' for problem in found['problems']]
    return '\n'.join([*lines, *result['texts']])


def read(path: Path) -> list[dict]:
    """Return the results in a file; none if there is no such file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def _write_page(page: Path, results: Path) -> int:
    """Write the tables of all results so far into a page.

    Results without the phase of a change are of an earlier checker.
    """
    last = {each['cell']: each for each in read(results) if 'phase' in each}
    ordered = [last[str(cell)] for cell in CELLS if str(cell) in last]
    tables = {'faults': table(ordered)} if ordered else {}
    if mutations := read(results.with_name(MUTATION_RESULTS)):
        says = {name: each.says for name, each in MUTATIONS.items()}
        tables['mutations'] = mutation_table(mutations, says)
    text = page.read_text()
    for name, each in tables.items():
        text = put_in(text, name, each)
    page.write_text(text)
    return 0


def _options() -> argparse.Namespace:
    parser = parser_of('python -m test.faults', HEAD, RESULTS, 30)
    parser.add_argument('cells', nargs='*', help=HELP['cells'])
    parser.add_argument('--list', action='store_true', help=HELP['list'])
    return parser.parse_args()


def parser_of(
    name: str, head: str, results: Path, seconds: int
) -> argparse.ArgumentParser:
    """Return a parser with the options for all runs of cells.

    :param results: the default file of results
    :param seconds: how long clients work by default
    """
    parser = argparse.ArgumentParser(name, description=head)
    numbers = (
        ('seconds', seconds),
        ('clients', CLIENTS),
        ('seed', int(time.time())),
    )
    for name, default in numbers:
        parser.add_argument(
            f'--{name}', type=int, default=default, help=HELP[name]
        )
    paths = (
        ('results', results),
        ('dir', None),
        ('page', None),
        ('histories', None),
    )
    for name, default in paths:
        parser.add_argument(
            f'--{name}', type=Path, default=default, help=HELP[name]
        )
    parser.add_argument('--resume', action='store_true', help=HELP['resume'])
    return parser


HEAD = (
    'Look for histories of containers that no order of their writes explains, '
    'while parts of Swift fail. The exit code is 1 if there is one, or if '
    'something is wrong afterwards.'
)
HELP = {
    'cells': 'the first parts of the names of cells, * for any part, such as '
    'container-stopped or "*-*-reshard" (all cells)',
    'seconds': 'how long the clients of a cell work (%(default)s)',
    'clients': 'how many clients each proxy has for each of the two '
    'containers (%(default)s)',
    'seed': 'decides what clients do and what fails; by default a new one. '
    'Times differ between runs, so a seed repeats the work, not the history',
    'results': 'the file of the results, a line of JSON a cell (%(default)s); '
    'a run of all cells begins a new one',
    'dir': 'the folder of the cluster, with its logs; it stays',
    'page': 'write the tables into a page instead, such as doc/reliability.md',
    'histories': 'keep the histories of cells in this folder, for '
    'python -m test.faults.histories',
    'resume': 'leave out the cells whose last results in the file are good',
    'list': 'print the names of all cells',
}

if __name__ == '__main__':
    sys.exit(main())
