# SPDX-License-Identifier: Apache-2.0
from shardmw.bench.plots.plot import *  # noqa: F403
