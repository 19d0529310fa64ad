# SPDX-License-Identifier: Apache-2.0
"""Quotas of sharded containers, enforced by Swift's own filters."""
