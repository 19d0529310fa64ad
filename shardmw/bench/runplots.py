# SPDX-License-Identifier: Apache-2.0
from shardmw.bench.plots.runs import *  # noqa: F403
from shardmw.bench.plots.runs import latency_distributions

latency_histograms = latency_distributions
