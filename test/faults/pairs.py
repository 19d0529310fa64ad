# SPDX-License-Identifier: Apache-2.0
"""``python -m test.faults.pairs``: run cells with two faults at a time."""

import signal
import sys
from pathlib import Path

from test.faults.__main__ import parser_of, read, run_all
from test.faults.page import pair_table, put_in
from test.faults.plan import ALLOWANCES, Pair, allowances, planned

RESULTS = Path('.faults/pairs.jsonl')


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = _options()
    if options.page:
        return _write_page(options.page, options.results)
    plan = planned()
    pairs = [p for p in plan if not options.pairs or str(p) in options.pairs]
    if len(pairs) < len(options.pairs):
        sys.exit(f'not all of {options.pairs} are in the plan: see --plan')
    # What is allowed is said before anything runs.
    print(text_of(pairs), flush=True)
    if options.plan:
        return 0
    options.cells = options.pairs
    return run_all(pairs, options)


def text_of(plan: list[Pair]) -> str:
    """Return the text of a plan, with what the checker allows."""
    lines = [f'{len(plan)} pairs, and what the checker allows in each:']
    lines += [f'  {pair}: {", ".join(allowances(pair))}' for pair in plan]
    lines += [f'{name}: {text}.' for name, text in ALLOWANCES.items()]
    return '\n'.join(lines)


def _write_page(page: Path, results: Path) -> int:
    """Write the table of the last results of all pairs into a page."""
    last = {each['cell']: each for each in read(results)}
    names = {str(pair): pair for pair in planned()}
    found = [(names[name], last[name]) for name in names if name in last]
    if found:
        page.write_text(put_in(page.read_text(), 'pairs', pair_table(found)))
    return 0


def _options():
    parser = parser_of('python -m test.faults.pairs', HEAD, RESULTS, 20)
    parser.add_argument('pairs', nargs='*', help='the names of pairs (all)')
    parser.add_argument(
        '--plan',
        action='store_true',
        help='only print the pairs, and what the checker allows in each',
    )
    return parser.parse_args()


HEAD = (
    'Look for histories of containers that no order of their writes explains, '
    'while two parts of Swift fail at the same time. The exit code is 1 if '
    'there is one, or if something is wrong afterwards.'
)

if __name__ == '__main__':
    sys.exit(main())
