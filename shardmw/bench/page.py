# SPDX-License-Identifier: Apache-2.0
from shardmw.bench.report.places import *  # noqa: F403
