# SPDX-License-Identifier: Apache-2.0
"""``python -m test.model``: explore the protocol, or a break of it."""

import argparse
import sys

from test.model import BREAKS, MODELS, explored


def main() -> int:
    """Print the states of each model; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(
        prog='python -m test.model',
        description='Explore all states of the protocol of changes of layout.',
    )
    parser.add_argument(
        'rule',
        nargs='?',
        default='',
        choices=['', *BREAKS],
        metavar='BREAK',
        help=f'the rule to break: {", ".join(BREAKS)}',
    )
    parser.add_argument(
        '--writes',
        default='PD',
        help='a P for each PUT of the name, a D for each DELETE; '
        'PDD has 15 times the states of PD, PPD ten times',
    )
    args = parser.parse_args()
    is_wrong = False
    for model in [BREAKS[args.rule]] if args.rule else MODELS:
        found = explored(model, args.rule, args.writes)
        print(f'{model}: {found}', flush=True)
        is_wrong = is_wrong or bool(found.problem)
    return int(is_wrong)


if __name__ == '__main__':
    sys.exit(main())
