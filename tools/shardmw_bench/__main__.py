# SPDX-License-Identifier: Apache-2.0
"""``python -m shardmw_bench``."""

from shardmw.admin.entry_points import bench

if __name__ == '__main__':
    bench()
