# SPDX-License-Identifier: Apache-2.0
"""A real Swift on loopback."""

from shardmw.saio.cluster import Cluster, ServerStatus
from shardmw.saio.errors import SaioError
from shardmw.saio.options import ClusterOptions

__all__ = ['Cluster', 'ClusterOptions', 'SaioError', 'ServerStatus']
