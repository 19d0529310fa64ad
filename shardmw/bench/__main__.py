# SPDX-License-Identifier: Apache-2.0
"""``python -m shardmw.bench``."""

from shardmw.commands import bench

if __name__ == '__main__':
    bench()
