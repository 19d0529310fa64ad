# SPDX-License-Identifier: Apache-2.0
"""``python -m test.faults.mutations``: show that cells find broken code.

Each mutation changes a copy of the package. The servers, daemons and commands
of its cells run from the copy. The first cell with a wrong response has found
the mutation. If no cell has, a unit test must.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from test.faults.page import KINDS

ROOT = Path(__file__).parents[2]
RESULTS = Path('.faults/mutations.jsonl')
PACKAGES = ('shardmw', 'test')


class Mutation(NamedTuple):
    """A change of the code that breaks a rule.

    :param says: the description of what is broken
    :param edits: the module, the text to replace (once), and the replacement
    :param cells: the cells that should find the mutation
    :param test: the unit test that finds it, if cells seldom do
    """

    says: str
    edits: tuple[tuple[str, str, str], ...]
    cells: tuple[str, ...]
    test: str = ''


MUTATIONS = {
    'one-tombstone': Mutation(
        'a DELETE leaves a tombstone only where new rows go',
        (
            (
                'proxy/object.py',
                'places = target.places_of(path.name)',
                'places = {target.place_of(path.name)}',
            ),
        ),
        ('mover-killed-reshard', 'mover-cancelled-convert'),
    ),
    'older-row': Mutation(
        'of two rows of a name, a listing shows the older one',
        (
            (
                'core/listing_rows.py',
                '_last_modified(other) > _last_modified(text)',
                '_last_modified(other) < _last_modified(text)',
            ),
        ),
        ('mover-killed-reshard', 'mover-cancelled-convert'),
    ),
    'error-is-empty': Mutation(
        'a shard that does not answer counts as empty',
        (
            (
                'proxy/listing/request.py',
                '            )\n            require_success(answers)\n',
                '            )\n',
            ),
            (
                'proxy/listing/request.py',
                '            if not answer.is_success:\n'
                '                return answer\n'
                '            page.add',
                '            page.add',
            ),
        ),
        ('databases-loop-objects', 'databases-loop-reshard'),
    ),
    'stale-record': Mutation(
        'the layout record of one replica is enough',
        (
            (
                'proxy/layouts.py',
                '                layout = self._confirm(env, path, layout, '
                'max_age)\n            else',
                '                pass\n            else',
            ),
            (
                'proxy/layouts.py',
                'layout = self._confirm_plain(env, path, max_age)',
                'layout = None',
            ),
        ),
        (
            'container-loop-names',
            'container-old-convert',
            'container-killed-names',
        ),
        test='test_layout_lookup.py::'
        'TestRecord::test_of_a_stale_replica_does_not_shard_a_plain_container',
    ),
    'one-replica': Mutation(
        'rows that one replica has taken count as those of a majority',
        (
            (
                'backend/rows.py',
                'if taken < quorum_size(len(answers)):',
                'if taken < 1:',
            ),
            (
                'backend/rows.py',
                '_check_quorum(answers)\n'
                '    return all(answer.is_success for answer in answers)',
                '_check_quorum(answers)\n    return True',
            ),
        ),
        ('container-loop-reshard', 'container-loop-unshard'),
        test='test_backend_rows.py::'
        'TestMergeRows::test_fails_if_less_than_a_majority_takes_them',
    ),
    'late-rows': Mutation(
        'rows that reach the old place after the first pass are not moved',
        (
            (
                'reshard/resharding.py',
                'while self._look_through(target, sources):\n'
                '                self',
                'for _ in range(bool(self._look_through(target, sources))):\n'
                '                self',
            ),
            (
                'reshard/resharding.py',
                'while (left := self._seconds_to_settle()) > 0:',
                'while left := 0:',
            ),
            (
                'reshard/late_rows.py',
                '    return settling.settle(left)\n',
                '    return NOTHING\n',
            ),
            (
                'reshard/resharding.py',
                'return self._look_through(\n'
                '            target, [*shards, None], '
                'self._sweeping(target, kept_seconds)\n        )',
                'return 0',
            ),
        ),
        ('databases-killed-reshard', 'container-stopped-reshard'),
        test='test_layout_changes.py::'
        'test_listings_show_what_last_write_wins_says[10]',
    ),
    'no-wait': Mutation(
        'a phase begins before all proxies know of the one before',
        (
            (
                'reshard/resharding.py',
                '        self.executor.wait(max(seconds, cached))\n',
                '',
            ),
            (
                'reshard/resharding.py',
                '            if root.holders == root.replicas:\n'
                '                break\n',
                '            break\n',
            ),
            (
                'reshard/executor.py',
                '        self.backend.forget_info(self.env, self.path)\n',
                '',
            ),
        ),
        ('mover-killed-reshard', 'mover-cancelled-reshard'),
        test='test_layout_resharding.py::TestBeforeAPhaseBegins',
    ),
    'removed-unsynced': Mutation(
        'rows are removed before their copies are on disks',
        (
            (
                'reshard/row_pass.py',
                '_require_stored(self.mover.make_durable(place))',
                'pass',
            ),
        ),
        ('all-power-convert', 'all-power-reshard'),
        test='test_row_pass.py::test_rows_of_several_places_move_together',
    ),
    'removed-at-once': Mutation(
        'rows do not stay in their old place for a second',
        (
            (
                'reshard/row_pass.py',
                'self._steps.append((time.monotonic() + self._seconds, step))',
                'self._steps.append((0, step))',
            ),
            (
                'proxy/listing/request.py',
                'if answered - self._began >= STAY_SECONDS:',
                'if False:',
            ),
        ),
        ('container-slow-reshard', 'container-cut-reshard'),
        test='test_row_pass.py::test_rows_stay_in_both_places_for_a_while',
    ),
    'tombstones-of-now': Mutation(
        'the tombstone of a moved row has the current time',
        (
            (
                'backend/rows.py',
                '    timestamp = _moved_timestamp(listed, offset)\n'
                '    return deletion',
                '    timestamp = f\'{__import__("time").time():.5f}\'\n'
                '    return deletion',
            ),
        ),
        ('mover-cancelled-convert', 'mover-killed-unshard'),
    ),
    'copies-of-now': Mutation(
        'a moved row has the time of its move',
        (
            (
                'backend/rows.py',
                "'created_at': _moved_timestamp(listed, offset),",
                "'created_at': f'{__import__(\"time\").time():.5f}',",
            ),
        ),
        ('container-slow-reshard', 'mover-cancelled-unshard'),
    ),
    'old-place-left-out': Mutation(
        'a listing reads only the new place while rows move',
        (
            (
                'backend/containers.py',
                'for side in self.layout.rules.reads:',
                'for side in self.layout.rules.reads[-1:]:',
            ),
        ),
        ('mover-killed-reshard',),
    ),
    'no-move': Mutation(
        'a change ends before its rows have moved',
        (
            (
                'reshard/resharding.py',
                '        self._move(root)\n',
                '',
            ),
        ),
        ('mover-killed-reshard',),
    ),
    'root-left-out': Mutation(
        'a listing leaves out the rows that are still in the root',
        (
            (
                'proxy/listing/request.py',
                '        page.merge(_rows_in(root))\n',
                '',
            ),
        ),
        ('mover-killed-convert',),
    ),
    'misplaced-tombstone': Mutation(
        'the tombstone of a DELETE goes to the root',
        (
            (
                'proxy/object.py',
                'if target.layout.written:',
                "if target.layout.written and req.method != 'DELETE':",
            ),
        ),
        ('memcached-killed-objects',),
    ),
    'rows-not-moved': Mutation(
        'the last row of each page is not moved',
        (
            (
                'reshard/row_pass.py',
                'for row in [*agreed, *existing]:',
                'for row in [*agreed, *existing][:-1]:',
            ),
        ),
        ('mover-killed-reshard', 'proxy-stopped-reshard'),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        'python -m test.faults.mutations', description=__doc__
    )
    parser.add_argument('names', nargs='*', help='mutations (all)')
    parser.add_argument('--seconds', default='40')
    parser.add_argument('--results', type=Path, default=RESULTS)
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    missed = 0
    for name in options.names or MUTATIONS:
        cell, what = found(MUTATIONS[name], options.seconds)
        missed += not cell
        result = {'mutation': name, 'cell': cell, 'what': what}
        print(json.dumps(result), flush=True)
        with options.results.open('a') as file:
            print(json.dumps(result), file=file)
    return bool(missed)


def found(mutation: Mutation, seconds: str) -> tuple[str, str]:
    """Return the cell or test that finds a mutation, and what it has found.

    :returns: empty texts if none finds it
    """
    with copy(mutation) as folder:
        for cell in mutation.cells:
            results = folder / f'results-{cell}'
            subprocess.run(
                (sys.executable, '-m', 'test.faults', cell)
                + ('--seconds', seconds, '--results', str(results)),
                cwd=folder,
                stdout=subprocess.DEVNULL,
            )
            lines = results.read_text().splitlines()
            if not lines:  # it broke off
                continue
            plain, sharded = (json.loads(lines[-1])[kind] for kind in KINDS)
            seen = {
                'reads of lost objects': sharded['lost'],
                'wrong answers': sharded['wrong'],
                'problems afterwards': len(sharded['problems']),
            }
            is_sound = not (plain['lost'] or plain['wrong'])
            if is_sound and any(seen.values()):
                text = ', '.join(
                    f'{n} {what}' for what, n in seen.items() if n
                )
                return cell, text
        if mutation.test and not passes(mutation.test, folder):
            return mutation.test, 'a failed test'
    return '', ''


@contextmanager
def copy(mutation: Mutation | None) -> Iterator[Path]:
    """Make a folder with a copy of the package, and remove it at the end.

    :param mutation: changes the copy; None for no change
    """
    with tempfile.TemporaryDirectory(prefix='mutation-') as name:
        folder = Path(name)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, folder / package)
        for module, old, new in mutation.edits if mutation else ():
            path = folder / 'shardmw' / module
            path.write_text(mutated(path.read_text(), old, new))
        yield folder


def passes(test: str, folder: Path) -> bool:
    """Return True if a unit test passes with the package of a folder.

    :raises RuntimeError: if the test cannot be run
    """
    command = (sys.executable, '-m', 'pytest', '-q', f'test/unit/{test}')
    code = subprocess.run(
        command, cwd=folder, stdout=subprocess.DEVNULL
    ).returncode
    if code not in (0, 1):
        raise RuntimeError(f'pytest has ended with {code}: {test}')
    return code == 0


def mutated(text: str, old: str, new: str) -> str:
    """Return a module's text with one change.

    :raises ValueError: unless the text to replace occurs exactly once
    """
    if text.count(old) != 1:
        raise ValueError(f'{text.count(old)} times in the module: {old!r}')
    return text.replace(old, new)


if __name__ == '__main__':
    sys.exit(main())
