# SPDX-License-Identifier: Apache-2.0
"""``python -m shardmw_bench``."""

from shardmw_bench.cli import main

if __name__ == '__main__':
    main(prog_name='shardmw-bench')
