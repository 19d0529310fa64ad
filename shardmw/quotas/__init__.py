# SPDX-License-Identifier: Apache-2.0
"""Quotas of sharded containers, held by Swift's own filters."""
