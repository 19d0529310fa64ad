# SPDX-License-Identifier: Apache-2.0
"""``python -m shardmw.bench``."""

from shardmw.bench.cli import main

if __name__ == '__main__':
    main(prog_name='shardmw-bench')
